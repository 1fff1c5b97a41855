"""The state of a run: each event is journalled, then shown to the observer."""

import dataclasses
from functools import singledispatchmethod
from typing import Any

from executor.journal.lost_settings import MAY_BE_SET
from executor.run import run_events as events
from executor.run.run_context import RunContext
from model.plan.plan import Move
from model.run import (
    JournalEvent,
    MoveProgress,
    MoveReport,
    MoveState,
    RunProgress,
    RunReport,
    RunState,
)
from model.run_health import RunHealth


class LiveRunState:
    """Where the run and each of its moves stand. Only the run itself changes it.

    Writing to the journal raises as `Journal.write` does.
    """

    def __init__(self, context: RunContext) -> None:
        plan, past = context.plan, context.past
        self._journal = context.journal
        self._timing = context.timing
        self._observe = context.observe
        self._begun_ms = self._ended_ms = context.timing.now_ms()
        self._begun_s = context.timing.steady_s()
        self._has_lost_settings = past is not None and past.has_lost_settings
        self._moves = (
            {m.id: MoveProgress(move=m) for m in plan.moves} if past is None else dict(past.moves)
        )
        signature = context.signature
        self._signed: dict[str, Any] = (
            {} if signature is None else {"signature": dataclasses.asdict(signature)}
        )
        self._run = RunProgress(
            run_id=context.journal.run_id,
            plan_hash=plan.hash,
            state=RunState.CHECKING,
            moves=(),
            started_at_ms=past.started_at_ms if past else self._begun_ms,
        )

    @property
    def moves(self) -> tuple[MoveProgress, ...]:
        """The state of each move, in the plan's order."""
        return tuple(self._moves.values())

    def of(self, move: Move) -> MoveProgress:
        """The state of one move."""
        return self._moves[move.id]

    def among(self, *states: MoveState) -> list[Move]:
        """Moves in any of these states, in the plan's order."""
        return [m.move for m in self._moves.values() if m.state in states]

    def show(self) -> None:
        """Pass the current state to the observer."""
        self._observe(dataclasses.replace(self._run, moves=self.moves))

    def started(self, *, by: str) -> None:
        """Record that the checked plan starts; this creates the journal."""
        begun_ms = self._now_ms()
        self._journal.write(JournalEvent.STARTED, planned=len(self._moves), by=by, **self._signed)
        self._change_run(state=RunState.RUNNING, started_at_ms=begun_ms)

    def resumed(self, *, by: str) -> None:
        """Record that an interrupted run resumes."""
        self._journal.write(JournalEvent.RESUMED, planned=len(self._moves), by=by, **self._signed)
        self._change_run(state=RunState.RUNNING)

    def preparation_took(self, seconds: float) -> None:
        """Record the time spent before the first move."""
        self._change_run(preparation_s=round(seconds, 3))
        self.show()

    def estimated(self, left_s: float) -> None:
        """Record how many more seconds the moves are expected to take."""
        first_s = self._run.foreseen_s
        self._change_run(
            left_s=left_s,
            left_at_ms=self._now_ms(),
            foreseen_s=left_s if first_s is None else first_s,
        )
        self.show()

    def checked(self, health: RunHealth | None) -> None:
        """Show the last check of the cluster if it is a new one."""
        if health is not self._run.health:
            self._change_run(health=health)
            self.show()

    def ended(self, state: RunState, reason: str) -> None:
        """Record the end of the run."""
        self._ended_ms = self._now_ms()
        lost = self._has_lost_settings
        detail: dict[str, Any] = {MAY_BE_SET: True} if lost else {}
        self._journal.write(JournalEvent.ENDED, state=state, reason=reason, **detail)
        self._change_run(state=state, reason=reason, left_s=None)
        self.show()

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
            moves=tuple(map(_report, self.moves)),
        )

    @singledispatchmethod
    def apply(self, event: events.RunEvent) -> None:
        """Journal an event, then show it."""
        raise TypeError(f"{event} is not a run event")

    @apply.register
    def _adopted(self, event: events.Adopted) -> None:
        sent_ms = self.of(event.move).issued_at_ms
        self._change(event.move, state=MoveState.ISSUED, issued_at_ms=sent_ms)
        self.show()

    @apply.register
    def _not_started(self, event: events.NotStarted) -> None:
        self._change(event.move, state=MoveState.PLANNED)

    @apply.register
    def _prepared(self, event: events.Prepared) -> None:
        self._journal.write(JournalEvent.PREPARED, [event.move], note=event.note, **event.detail)
        self._change(event.move, note=event.note)

    @apply.register
    def _requesting(self, event: events.Requesting) -> None:
        self._journal.write(JournalEvent.ISSUING, event.moves, again=event.again)
        for move in event.moves:
            sent_ms = self.of(move).issued_at_ms or self._now_ms()
            self._change(move, state=MoveState.ISSUED, issued_at_ms=sent_ms)
            self._count(move, again=event.again)
        self.show()

    @apply.register
    def _answered(self, event: events.RequestAnswered) -> None:
        self._journal.write(JournalEvent.ISSUED, [event.move], answer=event.answer)

    @apply.register
    def _cancelling(self, event: events.Cancelling) -> None:
        self._journal.write(JournalEvent.CANCELLING, event.moves)

    @apply.register
    def _electing(self, event: events.Electing) -> None:
        self._journal.write(JournalEvent.ELECTING, event.moves, again=event.again)
        for move in event.moves:
            self._count(move, again=event.again)

    @apply.register
    def _copied(self, event: events.Copied) -> None:
        size_bytes = event.size_bytes
        if size_bytes is not None and size_bytes != self.of(event.move).bytes_copied:
            self._change(event.move, bytes_copied=size_bytes)
            self.show()

    @apply.register
    def _moved(self, event: events.Moved) -> None:
        self._change(
            event.move,
            state=MoveState.DONE,
            done_at_ms=self._now_ms(),
            stall_s=event.outage.bounds_s if event.outage else None,
        )
        at = self.of(event.move)
        self._journal.write(
            JournalEvent.MOVED,
            [event.move],
            seconds=at.seconds,
            bytes=at.bytes_copied,
            stall_s=at.stall_s,
        )
        self.show()

    @apply.register
    def _noted(self, event: events.Noted) -> None:
        before = self.of(event.move).note
        note = f"{before}; {event.note}" if before else event.note
        self._journal.write(JournalEvent.NOTED, [event.move], note=note, **event.detail)
        self._change(event.move, note=note)
        self.show()

    @apply.register
    def _failed(self, event: events.Failed) -> None:
        is_stuck = event.state is MoveState.STUCK
        kind = JournalEvent.STUCK if is_stuck else JournalEvent.DROPPED
        detail = {"unneeded": True} if event.unneeded else {}
        self._journal.write(kind, [event.move], reason=event.reason, **detail)
        self._change(event.move, state=event.state, note=event.reason, unneeded=event.unneeded)
        self.show()

    @apply.register
    def _paused(self, event: events.Paused) -> None:
        self._journal.write(JournalEvent.PAUSED, reason=event.reason)
        self._change_run(state=RunState.PAUSED, reason=event.reason)
        self.show()

    @apply.register
    def _continued(self, _event: events.Continued) -> None:
        self._journal.write(JournalEvent.PAUSE_ENDED)
        self._change_run(state=RunState.RUNNING, reason="")
        self.show()

    @apply.register
    def _stopping(self, event: events.Stopping) -> None:
        self._change_run(state=RunState.STOPPING, reason=event.reason)
        self.show()

    def _now_ms(self) -> int:
        """Milliseconds since the epoch, by the steady clock since the run began."""
        return self._begun_ms + int(1000 * (self._timing.steady_s() - self._begun_s))

    def _count(self, move: Move, *, again: bool) -> None:
        at = self.of(move)
        self._change(move, requests=at.requests + 1, retries=at.retries + again)

    def _change(self, move: Move, **changes: Any) -> None:
        self._moves[move.id] = dataclasses.replace(self._moves[move.id], **changes)

    def _change_run(self, **changes: Any) -> None:
        self._run = dataclasses.replace(self._run, **changes)


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
