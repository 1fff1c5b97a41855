"""The in-flight moves of a run, from the first request to the end of each."""

import logging
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from executor.client.responses import PartitionResponse, ResponseStatus
from executor.health.health_rules import BrokenStopRule
from executor.platforms.move_progress import text
from executor.platforms.platform import MoveStage, ObservedMove, Platform
from executor.run import run_events as events
from executor.run.leader_outage import LeaderOutage
from executor.run.move_state_machine import ATTEMPTS, MoveStateMachine, MoveStep
from executor.run.run_context import RunContext
from executor.run.run_events import RunEvents
from executor.run.run_gate import RunGate
from model.ids import PartitionId
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.run import MoveState
from model.snapshot.snapshot import StorageKind
from model.stop_rules import Reaction, StopRule
from model.units import bytes_text

_NEEDS_REQUEST: Final = (
    MoveStep.HURRY,
    MoveStep.SEND_NEXT,
    MoveStep.SEND_AGAIN,
    MoveStep.FINISH,
    MoveStep.CANCEL,
)
_log = logging.getLogger("plimsoll.executor")


class InFlightMoves:
    """Requests, polls and cancels moves. One thread uses it.

    Its methods are generators of events: whoever iterates journals each event before
    asking for the next one. A request is sent only after the event that announces it.
    """

    def __init__(self, context: RunContext, gate: RunGate) -> None:
        self._context = context
        self._gate = gate
        self._limits = context.limits
        self._timing = context.timing
        self._overrides = context.overrides
        self._machines: dict[PartitionId, MoveStateMachine] = {}
        self._stuck: dict[PartitionId, BrokenStopRule] = {}

    @property
    def moves(self) -> list[Move]:
        """The moves in flight."""
        return [machine.move for machine in self._machines.values()]

    @property
    def stuck(self) -> list[BrokenStopRule]:
        """Moves without progress that the run waits for."""
        return list(self._stuck.values())

    def adopt(self, move: Move, *, cancelling: bool = False) -> RunEvents:
        """Take over a move that an earlier process requested, or also cancelled."""
        yield events.Adopted(move)
        machine = MoveStateMachine(move, self._stuck_s(move))
        machine.sent(self._timing.steady_s(), ResponseStatus.ACCEPTED)
        if cancelling:
            machine.cancel_sent(self._timing.steady_s(), ResponseStatus.UNKNOWN)
        self._machines[move.id] = machine

    def cancel(self) -> RunEvents:
        """Cancel moves that were not cancelled yet, or whose cancel got no answer."""
        if self._gate.barred:
            return
        now_s = self._timing.steady_s()
        moves = [m.move for m in self._machines.values() if m.may_cancel(now_s)]
        for platform, group in self._context.by_platform(moves):
            yield from self._cancel(platform, group)

    def _cancel(self, platform: Platform, moves: Sequence[Move]) -> RunEvents:
        yield events.Cancelling(moves)
        answers: Mapping[PartitionId, PartitionResponse] = {}
        sent_at_s = self._timing.steady_s()
        with self._gate.asking(), self._gate.barring():
            answers = platform.cancel(moves)
        for move in moves:
            answer = answers.get(move.id)
            status = answer.status if answer else None
            self._machines[move.id].cancel_sent(sent_at_s, status)
            if answer and answer.status is ResponseStatus.REFUSED:
                yield events.Noted(move, f"not cancelled: {answer.reason}")

    def send(self, platform: Platform, moves: Sequence[Move], *, again: bool = False) -> RunEvents:
        """Request the next step of each move."""
        sent_at_s = self._timing.steady_s()
        yield events.Requesting(moves, again)
        answers: Mapping[PartitionId, PartitionResponse] = {}
        with self._gate.asking(), self._gate.barring():
            self._overrides.throttle.limit(moves)
            answers = platform.start(moves)
        for move in moves:
            answer = answers.get(move.id, PartitionResponse.unknown())
            yield events.RequestAnswered(move, answer.status.value)
            if answer.status is ResponseStatus.REFUSED:
                yield self._failed(move, MoveState.DROPPED, f"refused: {answer.reason}")
                if answer.by_policy:
                    self._gate.halt(f"{move.id} was refused: {answer.reason}")
                continue
            outage = LeaderOutage(move.leader_before, sent_at_s)
            machine = self._machines.setdefault(
                move.id, MoveStateMachine(move, self._stuck_s(move), outage)
            )
            machine.sent(sent_at_s, answer.status)

    def poll(self) -> RunEvents:
        """Read the progress of each move, and take its next step."""
        self._stuck.clear()
        if not self._gate.barred:
            with self._gate.barring():
                self._overrides.throttle.adjust()
        for platform, moves in self._context.by_platform(self.moves):
            with self._gate.asking():
                asked_s = self._timing.steady_s()
                found = platform.progress(moves)
                answered_s = self._timing.steady_s()
                for move in moves:
                    machine = self._machines[move.id]
                    machine.watch(found[move.id].view, asked_s, answered_s)
                    yield from self._follow(platform, machine, found[move.id])
        if self._gate.is_lost:
            for move in self.moves:
                yield self._failed(move, MoveState.STUCK, "its end was not seen")

    def _follow(
        self, platform: Platform, machine: MoveStateMachine, seen: ObservedMove
    ) -> RunEvents:
        move, now_s = machine.move, self._timing.steady_s()
        yield events.Copied(move, seen.bytes_copied)
        match machine.see(seen, now_s):
            case MoveStep.WAIT:
                return
            case step if self._gate.barred and step in _NEEDS_REQUEST:
                yield from self._leave(move, seen)
            case MoveStep.SEND_NEXT | MoveStep.SEND_AGAIN as step:
                again = step is MoveStep.SEND_AGAIN
                yield from self.send(platform, [move], again=again)
            case MoveStep.HURRY:
                yield from self._hurry(move)
            case MoveStep.FINISH:
                yield events.Electing([move], again=machine.finished_at_s > 0)
                machine.finished_at_s = now_s
                platform.finish([move])
            case MoveStep.DONE:
                yield self._done(platform, machine)
            case MoveStep.CANCEL:
                yield from self._cancel(platform, [move])
            case MoveStep.CANCELLED | MoveStep.GIVE_UP | MoveStep.LOST | MoveStep.STUCK as end:
                yield from self._give_up(move, end, seen)
            case never:
                assert_never(never)

    def _give_up(self, move: Move, end: MoveStep, seen: ObservedMove) -> RunEvents:
        if end is MoveStep.CANCELLED:
            reason = f"cancelled {self._gate.cancelled_by}{_halfway(seen)}"
            yield self._failed(move, MoveState.DROPPED, reason)
        elif end is MoveStep.GIVE_UP:
            reason = f"not begun after {ATTEMPTS} requests without an answer"
            yield self._failed(move, MoveState.DROPPED, reason)
        elif end is MoveStep.LOST:
            reason = seen.reason or f"someone else cancelled the move of {move.id}"
            yield self._failed(move, MoveState.DROPPED, reason)
            # Of a topic that was deleted, nobody else moves anything.
            if not seen.is_gone:
                self._gate.halt(reason)
        else:
            yield from self._hang(move)

    def _hang(self, move: Move) -> RunEvents:
        """React to a move without progress: wait, or halt and perhaps cancel it."""
        reason = f"{move.id} made no progress for {self._stuck_s(move):.0f} s"
        broken = BrokenStopRule(rule=StopRule.NO_PROGRESS, reason=reason)
        reaction = self._gate.reaction(broken)
        if reaction is Reaction.PAUSE and not self._gate.halted:
            self._stuck[move.id] = broken
            return
        if reaction in (Reaction.STOP, Reaction.ROLL_BACK):
            self._gate.halt(reason, reaction)
        now_s = self._timing.steady_s()
        if not (self._gate.cancels and self._machines[move.id].may_cancel(now_s)):
            yield self._failed(move, MoveState.STUCK, reason)

    def _stuck_s(self, move: Move) -> float:
        if move.storage is StorageKind.SHARED:
            return self._limits.stuck_s
        return self._limits.stop_rules.no_progress_s

    def _done(self, platform: Platform, machine: MoveStateMachine) -> events.Moved:
        move = machine.move
        # Where the cluster does not answer, the next poll does this again.
        with self._gate.barring():
            self._overrides.throttle.release(move)
            self._overrides.segments.release(move)
        platform.after(move)
        del self._machines[move.id]
        return events.Moved(move, machine.outage)

    def _hurry(self, move: Move) -> RunEvents:
        """Raise a throttle under which a copy never catches up with producers."""
        if rate := self._overrides.throttle.raise_rate(move):
            note = (
                f"{move.id} fell behind its producers, so the throttle was raised "
                f"to {bytes_text(rate)}/s"
            )
            _log.warning("%s", note, extra=named(LogEvent.RUN_SLOW))
            yield events.Noted(move, note, {"bytes_per_s": rate})

    def _failed(self, move: Move, state: MoveState, reason: str) -> events.Failed:
        self._machines.pop(move.id, None)
        return events.Failed(move, state, reason)

    def _leave(self, move: Move, seen: ObservedMove) -> RunEvents:
        """Give up a move that needs a request while requests are forbidden."""
        if seen.stage is MoveStage.NOT_BEGUN:
            del self._machines[move.id]
            yield events.NotStarted(move)
        elif seen.stage is not MoveStage.MOVING:
            reason = "its next request was not sent"
            yield self._failed(move, MoveState.STUCK, reason)


def _halfway(seen: ObservedMove) -> str:
    if seen.stage is not MoveStage.HALFWAY or seen.view is None:
        return ""
    return f"; it stays on {text(seen.view.replicas)}, halfway"
