"""Whole runs on every simulated platform, interrupted at every call."""

from collections.abc import Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import steady
from lab.simulated_cluster.faults import Lost
from model.errors import ConfigError, PlimsollError
from model.ids import BrokerId, PartitionId
from model.run import MoveState, RunReport, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import ids
from tests.support.executor.simulated_runs import MB, TOPIC, Killed, SimulatedRun, interrupted_runs
from tests.support.lab.simulated_clusters import tide

SHARED = dict.fromkeys(range(4), (1,)), {0: (2,), 1: (3,), 2: (2,), 3: (4,)}
REPLICATED = (
    {0: (1, 2, 3), 1: (1, 2), 2: (1, 2), 3: (3, 1), 4: (5, 1)},
    {0: (4, 5, 3), 1: (2, 1), 2: (3, 4), 3: (3, 2), 4: (5, 1)},
)
"""Two replicas at once, a leader alone, both, a follower, and an election alone."""


DIRS = {0: ("/b", "/a", "/b"), 1: ("/b", "/a"), 2: ("any", "/b"), 3: ("/b", "any")}
"""New replicas and such that stay, one list that is only turned among them."""


def site(
    folder: Path,
    storage: StorageKind,
    throttle: int | None = None,
    *,
    lag_s: float = 0.0,
    dirs: bool = False,
    tide_s: float = 0.0,
) -> SimulatedRun:
    """Brokers that lag do so by fifths of `lag_s`; producers rise once in `tide_s`."""
    before, after = SHARED if storage is StorageKind.SHARED else REPLICATED
    return SimulatedRun(
        folder=folder,
        before=before,
        after=after,
        storage=storage,
        leads={} if storage is StorageKind.SHARED else {4: 1},
        limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=throttle, lower_segments=True),
        lags_s={b: b * lag_s / 5 for b in range(1, 6)} if lag_s else {},
        log_dirs=("/a", "/b") if dirs else ("/data",),
        dirs_after=DIRS if dirs else {},
        bytes_in=tide(0.0, 4.0 * MB, tide_s) if tide_s else steady(0.0),
    )


def planned(of: SimulatedRun) -> dict[int, tuple[tuple[int, ...], int]]:
    return {n: (tuple(to), to[0]) for n, to in of.after.items()}


CASES = pytest.mark.parametrize(
    "case",
    [
        {"storage": StorageKind.SHARED},
        {"storage": StorageKind.SHARED, "lag_s": 3.0},
        {"storage": StorageKind.TIERED},
        {"storage": StorageKind.REPLICATED},
        {"storage": StorageKind.REPLICATED, "lag_s": 3.0},
        {"storage": StorageKind.REPLICATED, "dirs": True},
        {"storage": StorageKind.REPLICATED, "throttle": 50 * MB, "tide_s": 7.0},
    ],
    ids=["shared", "lagging", "tiered", "disks", "lagging disks", "dirs", "throttle"],
)


@CASES
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_call_a_run_is_resumed_to_its_end(
    tmp_path: Path, case: dict[str, Any], made: bool
) -> None:
    for cut in interrupted_runs(tmp_path, partial(site, **case), made=made):
        report = cut.resume()
        assert (report.state, report.reason) == (RunState.DONE, "")
        assert cut.placement == planned(cut)
        assert all(map(lie_in, cut.dirs.values(), cut.dirs_after.values()))
        assert cut.is_clean


@CASES
@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_killed_at_any_call_a_run_is_rolled_back_completely(
    tmp_path: Path, case: dict[str, Any], made: bool
) -> None:
    for cut in interrupted_runs(tmp_path, partial(site, **case), made=made):
        # Requested moves continue by themselves; AutoMQ needs a minute of rest.
        cut.cluster.advance(100.0)
        cut.executor().clean_up(cut.folder)
        cut.cluster.advance(100.0)
        assert cut.roll_back().state is RunState.DONE
        for number, (replicas, leader) in cut.placement.items():
            assert replicas == cut.before[number]
            # One that is not preferred would not lead for long.
            assert leader in (replicas[0], cut.leads.get(number))
        assert all({*paths} == {"/a"} for paths in cut.dirs.values())
        assert cut.is_clean


def lie_in(result: Sequence[str], expected: Sequence[str]) -> bool:
    pairs = zip(result, expected, strict=True)
    return all(new in ("any", path) for path, new in pairs)


class Event(Enum):
    """Faults injected into the cluster during a run."""

    BROKER_DIES = "a target dies"
    BROKER_RETURNS = "it comes back"
    NOBODY_ANSWERS = "the connection is cut"
    ALL_ANSWER = "and back"
    FOREIGN_MOVE = "someone else moves a partition of the plan"
    TOPIC_GROWS = "records keep coming, faster"
    STOP = "the operator stops it"


