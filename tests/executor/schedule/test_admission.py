"""Which moves start, in which order, and how many at once."""

from executor.schedule.admission import in_order, is_leader_change, startable
from executor.timing import RunLimits
from model.ids import BrokerId
from tests.support.executor.plan_builders import move

FIVE = [move(i, (1,), (2 + i % 2,)) for i in range(5)]
OFFSETS = move(0, topic="__consumer_offsets")


def test_no_more_than_allowed_in_the_cluster() -> None:
    limits = RunLimits(moves_in_flight=3)
    assert startable(FIVE, [], limits) == FIVE[:3]
    assert startable(FIVE[2:], FIVE[:2], limits) == [FIVE[2]]
    assert startable(FIVE[3:], FIVE[:3], limits) == []


def test_no_more_than_allowed_per_broker_in_and_out_together() -> None:
    """A move between idle brokers overtakes those that wait for a busy one."""
    limits = RunLimits(moves_in_flight=9, moves_per_broker=2)
    idle = move(9, (4,), (5,))
    assert startable([*FIVE, idle], [], limits) == [FIVE[0], FIVE[1], idle]


def test_internal_topics_come_last_and_alone() -> None:
    assert in_order([OFFSETS, *FIVE]) == [*FIVE, OFFSETS]
    limits = RunLimits(moves_in_flight=9)
    assert startable([FIVE[0], OFFSETS], [], limits) == [FIVE[0]]
    assert startable([OFFSETS], [FIVE[0]], limits) == []
    assert startable([OFFSETS, move(1, topic="__x")], [], limits) == [OFFSETS]
    assert startable([FIVE[0]], [OFFSETS], limits) == []


def test_a_move_waits_for_disk_space_on_its_new_brokers() -> None:
    """In-flight moves count; brokers that report no free space are unlimited."""
    sized = [move(i, (1,), (2,), bytes_to_copy=60) for i in range(2)]
    elsewhere = move(9, (1,), (3,), bytes_to_copy=60)
    free_bytes = {BrokerId(2): 100}
    waiting = [*sized, elsewhere]
    assert startable(waiting, [], RunLimits(), free_bytes) == [sized[0], elsewhere]
    assert startable(sized[1:], sized[:1], RunLimits(), free_bytes) == []
    assert startable(sized, [], RunLimits()) == sized


LEADS = [move(10 + i, (1, 2), (2, 1)) for i in range(4)]


def test_leader_changes_are_a_first_stage_with_a_limit_of_their_own() -> None:
    limits = RunLimits(moves_in_flight=2, leader_changes_in_flight=3, moves_per_broker=1)
    order = in_order([OFFSETS, *FIVE, *LEADS])
    assert order == [*LEADS, *FIVE, OFFSETS]
    assert startable(order, [], limits) == LEADS[:3]
    assert startable(order[3:], LEADS[:2], limits) == [LEADS[3]]
    assert startable(FIVE, LEADS[3:], limits) == []
    assert startable(FIVE, [], limits) == FIVE[:1]


def test_moves_off_dead_brokers_do_not_wait_for_leader_changes() -> None:
    limits = RunLimits(moves_in_flight=2, leader_changes_in_flight=3)
    urgent = {FIVE[3].id, FIVE[4].id}
    assert startable([*LEADS, *FIVE], [], limits, urgent=urgent) == [*LEADS[:3], *FIVE[3:]]
    assert startable([*LEADS[3:], *FIVE], LEADS[:3], limits, urgent=urgent) == FIVE[3:]
    assert startable(FIVE, LEADS, limits, urgent={FIVE[4].id}) == [FIVE[4]]


def test_a_copy_between_directories_and_an_internal_topic_are_no_leader_changes() -> None:
    between = move(1, (1,), (1,), dirs_before=("/a",), dirs_after=("/b",))
    internal = move(1, (1, 2), (2, 1), topic="__consumer_offsets")
    assert [is_leader_change(m) for m in (between, internal, LEADS[0])] == [False, False, True]
