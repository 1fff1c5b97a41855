"""Requests of an operator during a run on a simulated cluster."""

import contextlib
from pathlib import Path

import pytest

from executor.journal.run_history import past_run, read_journal
from executor.journal.run_journal import RunJournal, run_path
from executor.run.operator_control import AskedRate, Steering
from executor.timing import RunLimits
from lab.simulated_cluster.cluster_state import steady
from lab.simulated_cluster.faults import Lost
from model.ids import PartitionId
from model.run import JournalEvent, MoveState, RunReport, RunState
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID, ids
from tests.support.executor.simulated_runs import MB, TOPIC, SimulatedRun, interrupted_runs

ABORTED = (RunState.STOPPED, "aborted by the operator")


def copying(folder: Path) -> SimulatedRun:
    """Two moves of 24 s each at once, the second one of two replicas; one waits."""
    return SimulatedRun(
        folder=folder,
        before={0: (1, 2), 1: (1, 2), 2: (2, 1)},
        after={0: (3, 2), 1: (4, 5), 2: (2, 3)},
        log_bytes=3000.0 * MB,
        limits=RunLimits(moves_in_flight=2, throttle_bytes_per_s=250 * MB),
    )


def states(report: RunReport) -> list[MoveState]:
    return [m.state for m in report.moves]


def as_before(at: SimulatedRun) -> dict[int, tuple[tuple[int, ...], int]]:
    return {n: (tuple(r), r[0]) for n, r in at.before.items()}


