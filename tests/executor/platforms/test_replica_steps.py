"""Which replica list is requested next, whatever lagging brokers show."""

from hypothesis import given
from hypothesis import strategies as st

from executor.platforms.move_progress import ReplicaSteps, steps
from tests.support.executor.plan_builders import move, view

MOVE = move(7, (1, 2, 3), (4, 5, 6))
LISTS = (MOVE.replicas_before, *steps(MOVE))


def test_each_list_is_requested_after_the_previous_one_is_reached() -> None:
    seen = ReplicaSteps()
    for at, then in zip(LISTS, (*LISTS[1:], None), strict=True):
        seen.see(MOVE, view(MOVE, at), None)
        assert seen.next(MOVE) == then


def test_a_listed_reassignment_counts_as_requested() -> None:
    """Requested by an interrupted process; the polled broker does not show it yet."""
    seen = ReplicaSteps()
    seen.see(MOVE, view(MOVE), LISTS[2])
    assert seen.next(MOVE) == LISTS[2]


@given(st.lists(st.integers(0, len(LISTS) - 1)))
def test_no_earlier_list_is_requested_again(polls: list[int]) -> None:
    seen, asked = ReplicaSteps(), 0
    for at in polls:
        seen.see(MOVE, view(MOVE, LISTS[at]), None)
        requested = seen.next(MOVE)
        number = len(LISTS) - 1 if requested is None else LISTS.index(requested)
        assert number >= asked
        asked = number
