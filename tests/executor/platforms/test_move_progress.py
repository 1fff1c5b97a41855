"""The stage of a move, read from what a cluster shows."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.client.responses import PartitionView, ResponseStatus
from executor.platforms.move_progress import foreign, progress_of, steps
from executor.platforms.platform import MoveStage
from executor.run.move_state_machine import MoveStateMachine, MoveStep
from tests.support.executor.plan_builders import ids, move, view

MOVE = move(7, (1, 2), (3, 2))


@pytest.mark.parametrize(
    ("result", "stage"),
    [
        (view(MOVE), MoveStage.NOT_BEGUN),
        (view(MOVE, (3, 2, 1), in_sync=(1, 2)), MoveStage.MOVING),
        (view(MOVE, (3, 2), in_sync=(2,), leader=2), MoveStage.MOVING),
        (view(MOVE, (3, 2), in_sync=(3,)), MoveStage.DONE),
        (view(MOVE, (3, 2), leader=2), MoveStage.ARRIVED),
        (view(MOVE, (3, 2)), MoveStage.DONE),
        (view(MOVE, (2, 3), leader=3), MoveStage.LOST),
        (view(MOVE, (1, 4)), MoveStage.LOST),
        (view(MOVE, (3, 2), topic_id="new"), MoveStage.LOST),
        (None, MoveStage.LOST),
    ],
)
def test_metadata_decide_without_a_listed_reassignment(
    result: PartitionView | None, stage: MoveStage
) -> None:
    assert progress_of(MOVE, result, None).stage is stage


@pytest.mark.parametrize(
    ("leader", "stage"), [(2, MoveStage.DONE), (3, MoveStage.DONE), (4, MoveStage.ARRIVED)]
)
def test_a_leader_that_no_election_brings_back_may_be_replaced(
    leader: int, stage: MoveStage
) -> None:
    keeps = move(7, (1, 2, 4), (3, 2, 4), leader_before=2, leader_after=2)
    assert progress_of(keeps, view(keeps, (3, 2, 4), leader=leader), None).stage is stage


def test_a_listed_reassignment_is_in_progress_whatever_metadata_show() -> None:
    listed = ids([3, 2])
    assert progress_of(MOVE, view(MOVE), listed).stage is MoveStage.MOVING


def test_a_reassignment_to_another_target_is_foreign() -> None:
    seen = progress_of(MOVE, view(MOVE), ids([4, 2]))
    assert seen.stage is MoveStage.LOST
    assert seen.reason == "someone else moves orders-7 to [4, 2]"


def test_a_leader_change_needs_only_an_election() -> None:
    reorder = move(7, (1, 2), (1, 2), leader_before=2)
    assert progress_of(reorder, view(reorder), None).stage is MoveStage.ARRIVED


def test_only_reassignments_outside_the_plan_are_foreign() -> None:
    ours, theirs = MOVE.id, move(9).id
    listed = {ours: (), theirs: ()}
    assert foreign([MOVE], {ours: listed[ours]}) is None
    assert foreign([MOVE], listed) == "someone else is moving orders-9"


THREE = move(7, (1, 2, 3), (4, 5, 6))


@pytest.mark.parametrize(("listed", "step"), [(None, MoveStep.STUCK), (True, MoveStep.WAIT)])
def test_new_records_are_no_progress_once_no_reassignment_is_listed(
    listed: bool | None, step: MoveStep
) -> None:
    """Replica 3, which the step keeps, has died; what producers add makes the others grow."""
    machine = MoveStateMachine(THREE, stuck_s=600.0)
    machine.sent(0.0, ResponseStatus.ACCEPTED)
    seen = view(THREE, (1, 5, 3), in_sync=(1, 5))
    target = ids([1, 5, 3]) if listed else None
    for minute in range(1, 12):
        found = progress_of(THREE, seen, target)
        assert found.stage is MoveStage.MOVING
        now = machine.see(replace(found, bytes_copied=minute * 1000), 60.0 * minute)
    assert now is step


def test_replicas_are_exchanged_one_by_one_and_the_leader_last() -> None:
    assert steps(THREE) == (ids([1, 5, 3]), ids([1, 5, 6]), ids([4, 5, 6]))
    assert steps(MOVE) == (ids([3, 2]),)
    assert steps(move(7, (1, 2), (2, 1))) == (ids([2, 1]),)
    # A leader that goes over to a replica that stays.
    assert steps(move(7, (1, 2, 3), (3, 4, 5))) == (ids([1, 4, 3]), ids([3, 4, 5]))


@settings(deadline=None)
@given(before=st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True), data=st.data())
def test_no_step_has_more_than_one_extra_replica(before: list[int], data: st.DataObject) -> None:
    size = len(before)
    after = data.draw(st.lists(st.integers(1, 9), min_size=size, max_size=size, unique=True))
    lists = (ids(before), *steps(move(7, before, after)))
    assert lists[-1] == ids(after)
    for old, new in pairwise(lists):
        assert len(set(new)) == size
        assert len(set(new) - set(old)) <= 1


@pytest.mark.parametrize(
    ("result", "stage"),
    [
        (view(THREE, (1, 5, 2, 3)), MoveStage.MOVING),
        (view(THREE, (1, 5, 3), in_sync=(1, 3)), MoveStage.MOVING),
        (view(THREE, (1, 5, 3)), MoveStage.HALFWAY),
        (view(THREE, (1, 5, 6)), MoveStage.HALFWAY),
        (view(THREE, (4, 5, 6, 1)), MoveStage.MOVING),
        (view(THREE, (4, 5, 6)), MoveStage.DONE),
        (view(THREE, (1, 2, 6)), MoveStage.LOST),
    ],
)
def test_between_two_steps_it_is_halfway(result: PartitionView, stage: MoveStage) -> None:
    assert progress_of(THREE, result, None).stage is stage


def test_replicas_are_added_or_removed_one_by_one_and_the_leader_goes_last() -> None:
    assert steps(move(7, (1,), (1, 2, 3))) == (ids([1, 2]), ids([1, 2, 3]))
    assert steps(move(7, (1, 2, 3), (2,))) == (ids([1, 2]), ids([2]))
    assert steps(move(7, (1, 2, 3), (2, 1))) == (ids([2, 1]),)


@settings(deadline=None)
@given(replicas=st.lists(st.integers(1, 9), min_size=2, max_size=6, unique=True), data=st.data())
def test_each_step_adds_or_removes_one_replica(replicas: list[int], data: st.DataObject) -> None:
    fewer = replicas[: data.draw(st.integers(1, len(replicas) - 1))]
    for before, after in ((fewer, replicas), (replicas, fewer)):
        lists = (ids(before), *steps(move(7, before, after)))
        assert lists[-1] == ids(after)
        for old, new in pairwise(lists):
            assert len({*old} ^ {*new}) == 1
            assert set(fewer) <= set(new)


def test_a_reassignment_to_a_step_is_ours_and_another_one_is_foreign() -> None:
    ours, theirs = ids([1, 5, 3]), ids([1, 2, 6])
    for target, stage in ((ours, MoveStage.MOVING), (theirs, MoveStage.LOST)):
        assert progress_of(THREE, view(THREE), target).stage is stage