def happen(at: SimulatedRun, event: Event) -> None:
    match event:
        case Event.BROKER_DIES:
            at.cluster.kill(BrokerId(4))
        case Event.BROKER_RETURNS:
            at.cluster.revive(BrokerId(4))
        case Event.NOBODY_ANSWERS:
            at.faults.away = True
        case Event.ALL_ANSWER:
            at.faults.away = False
        case Event.FOREIGN_MOVE:
            at.cluster.reassign(PartitionId(TOPIC, 2), FOREIGN[at.storage])
        case Event.TOPIC_GROWS:
            for partition in at.cluster.partitions.values():
                partition.bytes_in = steady(20.0 * MB)
        case Event.STOP:
            at.steering.stop()


FOREIGN = {
    StorageKind.SHARED: ids([5]),
    StorageKind.TIERED: ids([5, 2]),
    StorageKind.REPLICATED: ids([5, 2]),
}


@settings(max_examples=80, deadline=None)
@given(
    storage=st.sampled_from(StorageKind),
    throttle=st.sampled_from([None, 50 * MB]),
    lag_s=st.sampled_from([0.0, 3.0]),
    dirs=st.booleans(),
    tide_s=st.sampled_from([0.0, 7.0]),
    most_partitions=st.sampled_from([None, 1]),
    events=st.lists(st.tuples(st.floats(0, 40), st.sampled_from(Event)), max_size=4),
    lost=st.dictionaries(st.integers(0, 20), st.sampled_from(Lost), max_size=3),
    killed_at=st.none() | st.tuples(st.integers(0, 20), st.booleans()),
)
def test_any_faults_end_in_a_legal_and_honest_state(
    tmp_path_factory: pytest.TempPathFactory,
    storage: StorageKind,
    throttle: int | None,
    lag_s: float,
    dirs: bool,
    tide_s: float,
    most_partitions: int | None,
    events: list[tuple[float, Event]],
    lost: dict[int, Lost],
    killed_at: tuple[int, bool] | None,
) -> None:
    at = site(
        tmp_path_factory.mktemp("run"),
        storage,
        throttle,
        lag_s=lag_s,
        dirs=dirs and storage is StorageKind.REPLICATED,
        tide_s=tide_s,
    )
    at.faults.lost, at.faults.most_partitions = lost, most_partitions
    for seconds, event in events:
        at.cluster.after(seconds, partial(happen, at, event))
    if killed_at is not None:
        at.kill_at(killed_at[0], made=killed_at[1])
    report = ended(at)
    at.stop_killing()
    at.faults.lost.clear()
    at.cluster.advance(200.0)
    for number, (replicas, _) in at.placement.items():
        assert len(set(replicas)) == len(replicas) >= len(at.before[number])
    if report is not None:
        reported = {m.partition: m.state for m in report.moves}
        where = {n: replicas for n, (replicas, _) in at.placement.items()}
        stolen = Event.FOREIGN_MOVE in {event for _, event in events}
        for number, state in reported.items():
            if state is MoveState.DONE and not stolen:
                assert where[number] == tuple(at.after[number])
            if state is MoveState.PLANNED and not stolen:
                assert where[number] == tuple(at.before[number])
    at.faults.away = False
    at.cluster.revive(BrokerId(4))
    with suppress(ConfigError):
        at.executor().clean_up(at.folder)
    assert at.is_clean


def ended(at: SimulatedRun) -> RunReport | None:
    """How a run ended; None where it raised, in plimsoll's own words, or was killed."""
    with suppress(PlimsollError, Killed):
        return at.run()
    return None


def test_changed_partitions_are_skipped_and_the_rest_continues(tmp_path: Path) -> None:
    at = site(tmp_path, StorageKind.SHARED)
    at.cluster.after(1.0, partial(happen, at, Event.FOREIGN_MOVE))
    report = at.run()
    assert [m.state for m in report.moves] == [
        *[MoveState.DONE] * 2,
        MoveState.DROPPED,
        MoveState.DONE,
    ]
    assert report.moves[2].note == "orders-2 is on [5], the plan expects [2]"
    assert report.state is RunState.FAILED


@pytest.mark.parametrize("throttle", [None, 50 * MB])
def test_a_topic_deleted_while_it_moves_stops_no_other_move(
    tmp_path: Path, throttle: int | None
) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1, 2), 1: (2, 3), 2: (3, 1)},
        after={0: (1, 4), 1: (2, 4), 2: (3, 4)},
        limits=RunLimits(moves_in_flight=1, throttle_bytes_per_s=throttle),
    )

    def delete() -> None:
        del at.cluster.partitions[PartitionId(TOPIC, 0)]

    at.cluster.after(1.0, delete)
    report = at.run()
    states = [move.state for move in report.moves]
    assert states == [MoveState.DROPPED, MoveState.DONE, MoveState.DONE]
    assert report.moves[0].note == "orders-0 no longer exists"
    assert report.state is RunState.FAILED
    assert report.reason.startswith("1 of 3 moves could not be made, the first of orders-0")
    assert at.is_clean


