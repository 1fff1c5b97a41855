"""The stage of a move that names log directories, read from what brokers show."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import LogDirView, PartitionView, ResponseStatus
from executor.platforms.move_progress import progress_of as placed
from executor.platforms.platform import MoveStage, ObservedMove
from executor.platforms.replica_log_dirs import (
    bytes_copied,
    bytes_inside_brokers,
    progress_of,
    requests,
)
from executor.platforms.stock_kafka import ReplicatedKafka
from executor.run.move_state_machine import MoveStateMachine, MoveStep
from model.ids import BrokerId, PartitionId
from model.plan.plan import ANY_DIR, Move
from tests.support.executor.plan_builders import log_dir, move, view

ONE, TWO, THREE = map(BrokerId, (1, 2, 3))
STAYS = move(7, (1, 2), (1, 2), dirs_before=("/a", "/a"), dirs_after=("/b", "/a"))
BOTH = move(7, (1, 2), (1, 2), dirs_before=("/a", "/a"), dirs_after=("/b", "/b"))
GOES = move(7, (1, 2), (3, 2), dirs_before=("/a", "/a"), dirs_after=("/b", "/a"))
GOES_AND_STAYS = GOES.model_copy(update={"log_dirs_after": ("/b", "/b")})
PID = STAYS.id
PATHS = ("/a", "/b", "/c")


def shown(
    replicas: str, comes: str = "", size: int = 300, copied: int = 100
) -> tuple[LogDirView, ...]:
    """A broker's directories: the one of the replica, and the one it is copied into."""
    return tuple(
        log_dir(
            path,
            {PID: size} if path[1] in replicas else {},
            {PID: copied} if path[1] in comes else {},
        )
        for path in PATHS
    )


def stage(
    of: Move, result: PartitionView, seen: Mapping[BrokerId, Sequence[LogDirView]]
) -> MoveStage:
    return progress_of(of, placed(of, result, None), seen).stage


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("a"), MoveStage.NOT_BEGUN),
        (shown("a", "b"), MoveStage.MOVING),
        (shown("ab"), MoveStage.MOVING),
        (shown("b"), MoveStage.DONE),
        (shown("c"), MoveStage.LOST),
        (shown("a", "c"), MoveStage.LOST),
        (shown(""), MoveStage.MOVING),
        ((), MoveStage.MOVING),
    ],
)
def test_a_replicas_directory_shows_its_progress(
    dirs: tuple[LogDirView, ...], expected: MoveStage
) -> None:
    assert stage(STAYS, view(STAYS), {ONE: dirs}) is expected


def test_a_lagging_replica_does_not_mean_that_a_move_has_begun() -> None:
    lagging = view(STAYS, (1, 2), in_sync=(1,))
    assert stage(STAYS, lagging, {ONE: shown("a")}) is MoveStage.NOT_BEGUN
    assert stage(STAYS, lagging, {ONE: shown("b")}) is MoveStage.MOVING


def test_an_unplanned_directory_is_named_with_its_broker() -> None:
    now = placed(STAYS, view(STAYS), None)
    result = progress_of(STAYS, now, {ONE: shown("a", "c")})
    assert result.reason == ("someone else changes the log directory of orders-7 on broker 1")


def test_a_move_with_one_of_two_replicas_done_is_halfway() -> None:
    seen = {ONE: shown("b"), TWO: shown("a")}
    assert stage(BOTH, view(BOTH), seen) is MoveStage.HALFWAY
    assert stage(BOTH, view(BOTH), seen | {TWO: shown("a", "b")}) is MoveStage.MOVING


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("b"), MoveStage.DONE),
        (shown("a"), MoveStage.HALFWAY),
        (shown("a", "b"), MoveStage.MOVING),
        (shown("a", "c"), MoveStage.LOST),
    ],
)
def test_a_replica_in_the_wrong_directory_is_to_be_moved_again(
    dirs: tuple[LogDirView, ...], expected: MoveStage
) -> None:
    seen = {TWO: shown("a"), THREE: dirs}
    assert stage(GOES, view(GOES, (3, 2)), seen) is expected


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("a"), MoveStage.NOT_BEGUN),
        (shown("a", "b"), MoveStage.MOVING),
        (shown("b"), MoveStage.HALFWAY),
    ],
)
def test_directories_show_whether_a_move_has_begun(
    dirs: tuple[LogDirView, ...], expected: MoveStage
) -> None:
    seen = {ONE: shown("a"), TWO: dirs}
    assert stage(GOES_AND_STAYS, view(GOES_AND_STAYS), seen) is expected


def test_a_listed_reassignment_overrides_the_directories() -> None:
    now = placed(GOES, view(GOES, (3, 2, 1), in_sync=(1, 2)), GOES.replicas_after)
    assert progress_of(GOES, now, {THREE: shown("a")}).stage is MoveStage.MOVING


def test_directories_match_the_replicas_shown() -> None:
    now = placed(GOES, view(GOES, (3, 2)), None)
    result = progress_of(GOES, now, {THREE: shown("b")})
    assert result.log_dirs == ("/b", ANY_DIR)


def test_each_request_names_broker_and_source() -> None:
    assert requests(GOES_AND_STAYS) == (
        "AlterReplicaLogDirs orders-7 on broker 3: /b",
        "AlterReplicaLogDirs orders-7 on broker 2: /a -> /b",
    )
    assert requests(move(7, (1, 2), (3, 2))) == ()


def test_bytes_are_those_on_new_brokers_and_in_new_directories() -> None:
    after = view(GOES_AND_STAYS, (3, 2))
    copying = {TWO: shown("a", "b"), THREE: shown("b", size=40)}
    there = {TWO: shown("b"), THREE: shown("b", size=40)}
    assert bytes_copied(GOES_AND_STAYS, after, copying) == 140
    assert bytes_copied(GOES_AND_STAYS, after, there) == 340
    assert bytes_copied(GOES_AND_STAYS, after, {TWO: shown("a")}) is None
    assert bytes_copied(GOES_AND_STAYS, view(GOES_AND_STAYS), copying) == 100


def test_copies_queued_first_count_as_progress() -> None:
    other = move(8).id
    queue = (log_dir("/b", {}, {PID: 0, other: 70}),)
    assert bytes_inside_brokers(STAYS, {ONE: queue, TWO: queue}) == 70


def test_a_replica_waiting_for_its_turn_is_not_stuck() -> None:
    flight = MoveStateMachine(STAYS, stuck_s=10.0)
    flight.sent(0.0, ResponseStatus.ACCEPTED)
    for number in range(5):
        result = ObservedMove(stage=MoveStage.MOVING, bytes_copied=0, bytes_inside_brokers=number)
        assert flight.see(result, 9.0 * number) is MoveStep.WAIT
    assert flight.see(result, 9.0 * number + 10.0) is MoveStep.STUCK


class CaughtBetween:
    """A broker switches over: the first poll shows the copy in neither directory."""

    def __init__(self) -> None:
        self._looks = [shown("a"), shown("b")]

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        return {}

    def partitions(self, ids: Collection[PartitionId]) -> dict[PartitionId, PartitionView]:
        return {pid: view(STAYS) for pid in ids}

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        return self._looks.pop(0) if broker == ONE else shown("a")


def test_a_directory_switch_between_two_polls_is_not_a_cancelled_move() -> None:
    kafka = ReplicatedKafka(cast("ClusterAdmin", CaughtBetween()))
    assert kafka.progress([STAYS])[PID].stage is MoveStage.DONE
