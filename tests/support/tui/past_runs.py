"""Previous runs, as values."""

from dataclasses import replace

from executor.journal.journal_replay import Replay
from executor.journal.run_history import PastRun
from model.run import JournalEvent, JournalRecord, MoveProgress, RunState
from tests.support.tui.loop_views import AT_MS, CLUSTER_ID, HASH, moves, plan, progress

RUN_ID = "20231114T221310-3cc54011"


def past(state: RunState = RunState.DONE, *, run_id: str = RUN_ID) -> PastRun:
    """The run of the other views, as its journal has it."""
    shown: tuple[MoveProgress, ...] = progress(state).moves
    return PastRun(
        run_id=run_id,
        plan=plan(),
        started_at_ms=AT_MS - 10_000,
        last_at_ms=AT_MS,
        throttled=None,
        suspended_balancer=None,
        lowered_segments=None,
        cancelling=frozenset(),
        moves={of.move.id: of for of in shown},
        state=state,
        reason="stopped by the operator" if state is RunState.STOPPED else "",
        by="ann",
    )


def older() -> PastRun:
    """A run of the previous day that was stopped."""
    result = past(RunState.STOPPED, run_id="20231113T101500-77aa0e5b")
    day_ms = 86_400_000
    return replace(
        result,
        started_at_ms=result.started_at_ms - day_ms,
        last_at_ms=result.last_at_ms - day_ms,
        by="",
    )


def replay() -> Replay:
    """Two moves are sent, one is made; the run is paused, resumed and stopped."""
    sent, made = moves()[0], moves()[1]
    records = [
        _record(0, JournalEvent.STARTED),
        _record(1, JournalEvent.ISSUING, partition=sent.partition, again=False),
        _record(2, JournalEvent.ISSUING, partition=made.partition, again=False),
        _record(5, JournalEvent.MOVED, partition=made.partition, bytes=9_000_000),
        _record(6, JournalEvent.PAUSED, reason="paused by the operator"),
        _record(8, JournalEvent.PAUSE_ENDED),
        _record(9, JournalEvent.ENDED, state="stopped", reason="stopped by ann"),
    ]
    return Replay(plan=plan(), records=tuple(records))


def _record(
    second: int, event: JournalEvent, *, partition: int | None = None, **detail: object
) -> JournalRecord:
    return JournalRecord(
        at_ms=AT_MS + 1000 * second,
        event=event,
        run_id=RUN_ID,
        plan_hash=HASH,
        cluster_id=CLUSTER_ID,
        topic=None if partition is None else moves()[0].topic,
        partition=partition,
        detail=detail,
    )
