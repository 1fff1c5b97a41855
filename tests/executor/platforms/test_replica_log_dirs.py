"""The stage of a move that names log directories, read from what brokers show."""

from collections.abc import Collection, Mapping, Sequence
from typing import cast

import pytest

from executor.client.cluster_admin import Admin
from executor.client.responses import (
    LogDirView,
    PartitionView,
    Reassignment,
    Verdict,
)
from executor.platforms.move_progress import progress_of as placed
from executor.platforms.platform import Progress, Stage
from executor.platforms.replica_log_dirs import (
    bytes_beside,
    bytes_copied,
    progress_of,
    requests,
)
from executor.platforms.stock_kafka import ReplicatedKafka
from executor.run.move_state_machine import MoveStateMachine, Step
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
    lies: str, comes: str = "", size: int = 300, copied: int = 100
) -> tuple[LogDirView, ...]:
    """A broker's directories: where the replica lies, and what it is copied into."""
    return tuple(
        log_dir(
            path,
            {PID: size} if path[1] in lies else {},
            {PID: copied} if path[1] in comes else {},
        )
        for path in PATHS
    )


def stage(
    of: Move, found: PartitionView, seen: Mapping[BrokerId, Sequence[LogDirView]]
) -> Stage:
    return progress_of(of, placed(of, found, None), seen).stage


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("a"), Stage.NOT_BEGUN),
        (shown("a", "b"), Stage.MOVING),
        (shown("ab"), Stage.MOVING),
        (shown("b"), Stage.DONE),
        (shown("c"), Stage.LOST),
        (shown("a", "c"), Stage.LOST),
        (shown(""), Stage.MOVING),
        ((), Stage.MOVING),
    ],
)
def test_where_a_replica_lies_tells_how_far_it_is(
    dirs: tuple[LogDirView, ...], expected: Stage
) -> None:
    assert stage(STAYS, view(STAYS), {ONE: dirs}) is expected


def test_it_has_not_begun_although_a_replica_lags() -> None:
    lagging = view(STAYS, (1, 2), in_sync=(1,))
    assert stage(STAYS, lagging, {ONE: shown("a")}) is Stage.NOT_BEGUN
    assert stage(STAYS, lagging, {ONE: shown("b")}) is Stage.MOVING


def test_somebody_elses_directory_is_named_with_its_broker() -> None:
    now = placed(STAYS, view(STAYS), None)
    found = progress_of(STAYS, now, {ONE: shown("a", "c")})
    assert found.reason == (
        "somebody else changes the log directory of orders-7 on broker 1"
    )


def test_with_one_replica_there_and_one_not_asked_for_it_is_halfway() -> None:
    seen = {ONE: shown("b"), TWO: shown("a")}
    assert stage(BOTH, view(BOTH), seen) is Stage.HALFWAY
    assert stage(BOTH, view(BOTH), seen | {TWO: shown("a", "b")}) is Stage.MOVING


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("b"), Stage.DONE),
        (shown("a"), Stage.HALFWAY),
        (shown("a", "b"), Stage.MOVING),
        (shown("a", "c"), Stage.LOST),
    ],
)
def test_a_replica_that_came_elsewhere_is_to_be_sent_on(
    dirs: tuple[LogDirView, ...], expected: Stage
) -> None:
    seen = {TWO: shown("a"), THREE: dirs}
    assert stage(GOES, view(GOES, (3, 2)), seen) is expected


@pytest.mark.parametrize(
    ("dirs", "expected"),
    [
        (shown("a"), Stage.NOT_BEGUN),
        (shown("a", "b"), Stage.MOVING),
        (shown("b"), Stage.HALFWAY),
    ],
)
def test_before_the_reassignment_directories_tell_whether_it_has_begun(
    dirs: tuple[LogDirView, ...], expected: Stage
) -> None:
    seen = {ONE: shown("a"), TWO: dirs}
    assert stage(GOES_AND_STAYS, view(GOES_AND_STAYS), seen) is expected


def test_a_listed_reassignment_goes_before_what_directories_show() -> None:
    target = Reassignment(target=GOES.replicas_after)
    now = placed(GOES, view(GOES, (3, 2, 1), in_sync=(1, 2)), target)
    assert progress_of(GOES, now, {THREE: shown("a")}).stage is Stage.MOVING


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


def test_what_a_broker_copies_first_counts_as_beside() -> None:
    other = move(8).id
    queue = (log_dir("/b", {}, {PID: 0, other: 70}),)
    assert bytes_beside(STAYS, {ONE: queue, TWO: queue}) == 70


def test_a_replica_that_waits_for_its_turn_is_not_stuck() -> None:
    flight = MoveStateMachine(STAYS, stuck_s=10.0)
    flight.sent(0.0, Verdict.ACCEPTED)
    for number in range(5):
        found = Progress(stage=Stage.MOVING, bytes_copied=0, bytes_beside=number)
        assert flight.see(found, 9.0 * number) is Step.WAIT
    assert flight.see(found, 9.0 * number + 10.0) is Step.STUCK


class CaughtBetween:
    """A broker that changes over: the first look shows the copy no more, nor there."""

    def __init__(self) -> None:
        self._looks = [shown("a"), shown("b")]

    def reassignments(self) -> dict[PartitionId, Reassignment]:
        return {}

    def partitions(
        self, ids: Collection[PartitionId]
    ) -> dict[PartitionId, PartitionView]:
        return {pid: view(STAYS) for pid in ids}

    def log_dirs(
        self, broker: BrokerId, ids: Collection[PartitionId]
    ) -> tuple[LogDirView, ...]:
        return self._looks.pop(0) if broker == ONE else shown("a")


def test_a_change_over_between_two_looks_is_not_taken_for_a_cancelled_move() -> None:
    kafka = ReplicatedKafka(cast("Admin", CaughtBetween()))
    assert kafka.progress([STAYS])[PID].stage is Stage.DONE
