"""The moves of a run that are under way: asked for, watched, seen to their end."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, assert_never

from executor.client.responses import Answer, Verdict
from executor.health.health_rules import BrokenStopRule
from executor.platforms.move_progress import text
from executor.platforms.platform import Platform, Progress, Stage
from executor.platforms.tiered_segments import RunSegments
from executor.run.leader_outage import Stall
from executor.run.move_state_machine import ATTEMPTS, MoveStateMachine, Step
from executor.run.run_gate import Course
from executor.run.run_state import LiveRunState
from executor.schedule.concurrency import Concurrency
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.ids import PartitionId
from model.plan.plan import Move
from model.run import MoveState
from model.snapshot.snapshot import StorageKind
from model.stop_rules import Reaction, Rule
from model.units import bytes_text

_NEEDS_REQUEST: Final = (
    Step.HURRY,
    Step.SEND_NEXT,
    Step.SEND_AGAIN,
    Step.FINISH,
    Step.CANCEL,
)
"""Steps that take a request."""
_log = logging.getLogger("plimsoll.executor")


class InFlightMoves:
    """Takes each move from its first request to its end."""

    def __init__(
        self,
        dialects: Mapping[StorageKind, Platform],
        ledger: LiveRunState,
        course: Course,
        *,
        concurrency: Concurrency,
        limits: RunLimits,
        timing: Timing,
        throttle: RunThrottle,
        segments: RunSegments,
    ) -> None:
        self._platforms = dialects
        self._ledger = ledger
        self._course = course
        self._concurrency = concurrency
        self._limits = limits
        self._timing = timing
        self._throttle = throttle
        self._segments = segments
        self._flights: dict[PartitionId, MoveStateMachine] = {}
        self._stuck: dict[PartitionId, BrokenStopRule] = {}

    @property
    def moves(self) -> list[Move]:
        """Those that are under way."""
        return [flight.move for flight in self._flights.values()]

    @property
    def stuck(self) -> list[BrokenStopRule]:
        """What is waited for although it does not come on."""
        return list(self._stuck.values())

    def adopt(self, move: Move, *, cancelling: bool = False) -> None:
        """One that was sent before is still under way, or on its way back."""
        self._ledger.adopted(move)
        flight = MoveStateMachine(move, self._stuck_s(move))
        flight.sent(self._timing.steady_s(), Verdict.ACCEPTED)
        if cancelling:
            flight.cancel_sent(self._timing.steady_s(), Verdict.UNKNOWN)
        self._flights[move.id] = flight

    def cancel(self) -> None:
        """Cancel what was not asked to be yet, and what has no answer to that."""
        if self._course.barred:
            return
        now_s = self._timing.steady_s()
        moves = [f.move for f in self._flights.values() if f.may_cancel(now_s)]
        for dialect, group in by_dialect(self._platforms, moves):
            self._cancel(dialect, group)

    def _cancel(self, dialect: Platform, moves: Sequence[Move]) -> None:
        self._ledger.cancelling(moves)
        answers: Mapping[PartitionId, Answer] = {}
        sent_at_s = self._timing.steady_s()
        with self._course.asking(), self._course.barring():
            answers = dialect.cancel(moves)
        for move in moves:
            answer = answers.get(move.id)
            verdict = answer.verdict if answer else None
            self._flights[move.id].cancel_sent(sent_at_s, verdict)
            if answer and answer.verdict is Verdict.REFUSED:
                self._ledger.noted(move, f"not cancelled: {answer.reason}", {})

    def send(
        self, dialect: Platform, moves: Sequence[Move], *, again: bool = False
    ) -> None:
        """Ask for the next step of each."""
        sent_at_s = self._timing.steady_s()
        self._ledger.issuing(moves, again=again)
        answers: Mapping[PartitionId, Answer] = {}
        with self._course.asking(), self._course.barring():
            self._throttle.limit(moves)
            answers = dialect.start(moves)
        for move in moves:
            answer = answers.get(move.id, Answer.unknown())
            self._ledger.issued(move, answer.verdict.value)
            if answer.verdict is Verdict.REFUSED:
                self._fail(move, MoveState.DROPPED, f"refused: {answer.reason}")
                if answer.by_policy:
                    self._course.halt(f"{move.id} was refused: {answer.reason}")
                continue
            stall = Stall(move.leader_before, sent_at_s)
            flight = self._flights.setdefault(
                move.id, MoveStateMachine(move, self._stuck_s(move), stall)
            )
            flight.sent(sent_at_s, answer.verdict)

    def look(self) -> None:
        """See how far each one is, and do what follows."""
        self._stuck.clear()
        if not self._course.barred:
            with self._course.barring():
                self._throttle.adjust()
        for dialect, moves in by_dialect(self._platforms, self.moves):
            with self._course.asking():
                asked_s = self._timing.steady_s()
                found = dialect.progress(moves)
                looked = asked_s, self._timing.steady_s()
                for move in moves:
                    self._flights[move.id].watch(found[move.id].view, *looked)
                    self._follow(dialect, self._flights[move.id], found[move.id])
        if self._course.is_lost:
            for move in self.moves:
                self._fail(move, MoveState.STUCK, "its end was not seen")

    def _follow(
        self, dialect: Platform, flight: MoveStateMachine, seen: Progress
    ) -> None:
        move, now_s = flight.move, self._timing.steady_s()
        self._ledger.copied(move, seen.bytes_copied)
        match flight.see(seen, now_s):
            case Step.WAIT:
                return
            case step if self._course.barred and step in _NEEDS_REQUEST:
                self._leave(move, seen)
            case Step.SEND_NEXT | Step.SEND_AGAIN as step:
                self.send(dialect, [move], again=step is Step.SEND_AGAIN)
            case Step.HURRY:
                self._hurry(move)
            case Step.FINISH:
                self._ledger.electing([move], again=flight.finished_at_s > 0)
                flight.finished_at_s = now_s
                dialect.finish([move])
            case Step.DONE:
                self._land(dialect, flight)
            case Step.CANCEL:
                self._cancel(dialect, [move])
            case Step.CANCELLED | Step.GIVE_UP | Step.LOST | Step.STUCK as end:
                self._give_up(move, end, seen)
            case never:
                assert_never(never)

    def _give_up(self, move: Move, end: Step, seen: Progress) -> None:
        if end is Step.CANCELLED:
            words = f"cancelled {self._course.cancelled_by}"
            self._fail(move, MoveState.DROPPED, words + _halfway(seen))
        elif end is Step.GIVE_UP:
            reason = f"not begun after {ATTEMPTS} requests without an answer"
            self._fail(move, MoveState.DROPPED, reason)
        elif end is Step.LOST:
            reason = seen.reason or f"somebody else cancelled the move of {move.id}"
            self._fail(move, MoveState.DROPPED, reason)
            self._course.halt(reason)
        else:
            self._hang(move)

    def _hang(self, move: Move) -> None:
        """A pause waits for it; a way back tries to cancel it first."""
        reason = f"{move.id} made no progress for {self._stuck_s(move):.0f} s"
        broken = BrokenStopRule(rule=Rule.NO_PROGRESS, reason=reason)
        reaction = self._course.reaction(broken)
        if reaction is Reaction.PAUSE and not self._course.halted:
            self._stuck[move.id] = broken
            return
        if reaction in (Reaction.STOP, Reaction.ROLL_BACK):
            self._course.halt(reason, reaction)
        now_s = self._timing.steady_s()
        if not (self._course.cancels and self._flights[move.id].may_cancel(now_s)):
            self._fail(move, MoveState.STUCK, reason)

    def _stuck_s(self, move: Move) -> float:
        if move.storage is StorageKind.SHARED:
            return self._limits.stuck_s
        return self._limits.stop_rules.no_progress_s

    def _land(self, dialect: Platform, flight: MoveStateMachine) -> None:
        move = flight.move
        # Where no answer comes, the next look does it again.
        with self._course.barring():
            self._throttle.release(move)
            self._segments.release(move)
        dialect.after(move)
        del self._flights[move.id]
        self._ledger.moved(move, flight.stall)
        done = self._ledger.of(move)
        self._concurrency.ended(
            move,
            done.seconds or 0.0,
            done.bytes_copied or 0,
            self._timing.steady_s(),
        )

    def _hurry(self, move: Move) -> None:
        """A throttle under what is produced would keep a copy behind for ever."""
        if rate := self._throttle.raise_rate(move):
            words = (
                f"{move.id} fell behind what is produced, so the throttle was raised "
                f"to {bytes_text(rate)}/s"
            )
            _log.warning("%s", words)
            self._ledger.noted(move, words, {"bytes_per_s": rate})

    def _fail(self, move: Move, state: MoveState, reason: str) -> None:
        self._flights.pop(move.id, None)
        self._ledger.failed(move, state, reason)

    def _leave(self, move: Move, seen: Progress) -> None:
        """No request may be sent for a move; one that moves can do without."""
        if seen.stage is Stage.NOT_BEGUN:
            del self._flights[move.id]
            self._ledger.put_back(move)
        elif seen.stage is not Stage.MOVING:
            self._fail(move, MoveState.STUCK, "its next request was not sent")


def _halfway(seen: Progress) -> str:
    if seen.stage is not Stage.HALFWAY or seen.view is None:
        return ""
    return f"; it stays on {text(seen.view.replicas)}, halfway"


def by_dialect(
    dialects: Mapping[StorageKind, Platform], moves: Sequence[Move]
) -> Iterator[tuple[Platform, list[Move]]]:
    """Moves with the way that moves them."""
    for kind, dialect in dialects.items():
        if group := [move for move in moves if move.storage is kind]:
            yield dialect, group
