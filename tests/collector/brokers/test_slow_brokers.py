"""Brokers whose answers come later than those of the others, for minutes."""

import pytest

from collector.brokers.slow_brokers import LASTING_S, SlowBrokerWatch
from model.ids import BrokerId


def after(
    watch: SlowBrokerWatch, seconds: range, answers_s: dict[int, float]
) -> list[tuple[BrokerId, ...]]:
    """The slow brokers after each second in which brokers answered in this time."""
    return [tuple(s.broker for s in watch.see(float(at), answers_s)) for at in seconds]


def test_a_broker_that_answers_late_for_three_minutes_is_slow_until_it_has_recovered() -> None:
    watch, late = SlowBrokerWatch(), {1: 0.004, 2: 0.006, 3: 2.0}
    found = after(watch, range(300), late)
    assert found.index((BrokerId(3),)) == int(LASTING_S)
    assert set(found[180:]) == {(3,)}
    (slow,) = watch.see(300.0, late)
    assert slow.words() == "it answers in 2.00 s, the others in 5 ms"
    well = after(watch, range(301, 600), {1: 0.004, 2: 0.006, 3: 0.005})
    assert well[0] == (3,)
    assert well[-1] == ()
    assert 100 < well.index(()) <= int(LASTING_S)


@pytest.mark.parametrize(
    "answers_s",
    [{1: 0.004, 2: 0.004, 3: 0.2}, {1: 1.0, 2: 1.2, 3: 3.0}, {1: 0.004, 3: 2.0}, {3: 2.0}, {}],
    ids=["soon enough", "all late", "one other", "no other", "no answer"],
)
def test_brokers_that_do_not_stand_out_are_not_slow(answers_s: dict[int, float]) -> None:
    assert set(after(SlowBrokerWatch(), range(400), answers_s)) == {()}


def test_pauses_and_a_probe_that_sleeps_prove_nothing() -> None:
    """Collecting garbage every ten seconds is no reason, nor are two rounds far apart."""
    watch = SlowBrokerWatch()
    for at in range(600):
        late = 2.0 if at % 10 == 0 else 0.004
        assert watch.see(float(at), {1: 0.004, 2: 0.004, 3: late}) == ()
    far = SlowBrokerWatch()
    assert set(after(far, range(0, 5000, 1000), {1: 0.004, 2: 0.004, 3: 2.0})) == {()}