def test_an_abort_restores_the_placement_and_settings(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(10.0, at.steering.abort)
    begun_s = at.cluster.now_s
    report = at.run()
    assert (report.state, report.reason) == ABORTED
    dropped = [MoveState.DROPPED] * 2
    assert states(report) == [*dropped, MoveState.PLANNED]
    assert report.moves[0].note == "cancelled by the operator"
    assert at.placement == as_before(at)
    assert at.is_clean
    assert at.cluster.now_s - begun_s < 15.0


def test_a_move_aborted_halfway_stays_there_and_is_reported(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(60.0, at.steering.abort)
    report = at.run()
    assert report.moves[1].note == ("cancelled by the operator; it stays on [1, 5], halfway")
    assert at.placement[1] == ((1, 5), 1)
    at.reset_steering()
    assert at.roll_back().state is RunState.DONE
    assert at.placement == as_before(at)


def test_an_abort_overtakes_a_stop(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(5.0, at.steering.stop)
    at.cluster.after(10.0, at.steering.abort)
    report = at.run()
    assert (report.state, report.reason) == ABORTED
    assert at.placement == as_before(at)


def test_an_abort_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(1000.0, at.steering.abort)
    assert at.run().state is RunState.DONE


def test_an_aborted_run_is_resumed_without_cancelled_moves(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(10.0, at.steering.abort)
    at.run()
    at.reset_steering()
    report = at.resume()
    dropped = [MoveState.DROPPED] * 2
    assert states(report) == [*dropped, MoveState.DONE]
    assert at.placement == as_before(at) | {2: ((2, 3), 2)}


def test_the_report_says_that_automq_cannot_cancel(tmp_path: Path) -> None:
    at = SimulatedRun(
        folder=tmp_path,
        before={0: (1,), 1: (1,)},
        after={0: (2,), 1: (3,)},
        storage=StorageKind.SHARED,
        limits=RunLimits(moves_in_flight=1),
    )
    at.cluster.after(1.0, at.steering.abort)
    report = at.run()
    assert (report.state, report.reason) == ABORTED
    assert states(report) == [MoveState.DONE, MoveState.PLANNED]
    assert report.moves[0].note == (
        "not cancelled: AutoMQ cannot cancel moves, so this one was allowed to finish"
    )


def test_moves_of_someone_else_are_not_cancelled(tmp_path: Path) -> None:
    at = copying(tmp_path)

    def steal() -> None:
        at.cluster.reassign(PartitionId(TOPIC, 0), ids([5, 2]))

    at.cluster.after(9.99, steal)
    at.cluster.after(10.0, at.steering.abort)
    report = at.run()
    assert "someone else moves orders-0 to [5, 2]" in report.moves[0].note
    at.cluster.advance(100.0)
    assert at.placement[0] == ((5, 2), 5)


@pytest.mark.parametrize("lost", Lost)
def test_a_cancel_without_an_answer_is_repeated(tmp_path: Path, lost: Lost) -> None:
    whole = copying(tmp_path / "whole")
    calls = changes(whole)
    whole.cluster.after(10.0, whole.steering.abort)
    whole.run()
    first = calls.index("reassign", calls.index("reassign") + 1)
    at = copying(tmp_path / "lost")
    at.faults.lost = {first: lost}
    at.cluster.after(10.0, at.steering.abort)
    report = at.run()
    assert (report.state, report.reason) == ABORTED
    assert at.placement == as_before(at)
    assert at.is_clean


def changes(at: SimulatedRun) -> list[str]:
    """Names of the calls that change something, filled as they come."""
    calls: list[str] = []

    def on_call(call: str, *, made: bool) -> None:
        if not made:
            calls.append(call)

    at.faults.on_call = on_call
    return calls


@pytest.mark.parametrize("made", [False, True], ids=["before", "after"])
@pytest.mark.slow
def test_resuming_an_abort_killed_at_any_call_moves_nothing(tmp_path: Path, made: bool) -> None:
    """A move sent before the abort and not yet cancelled is followed to its end."""

    def aborted(folder: Path) -> SimulatedRun:
        at = copying(folder)
        at.cluster.after(10.0, at.steering.abort)
        return at

    for at in interrupted_runs(tmp_path, aborted, made=made, least=4):
        (path,) = at.folder.glob("*.jsonl")
        asked = {r.partition for r in read_journal(path) if r.event is JournalEvent.CANCELLING}
        at.reset_steering()
        moving = {p.partition for p, of in at.cluster.partitions.items() if of.is_moving}
        at.resume()
        for number in asked - moving if asked else ():
            assert at.placement[number or 0] == as_before(at)[number or 0]
        assert at.is_clean


def test_the_journal_names_a_move_before_it_is_cancelled(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.cluster.after(10.0, at.steering.abort)
    at.run()
    (path,) = tmp_path.glob("*.jsonl")
    events = [r.event for r in read_journal(path) if r.partition == 0]
    assert events[-2:] == [JournalEvent.CANCELLING, JournalEvent.DROPPED]


def test_a_requested_rate_is_answered(tmp_path: Path) -> None:
    at = copying(tmp_path)
    assert at.steering.asked is None
    at.cluster.after(5.0, lambda: at.steering.throttle(500 * MB))
    answers: list[AskedRate | None] = []
    at.cluster.after(5.0, lambda: answers.append(at.steering.asked))
    at.run()
    assert answers == [AskedRate(bytes_per_s=500 * MB, answer=None)]
    assert at.steering.asked == AskedRate(bytes_per_s=500 * MB, answer="")


def test_a_rate_that_is_too_low_is_answered_with_a_sufficient_one(tmp_path: Path) -> None:
    at = copying(tmp_path)
    for partition in at.partitions:
        partition.bytes_in = steady(20.0 * MB)
    at.cluster.after(60.0, lambda: at.steering.throttle(5 * MB))
    at.run()
    asked = at.steering.asked
    assert asked is not None
    assert "A throttle of 5.00 MB/s is too low" in (asked.answer or "")


def test_the_journal_records_who_approved_and_how_it_ended(tmp_path: Path) -> None:
    at = copying(tmp_path)
    at.steering = Steering("ann")
    at.cluster.after(5.0, at.steering.stop)
    at.run()
    past = past_run(tmp_path, CLUSTER_ID)
    assert (past.by, past.state) == ("ann", RunState.STOPPED)
    assert past.reason == "stopped by the operator"
    at.steering = Steering("bob")
    at.resume()
    past = past_run(tmp_path, CLUSTER_ID)
    assert (past.by, past.state, past.reason) == ("bob", RunState.DONE, "")
    assert not past.is_unfinished


def test_a_runs_duration_includes_its_pauses_everywhere(tmp_path: Path) -> None:
    """Even if its journal continues after its end."""
    at = copying(tmp_path)
    at.cluster.after(30.0, at.steering.pause)
    at.cluster.after(300.0, at.steering.stop)
    report = at.run()
    assert report.state is RunState.STOPPED
    assert report.duration_s > 290.0
    path = run_path(tmp_path, report.run_id)
    timing = at.cluster.timing
    at.cluster.advance(1000.0)
    with contextlib.closing(
        RunJournal(tmp_path, at.plan, report.run_id, timing, resumed=True)
    ) as journal:
        journal.write(JournalEvent.UNTHROTTLED)
    assert read_journal(path)[-1].event is JournalEvent.UNTHROTTLED
    past = past_run(tmp_path, CLUSTER_ID)
    assert past.duration_s == pytest.approx(report.duration_s, abs=0.01)
