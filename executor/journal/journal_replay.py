"""Replay of an earlier run, record by record."""

from dataclasses import dataclass
from pathlib import Path

from executor.journal.run_history import after_record, read_journal
from executor.journal.run_journal import plan_path, run_path
from model.plan.plan import Plan, read_plan
from model.run import JournalEvent, JournalRecord, MoveProgress, RunProgress, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A run that can be shown as of any of its records."""

    plan: Plan
    records: tuple[JournalRecord, ...]

    def __len__(self) -> int:
        return len(self.records)

    def at_ms(self, record: int) -> int:
        """When this record was written, in milliseconds since the epoch."""
        return self.records[record].at_ms

    def at(self, record: int) -> RunProgress:
        """The state of the run after this record."""
        moves = {move.id: MoveProgress(move=move) for move in self.plan.moves}
        state, reason = RunState.CHECKING, ""
        for seen in self.records[: record + 1]:
            if seen.id is not None:
                moves[seen.id] = after_record(moves[seen.id], seen)
            state, reason = _run_state_after(state, reason, seen)
        return RunProgress(
            run_id=self.records[0].run_id,
            plan_hash=self.plan.hash,
            state=state,
            moves=tuple(moves.values()),
            started_at_ms=self.records[0].at_ms,
            reason=reason,
        )


def read_replay(journal_dir: Path, run_id: str) -> Replay:
    """Read the replay of a run; raises ConfigError where its files are unreadable."""
    return Replay(
        plan=read_plan(plan_path(journal_dir, run_id)),
        records=read_journal(run_path(journal_dir, run_id)),
    )


def _run_state_after(state: RunState, reason: str, seen: JournalRecord) -> tuple[RunState, str]:
    match seen.event:
        case JournalEvent.STARTED | JournalEvent.RESUMED | JournalEvent.PAUSE_ENDED:
            return RunState.RUNNING, ""
        case JournalEvent.PAUSED:
            return RunState.PAUSED, seen.detail["reason"]
        case JournalEvent.ENDED:
            return RunState(seen.detail["state"]), seen.detail["reason"]
        case _:
            return state, reason
