"""The journal's disk is full, or the journal is removed, in the middle of a run."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executor.journal.run_history import read_content
from executor.journal.run_journal import run_paths
from executor.timing import RunLimits
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.run import JournalEvent, MoveState, RunProgress, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.simulated_runs import MB, SimulatedRun


def site(folder: Path, storage: StorageKind = StorageKind.REPLICATED) -> SimulatedRun:
    return SimulatedRun(
        folder=folder,
        before=dict.fromkeys(range(4), (1, 2)),
        after=dict.fromkeys(range(4), (3, 2)),
        storage=storage,
        log_bytes=600.0 * MB,
        limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=50 * MB),
    )


class Disk:
    """The journal's disk; writes to the open journal go to /dev/full while it is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[int, int] = {}

    def fill(self) -> None:
        (path,) = run_paths(self._folder)
        full = os.open("/dev/full", os.O_RDWR)
        for name in os.listdir("/proc/self/fd"):
            if os.path.realpath(f"/proc/self/fd/{name}") == str(path.resolve()):
                self._kept[int(name)] = os.dup(int(name))
                os.dup2(full, int(name))
        os.close(full)
        assert self._kept

    def free(self) -> None:
        while self._kept:
            number, remaining = self._kept.popitem()
            os.dup2(remaining, number)
            os.close(remaining)


@contextmanager
def disk(folder: Path) -> Iterator[Disk]:
    of = Disk(folder)
    yield of
    for remaining in of._kept.values():
        os.close(remaining)


def is_throttled(at: SimulatedRun) -> bool:
    return any(broker.configs for broker in at.cluster.brokers.values())


def in_flight(at: SimulatedRun) -> bool:
    return bool(SimulatedAdmin(at.cluster, Faults()).reassignments())


def planned(at: SimulatedRun) -> dict[int, tuple[tuple[int, ...], int]]:
    return {n: (tuple(to), to[0]) for n, to in at.after.items()}


@pytest.mark.parametrize("storage", [StorageKind.REPLICATED, StorageKind.TIERED])
@pytest.mark.parametrize("full_s", [12.0, 20.0, 40.0])
def test_copies_in_flight_keep_their_throttle_and_end(
    tmp_path: Path, storage: StorageKind, full_s: float
) -> None:
    at = site(tmp_path, storage)
    requests: list[str] = []
    bare: list[float] = []

    def on_call(call: str, *, made: bool) -> None:
        if not made and call == "reassign":
            requests.append(call)
        if in_flight(at) and not is_throttled(at):
            bare.append(at.cluster.now_s)

    with disk(tmp_path) as its:
        at.cluster.after(full_s, its.fill)
        at.cluster.after(full_s, lambda: requests.append("full"))
        at.faults.on_call = on_call
        report = at.run()
    at.stop_killing()
    assert not bare
    assert "full" not in requests or requests[-1] == "full"
    assert report.state is RunState.FAILED
    assert "(No space left on device), so nothing further is sent" in report.reason
    assert report.reason.endswith("Free disk space, then continue with plimsoll run --resume.")
    assert at.is_clean
    states = [move.state for move in report.moves]
    assert set(states) <= {MoveState.DONE, MoveState.PLANNED, MoveState.STUCK}
    assert not in_flight(at)
    resumed = at.resume()
    assert (resumed.state, resumed.reason) == (RunState.DONE, "")
    assert at.placement == planned(at)
    assert at.is_clean
    (path,) = run_paths(tmp_path)
    assert not read_content(path).damage


def test_unwritten_records_are_written_once_there_is_space(tmp_path: Path) -> None:
    at = site(tmp_path)
    with disk(tmp_path) as its:

        def observe(progress: RunProgress) -> None:
            if progress.count(MoveState.DONE) == 2:
                its.free()

        at.cluster.after(12.0, its.fill)
        report = at.run(observe=observe)
    assert report.state is RunState.FAILED
    (path,) = run_paths(tmp_path)
    content = read_content(path)
    assert not content.damage
    events = [record.event for record in content.records]
    assert events.count(JournalEvent.MOVED) == 2
    assert JournalEvent.UNTHROTTLED in events
    assert events[-1] is JournalEvent.ENDED


@pytest.mark.parametrize("whole_folder", [False, True])
def test_a_journal_that_is_removed_during_a_run_is_written_again(
    tmp_path: Path, *, whole_folder: bool
) -> None:
    at = site(tmp_path / "journal")

    def remove() -> None:
        if whole_folder:
            shutil.rmtree(at.folder)
        else:
            (path,) = run_paths(at.folder)
            path.unlink()

    at.cluster.after(20.0, remove)
    report = at.run()
    assert report.state is RunState.DONE
    (path,) = run_paths(at.folder)
    content = read_content(path)
    assert not content.damage
    assert content.records[-1].event is JournalEvent.ENDED
    assert at.roll_back().state is RunState.DONE
    assert at.placement == {n: (of, of[0]) for n, of in at.before.items()}
