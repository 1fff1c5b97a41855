"""Which moves start, in which order, and how many at once."""

from executor.schedule.admission import in_order, startable
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
