"""The stage of a move, read from what a cluster shows."""

import pytest

from executor.answers import PartitionView, Reassignment
from executor.dialect import Stage
from executor.placement import foreign, progress_of
from tests.executor.plans import ids, move, view

MOVE = move(7, (1, 2), (3, 2))


@pytest.mark.parametrize(
    ("found", "stage"),
    [
        (view(MOVE), Stage.NOT_BEGUN),
        (view(MOVE, (3, 2, 1), in_sync=(1, 2)), Stage.MOVING),
        (view(MOVE, (3, 2), in_sync=(2,), leader=2), Stage.MOVING),
        (view(MOVE, (3, 2), leader=2), Stage.ARRIVED),
        (view(MOVE, (3, 2)), Stage.DONE),
        (view(MOVE, (2, 3), leader=3), Stage.LOST),
        (view(MOVE, (1, 4)), Stage.LOST),
        (view(MOVE, (3, 2), topic_id="new"), Stage.LOST),
        (None, Stage.LOST),
    ],
)
def test_without_a_listed_reassignment_metadata_decide(
    found: PartitionView | None, stage: Stage
) -> None:
    assert progress_of(MOVE, found, None).stage is stage


def test_while_it_is_listed_it_moves_whatever_metadata_say() -> None:
    listed = Reassignment(target=ids([3, 2]))
    assert progress_of(MOVE, view(MOVE), listed).stage is Stage.MOVING


def test_a_listed_reassignment_to_elsewhere_is_somebody_elses() -> None:
    seen = progress_of(MOVE, view(MOVE), Reassignment(target=ids([4, 2])))
    assert seen.stage is Stage.LOST
    assert seen.reason == "somebody else moves orders-7 to [4, 2]"


def test_a_mere_change_of_leader_needs_only_the_election() -> None:
    reorder = move(7, (1, 2), (1, 2), leader_before=2)
    assert progress_of(reorder, view(reorder), None).stage is Stage.ARRIVED


def test_only_reassignments_outside_the_plan_are_foreign() -> None:
    ours, theirs = MOVE.id, move(9).id
    listed = {ours: Reassignment(target=()), theirs: Reassignment(target=())}
    assert foreign([MOVE], {ours: listed[ours]}) is None
    assert foreign([MOVE], listed) == "somebody else is moving orders-9"
