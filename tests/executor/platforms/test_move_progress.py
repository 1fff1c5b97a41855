"""The stage of a move, read from what a cluster shows."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.client.responses import PartitionView, Reassignment
from executor.platforms.move_progress import foreign, progress_of, steps
from executor.platforms.platform import Stage
from tests.support.executor.plan_builders import ids, move, view

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


THREE = move(7, (1, 2, 3), (4, 5, 6))


def test_replicas_are_exchanged_one_by_one_and_the_leader_last() -> None:
    assert steps(THREE) == (ids([1, 5, 3]), ids([1, 5, 6]), ids([4, 5, 6]))
    assert steps(MOVE) == (ids([3, 2]),)
    assert steps(move(7, (1, 2), (2, 1))) == (ids([2, 1]),)
    # A leader that goes over to a replica that stays.
    assert steps(move(7, (1, 2, 3), (3, 4, 5))) == (ids([1, 4, 3]), ids([3, 4, 5]))


@settings(deadline=None)
@given(
    before=st.lists(st.integers(1, 9), min_size=1, max_size=5, unique=True),
    data=st.data(),
)
def test_no_step_has_more_than_one_extra_replica(
    before: list[int], data: st.DataObject
) -> None:
    size = len(before)
    after = data.draw(
        st.lists(st.integers(1, 9), min_size=size, max_size=size, unique=True)
    )
    lists = (ids(before), *steps(move(7, before, after)))
    assert lists[-1] == ids(after)
    for old, new in pairwise(lists):
        assert len(set(new)) == size
        assert len(set(new) - set(old)) <= 1


@pytest.mark.parametrize(
    ("found", "stage"),
    [
        (view(THREE, (1, 5, 2, 3)), Stage.MOVING),
        (view(THREE, (1, 5, 3), in_sync=(1, 3)), Stage.MOVING),
        (view(THREE, (1, 5, 3)), Stage.HALFWAY),
        (view(THREE, (1, 5, 6)), Stage.HALFWAY),
        (view(THREE, (4, 5, 6, 1)), Stage.MOVING),
        (view(THREE, (4, 5, 6)), Stage.DONE),
        (view(THREE, (1, 2, 6)), Stage.LOST),
    ],
)
def test_between_two_steps_it_is_halfway(found: PartitionView, stage: Stage) -> None:
    assert progress_of(THREE, found, None).stage is stage


def test_a_listed_step_is_ours_and_another_way_there_is_not() -> None:
    ours, theirs = ids([1, 5, 3]), ids([1, 2, 6])
    for target, stage in ((ours, Stage.MOVING), (theirs, Stage.LOST)):
        listed = Reassignment(target=target)
        assert progress_of(THREE, view(THREE), listed).stage is stage
