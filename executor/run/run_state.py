"""The state of a run: every change is journalled, then shown."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from executor.journal.lost_settings import MAY_BE_SET
from executor.journal.run_history import PastRun
from executor.journal.run_journal import RunJournal
from executor.run.leader_outage import Stall
from executor.timing import Timing
from model.plan.plan import Move, Plan
from model.run import (
    JournalEvent,
    MoveProgress,
    MoveReport,
    MoveState,
    RunProgress,
    RunReport,
    RunState,
)


class LiveRunState:
    """Keeps where each move stands, writes the journal and tells the observer."""

    def __init__(
        self,
        plan: Plan,
        journal: RunJournal,
        timing: Timing,
        observe: Callable[[RunProgress], None],
        past: PastRun | None = None,
    ) -> None:
        self._journal = journal
        self._timing = timing
        self._begun_ms, self._begun_s = timing.now_ms(), timing.steady_s()
        self._ended_ms = self._begun_ms
        self._observe = observe
        self._moves = {m.id: MoveProgress(move=m) for m in plan.moves}
        self._has_lost_settings = past is not None and past.has_lost_settings
        if past is not None:
            self._moves = dict(past.moves)
        self._run = RunProgress(
            run_id=journal.run_id,
            plan_hash=plan.hash,
            state=RunState.CHECKING,
            moves=(),
            started_at_ms=past.started_at_ms if past else self._begun_ms,
        )

    @property
    def unwritable(self) -> str:
        """Why the journal cannot be written; empty while all is well."""
        return self._journal.failure

    @property
    def moves(self) -> Sequence[MoveProgress]:
        """Where each stands, in the plan's order."""
        return tuple(self._moves.values())

    def of(self, move: Move) -> MoveProgress:
        """Where one move stands."""
        return self._moves[move.id]

    def among(self, *states: MoveState) -> list[Move]:
        """Moves in any of these states, in the plan's order."""
        return [m.move for m in self._moves.values() if m.state in states]

    def tell(self) -> None:
        """Show the run as it is."""
        self._observe(self._progress())

    def started(self, *, by: str) -> None:
        """The plan was checked; from here on there is a journal."""
        begun_ms = self._now_ms()
        self._journal.write(JournalEvent.STARTED, planned=len(self._moves), by=by)
        self._change_run(state=RunState.RUNNING, started_at_ms=begun_ms)

    def resumed(self, *, by: str) -> None:
        """A run that was cut off goes on."""
        self._journal.write(JournalEvent.RESUMED, planned=len(self._moves), by=by)
        self._change_run(state=RunState.RUNNING)

    def adopted(self, move: Move) -> None:
        """One that was sent before is still under way."""
        sent_ms = self.of(move).issued_at_ms
        self._change(move, state=MoveState.ISSUED, issued_at_ms=sent_ms)
        self.tell()

    def put_back(self, move: Move) -> None:
        """One that was sent before did not begin."""
        self._change(move, state=MoveState.PLANNED)

    def prepared(self, move: Move, note: str, detail: dict[str, Any]) -> None:
        """What preparing one move found."""
        self._journal.write(JournalEvent.PREPARED, [move], note=note, **detail)
        self._change(move, note=note)

    def preparation_took(self, seconds: float) -> None:
        """Time spent before the first move."""
        self._change_run(preparation_s=round(seconds, 3))
        self.tell()

    def issuing(self, moves: Sequence[Move], *, again: bool) -> None:
        """These moves are about to be sent; `again` what was sent before."""
        self._journal.write(JournalEvent.ISSUING, moves, again=again)
        for move in moves:
            sent_ms = self.of(move).issued_at_ms or self._now_ms()
            self._change(move, state=MoveState.ISSUED, issued_at_ms=sent_ms)
            self._count(move, again=again)
        self.tell()

    def issued(self, move: Move, answer: str) -> None:
        """One was sent; `answer` is what came back."""
        self._journal.write(JournalEvent.ISSUED, [move], answer=answer)

    def cancelling(self, moves: Sequence[Move]) -> None:
        """Requests to cancel these are about to be sent."""
        self._journal.write(JournalEvent.CANCELLING, moves)

    def electing(self, moves: Sequence[Move], *, again: bool) -> None:
        """Preferred elections are about to be asked for."""
        self._journal.write(JournalEvent.ELECTING, moves, again=again)
        for move in moves:
            self._count(move, again=again)

    def copied(self, move: Move, size_bytes: int | None) -> None:
        """How much of one has arrived."""
        if size_bytes is not None and size_bytes != self.of(move).bytes_copied:
            self._change(move, bytes_copied=size_bytes)
            self.tell()

    def moved(self, move: Move, stall: Stall | None = None) -> None:
        """One is where it should be; its stall is None where it was not watched."""
        self._change(
            move,
            state=MoveState.DONE,
            done_at_ms=self._now_ms(),
            stall_s=stall.bounds_s if stall else None,
        )
        at = self.of(move)
        self._journal.write(
            JournalEvent.MOVED,
            [move],
            seconds=at.seconds,
            bytes=at.bytes_copied,
            stall_s=at.stall_s,
        )
        self.tell()

    def noted(self, move: Move, words: str, detail: Mapping[str, Any]) -> None:
        """Something to be known of one move, beside what is known already."""
        before = self.of(move).note
        note = f"{before}; {words}" if before else words
        self._journal.write(JournalEvent.NOTED, [move], note=note, **detail)
        self._change(move, note=note)
        self.tell()

    def failed(self, move: Move, state: MoveState, reason: str) -> None:
        """One was dropped or is stuck."""
        event = JournalEvent.STUCK if state is MoveState.STUCK else JournalEvent.DROPPED
        self._journal.write(event, [move], reason=reason)
        self._change(move, state=state, note=reason)
        self.tell()

    def foreseen(self, left_s: float) -> None:
        """How long the moves are expected to take yet."""
        first_s = self._run.foreseen_s
        self._change_run(
            left_s=left_s,
            left_at_ms=self._now_ms(),
            foreseen_s=left_s if first_s is None else first_s,
        )
        self.tell()

    def paused(self, reason: str) -> None:
        """Nothing is started for now."""
        self._journal.write(JournalEvent.PAUSED, reason=reason)
        self._change_run(state=RunState.PAUSED, reason=reason)
        self.tell()

    def went_on(self) -> None:
        """A pause has ended."""
        self._journal.write(JournalEvent.PAUSE_ENDED)
        self._change_run(state=RunState.RUNNING, reason="")
        self.tell()

    def stopping(self, reason: str) -> None:
        """Nothing further will be started."""
        self._change_run(state=RunState.STOPPING, reason=reason)
        self.tell()

    def ended(self, state: RunState, reason: str) -> None:
        """The run is over."""
        self._ended_ms = self._now_ms()
        lost = self._has_lost_settings
        detail: dict[str, Any] = {MAY_BE_SET: True} if lost else {}
        self._journal.write(JournalEvent.ENDED, state=state, reason=reason, **detail)
        self._change_run(state=state, reason=reason, left_s=None)
        self.tell()

    def report(self) -> RunReport:
        """The run as a value for files."""
        run = self._run
        return RunReport(
            run_id=run.run_id,
            plan_hash=run.plan_hash,
            state=run.state,
            reason=run.reason,
            started_at_ms=run.started_at_ms,
            duration_s=(self._ended_ms - run.started_at_ms) / 1000,
            preparation_s=run.preparation_s,
            foreseen_s=run.foreseen_s,
            moves=tuple(_report(m) for m in self._moves.values()),
        )

    def _now_ms(self) -> int:
        """When the run began by the time of day, and what has passed since."""
        return self._begun_ms + int(1000 * (self._timing.steady_s() - self._begun_s))

    def _count(self, move: Move, *, again: bool) -> None:
        at = self.of(move)
        self._change(move, requests=at.requests + 1, retries=at.retries + again)

    def _change(self, move: Move, **changes: Any) -> None:
        self._moves[move.id] = dataclasses.replace(self._moves[move.id], **changes)

    def _change_run(self, **changes: Any) -> None:
        self._run = dataclasses.replace(self._run, **changes)

    def _progress(self) -> RunProgress:
        return dataclasses.replace(self._run, moves=tuple(self._moves.values()))


def _report(at: MoveProgress) -> MoveReport:
    return MoveReport(
        topic=at.move.topic,
        partition=at.move.partition,
        replicas_before=at.move.replicas_before,
        replicas_after=at.move.replicas_after,
        state=at.state,
        duration_s=at.seconds,
        bytes_copied=at.bytes_copied,
        stall_at_least_s=at.stall_s[0] if at.stall_s else None,
        stall_at_most_s=at.stall_s[1] if at.stall_s else None,
        requests=at.requests,
        retries=at.retries,
        note=at.note,
    )
