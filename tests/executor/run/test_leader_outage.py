"""The time without a leader, bounded by polls of metadata."""

from hypothesis import given
from hypothesis import strategies as st

from executor.client.responses import PartitionView
from executor.run.leader_outage import LeaderOutage
from model.ids import NO_BROKER, BrokerId
from tests.support.executor.plan_builders import move, view

ONE, TWO = BrokerId(1), BrokerId(2)


def led_by(leader: BrokerId) -> PartitionView:
    return view(move(), (1, 2), leader=leader)


def test_an_outage_has_a_lower_and_an_upper_bound() -> None:
    outage = LeaderOutage(ONE, 10.0)
    outage.observe(led_by(ONE), 10.1, 10.2)
    outage.observe(led_by(NO_BROKER), 10.3, 10.4)
    outage.observe(led_by(NO_BROKER), 10.9, 11.0)
    outage.observe(led_by(TWO), 11.1, 11.2)
    assert outage.bounds_s == (0.5, 1.1)


def test_an_election_between_two_polls_is_bounded_by_them() -> None:
    outage = LeaderOutage(ONE, 10.0)
    outage.observe(led_by(TWO), 10.1, 10.2)
    assert outage.bounds_s == (0.0, 0.2)


def test_an_unchanged_leader_causes_no_outage() -> None:
    outage = LeaderOutage(ONE, 10.0)
    outage.observe(led_by(ONE), 12.0, 12.1)
    assert outage.bounds_s == (0.0, 0.0)


@given(
    gone_at_s=st.floats(0.0, 3.0),
    gone_s=st.floats(0.0, 3.0),
    looks=st.lists(st.tuples(st.floats(0.01, 1.0), st.floats(0.0, 0.5))),
)
def test_the_true_time_lies_between_the_bounds(
    gone_at_s: float, gone_s: float, looks: list[tuple[float, float]]
) -> None:
    """Polls at any times, answered at any delay; the last one sees the new leader."""

    def leader(at_s: float) -> BrokerId:
        if at_s < gone_at_s:
            return ONE
        return NO_BROKER if at_s < gone_at_s + gone_s else TWO

    outage, now_s = LeaderOutage(ONE, 0.0), 0.0
    for pause_s, answer_s in [*looks, (gone_at_s + gone_s, 0.0)]:
        asked_s = now_s + pause_s
        now_s = asked_s + answer_s
        outage.observe(led_by(leader(asked_s + answer_s / 2)), asked_s, now_s)
    least_s, most_s = outage.bounds_s
    assert least_s - 0.001 <= gone_s <= most_s + 0.001