def test_a_throttle_too_low_for_a_copy_is_raised_and_reported(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1, 2)},
        after={0: (1, 3)},
        limits=RunLimits(throttle_bytes_per_s=30 * MB),
    )
    partition = at.cluster.partitions[PartitionId(TOPIC, 0)]
    at.cluster.after(5.0, lambda: setattr(partition, "bytes_in", steady(40.0 * MB)))
    report = at.run()
    assert report.state is RunState.DONE
    assert "fell behind its producers" in report.moves[0].note
    assert at.is_clean


def test_a_move_waits_for_disk_space_on_its_target(tmp_path: Path) -> None:
    """All at once they would fill the disk of broker 2, which then halts."""
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1,), 1: (1,), 2: (2,)},
        after={0: (2,), 1: (2,), 2: (3,)},
        log_bytes=600.0 * MB,
        disk_bytes=1500.0 * MB,
        limits=RunLimits(disk_reserve_bytes=50 * MB),
    )
    assert at.run().state is RunState.DONE
    assert not at.cluster.dead


def test_a_move_that_never_fits_is_skipped_with_the_figures(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1,), 1: (3,), 2: (2,)},
        after={0: (2,), 1: (4,)},
        log_bytes=600.0 * MB,
        disk_bytes=1000.0 * MB,
        limits=RunLimits(moves_in_flight=1, disk_reserve_bytes=50 * MB),
    )
    report = at.run()
    assert report.moves[0].note == (
        "broker 2 has 350 MB free beyond its reserve, and orders-0 needs 600 MB"
    )
    assert report.moves[1].state is MoveState.DONE


def test_a_dead_broker_outside_the_plan_stops_the_run(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1,), 1: (1,), 9: (6, 7)},
        after={0: (2,), 1: (3,)},
        brokers=7,
        log_bytes=3000.0 * MB,
        limits=RunLimits(moves_in_flight=1),
    )
    at.cluster.after(5.0, partial(at.cluster.kill, BrokerId(7)))
    report = at.run()
    assert report.state is RunState.FAILED
    assert report.reason == "broker 7 died or was fenced"
    assert [m.state for m in report.moves] == [MoveState.DONE, MoveState.PLANNED]


@pytest.mark.parametrize("storage", [StorageKind.SHARED, StorageKind.REPLICATED])
def test_the_report_bounds_the_leader_outage(tmp_path: Path, storage: StorageKind) -> None:
    """AutoMQ hands over in 1.5 s; Kafka elects at once, at most between two polls."""
    at = site(tmp_path, storage)
    before = {n: leader for n, (_, leader) in at.placement.items()}
    stalled = at.cluster.opening_s if storage is StorageKind.SHARED else 0.0
    for reported in at.run().moves:
        least, most = reported.stall_at_least_s, reported.stall_at_most_s
        assert least is not None
        assert most is not None
        changes = reported.replicas_after[0] != before[reported.partition]
        assert least <= stalled <= most
        assert (most > 0) == changes


def test_a_resumed_run_reports_measurements_from_before(tmp_path: Path) -> None:
    at = site(tmp_path, StorageKind.SHARED)
    # The first request moves two at once, the next ones one each.
    at.kill_at(1, made=True)
    with suppress(Killed):
        at.run()
    at.stop_killing()
    reported = at.resume().moves
    watched = [m.stall_at_most_s is not None for m in reported]
    assert [m.requests for m in reported] == [1] * 4
    assert (watched.count(True), watched.count(False)) == (2, 2)


@pytest.mark.parametrize("storage", [StorageKind.SHARED, StorageKind.REPLICATED])
def test_a_request_that_is_too_large_is_halved(tmp_path: Path, storage: StorageKind) -> None:
    at = site(tmp_path, storage)
    at.limits = RunLimits(moves_in_flight=10)
    at.faults.most_partitions = 1
    report = at.run()
    assert (report.state, report.reason) == (RunState.DONE, "")
    assert at.placement == planned(at)


def test_a_policy_that_refuses_moves_ends_the_run_with_its_message(tmp_path: Path) -> None:
    at = site(tmp_path, StorageKind.SHARED)
    at.faults.most_partitions = 0
    report = at.run()
    message = "Unable to perform excessively large batch operation."
    assert report.state is RunState.FAILED
    assert report.reason == f"orders-0 was refused: {message}"
    assert [m.state for m in report.moves[1:]] == [MoveState.DROPPED, *[MoveState.PLANNED] * 2]
    assert at.placement == {n: (b, b[0]) for n, b in at.before.items()}
