"""Which list is asked for next, whatever brokers that lag show."""

from hypothesis import given
from hypothesis import strategies as st

from executor.client.responses import Reassignment
from executor.platforms.move_progress import steps
from executor.platforms.replica_steps import Steps
from tests.support.executor.plan_builders import move, view

MOVE = move(7, (1, 2, 3), (4, 5, 6))
LISTS = (MOVE.replicas_before, *steps(MOVE))


def test_each_list_is_asked_for_when_the_one_before_is_reached() -> None:
    seen = Steps()
    for at, then in zip(LISTS, (*LISTS[1:], None), strict=True):
        seen.see(MOVE, view(MOVE, at), None)
        assert seen.next(MOVE) == then


def test_what_the_controller_lists_was_asked_for() -> None:
    """By a process that was cut off; the broker asked has not heard of it."""
    seen = Steps()
    seen.see(MOVE, view(MOVE), Reassignment(target=LISTS[2]))
    assert seen.next(MOVE) == LISTS[2]


@given(st.lists(st.integers(0, len(LISTS) - 1)))
def test_no_list_is_asked_for_that_was_left(looks: list[int]) -> None:
    seen, asked = Steps(), 0
    for at in looks:
        seen.see(MOVE, view(MOVE, LISTS[at]), None)
        wanted = seen.next(MOVE)
        number = len(LISTS) - 1 if wanted is None else LISTS.index(wanted)
        assert number >= asked
        asked = number
