"""One run: executes a plan move by move, and reports exactly where it ended."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from executor.health.health_rules import CLOSED, BrokenStopRule
from executor.journal.run_history import PastRun
from executor.platforms import move_progress
from executor.platforms.platform import MoveStage, ObservedMove, Platform
from executor.run import run_events as events
from executor.run.in_flight import InFlightMoves
from executor.run.run_context import RunContext
from executor.run.run_events import RunEvent, RunEvents
from executor.run.run_gate import ABORTED, STOPPED, RunGate
from executor.run.run_state import LiveRunState
from executor.schedule.admission import in_order, startable, too_big
from executor.schedule.concurrency import Concurrency
from executor.schedule.order import urgent_of
from executor.throttle.rates import copying
from model.errors import GuardrailRefused, PlanOutdated, PlimsollError
from model.ids import BrokerId, PartitionId
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.run import MoveProgress, MoveState, RunReport, RunState
from model.units import count_text

_log = logging.getLogger("plimsoll.executor")


class Execution:
    """Executes the plan of a context, once.

    Nothing is journalled or sent before `context.check` accepts the moves. After that
    the run ends done, stopped (by `context.steering`) or failed; in-flight moves are
    always waited for, within the limits.

    A run that resumes `context.past` first reads from the cluster what has become of
    that run's moves.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._timing = context.timing
        self._overrides = context.overrides
        self._concurrency = Concurrency(context.limits)
        self._urgent = urgent_of(context.plan)
        self._waiting = in_order(context.plan.moves)
        self._prepared = False
        self._outdated = False
        """Whether moves of a resumed run no longer fit the cluster."""
        self._state = LiveRunState(context)
        self._gate = RunGate(context, self._health)
        self._in_flight = InFlightMoves(context, self._gate)

    def run(self) -> RunReport:
        """Execute the plan.

        Raises PlanOutdated or GuardrailRefused where nothing was changed, and other
        PlimsollErrors where the run could not continue; those are journalled.
        """
        past, by = self._context.past, self._context.steering.by
        self._state.show()
        if past is None:
            self._context.check(self._waiting)
            self._state.started(by=by)
        else:
            self._state.resumed(by=by)
        try:
            if past is not None:
                self._adopt(past)
            self._move_all()
        except PlimsollError as exc:
            _warn(self._end(RunState.FAILED, str(exc)))
            raise
        except BaseException:
            # An interrupt does not wait, but leaves no setting behind.
            _warn(self._overrides.lift())
            raise
        self._end(*self._outcome())
        return self._state.report().model_copy(update={"outdated": self._outdated})

    @property
    def rolls_back(self) -> bool:
        """Whether a stop rule demands that completed moves be rolled back."""
        return self._gate.rolls_back

    def _record(self, happened: Iterable[RunEvent] = ()) -> None:
        """Journal and show events, each before what it announces is done."""
        for event in happened:
            self._record_gate()
            self._state.apply(event)
            if isinstance(event, events.Moved):
                self._count(event.move)
        self._record_gate()

    def _record_gate(self) -> None:
        for event in self._gate.take_events():
            self._state.apply(event)

    def _count(self, move: Move) -> None:
        done, now_s = self._state.of(move), self._timing.steady_s()
        size = done.bytes_copied or 0
        self._concurrency.ended(move, done.seconds or 0.0, size, now_s)

    @contextmanager
    def _barring(self) -> Iterator[None]:
        with self._gate.barring():
            yield
        self._record()

    def _end(self, state: RunState, reason: str) -> str:
        """End the run; return what is left of its settings, in words."""
        left = self._overrides.lift()
        if self._overrides.remain:
            state = RunState.FAILED
        for platform, moves in self._context.by_platform(self._context.plan.moves):
            noted = platform.noted()
            found = ((m, noted[m.id]) for m in moves if noted.get(m.id))
            self._record(events.Noted(m, note.note, note.detail) for m, note in found)
        self._state.ended(state, "; ".join(filter(None, (reason, left))))
        if self._context.journal.failure not in reason:
            _log.warning("%s", self._context.journal.failure, extra=named(LogEvent.JOURNAL_FAILED))
        return left

    def _adopt(self, past: PastRun) -> None:
        """Read from the cluster what has become of an interrupted run's moves."""
        ended = past.among(MoveState.DONE, MoveState.DROPPED)
        open_moves = [move for move in self._waiting if move not in ended]
        self._waiting = []
        for platform, moves in self._context.by_platform(open_moves):
            found = platform.progress(moves)
            for move in moves:
                self._record(self._adopt_one(platform, past, move, found[move.id]))
        if self._waiting and not self._gate.halted:
            try:
                self._context.check(self._waiting)
            except (PlanOutdated, GuardrailRefused) as exc:
                self._outdated = isinstance(exc, PlanOutdated)
                self._gate.halt(str(exc))
        self._record()

    def _adopt_one(
        self, platform: Platform, past: PastRun, move: Move, seen: ObservedMove
    ) -> RunEvents:
        # Where a record is missing, it may have been the one of this move.
        is_ours = past.has_losses or past.moves[move.id].issued_at_ms is not None
        is_planned = seen.stage is MoveStage.NOT_BEGUN and move.id not in past.cancelling
        if is_planned or (seen.is_as_before(move) and not is_ours):
            yield events.NotStarted(move)
            self._waiting.append(move)
            return
        match seen.stage:
            case MoveStage.NOT_BEGUN | MoveStage.HALFWAY | MoveStage.REVERTED if (
                move.id in past.cancelling
            ):
                yield from self._in_flight.adopt(move, cancelling=True)
            case MoveStage.DONE if is_ours:
                platform.after(move)
                yield events.Moved(move)
            case MoveStage.MOVING | MoveStage.HALFWAY | MoveStage.ARRIVED if is_ours:
                yield from self._in_flight.adopt(move)
            case _:
                reason = seen.reason or f"someone else moves or moved {move.id}"
                yield events.Failed(move, MoveState.DROPPED, reason)
                if not seen.is_gone:
                    self._gate.halt(reason)

    def _prepare(self) -> None:
        self._prepared = True
        self._overrides.balancer.begin(self._waiting)
        self._overrides.throttle.begin(self._waiting, self._in_flight.moves)
        with self._gate.asking():
            # Leaders change first: a right that only copies need must not be missed after that.
            self._overrides.throttle.limit(copying(self._waiting)[:1])
        begun_s = self._timing.steady_s()
        self._overrides.segments.begin(self._waiting)
        stop = self._context.steering.stopping
        for platform, moves in self._context.by_platform(self._waiting):
            prepared = platform.prepare(moves, stop)
            found = ((move, prepared[move.id]) for move in moves)
            self._record(
                events.Prepared(move, of.note, of.detail)
                for move, of in found
                if of.note or of.detail
            )
        self._state.preparation_took(self._timing.steady_s() - begun_s)

    def _move_all(self) -> None:
        limits = self._context.limits
        if not self._gate.halted:
            self._waiting = self._context.eta.order(self._waiting, self._free())
        self._gate.begin()
        while True:
            with self._barring():
                self._start_more()
                if self._gate.cancels:
                    self._record(self._in_flight.cancel())
            in_flight = self._in_flight.moves
            if not in_flight and (self._gate.halted or not self._waiting):
                return
            idle = self._gate.paused and not in_flight
            self._timing.pause(limits.health_s if idle else limits.poll_s)
            with self._barring():
                self._record(self._in_flight.poll())
            self._estimate()

    def _start_more(self) -> None:
        """Prepare the moves once the gate first opens, then start those that may."""
        if self._waiting and not self._prepared and self._may_start():
            self._prepare()
        if not self._may_start():
            return
        running, free = self._in_flight.moves, self._free()
        limits = self._concurrency.limits
        chosen = startable(self._waiting, running, limits, free, self._urgent)
        if self._waiting and not chosen and not running:
            move = self._waiting.pop(0)
            self._record([events.Failed(move, MoveState.DROPPED, too_big(move, free))])
        self._waiting = [move for move in self._waiting if move not in chosen]
        for platform, moves in self._context.by_platform(chosen):
            if fitting := self._still_fit(platform, moves):
                self._record(self._in_flight.send(platform, fitting))

    def _may_start(self) -> bool:
        waiting, in_flight = bool(self._waiting), bool(self._in_flight.moves)
        may_start = self._gate.may_start(waiting=waiting, in_flight=in_flight)
        self._record()
        self._state.checked(self._context.reading())
        return may_start

    def _health(self) -> list[BrokenStopRule]:
        """Poll the cluster for broken rules."""
        planned = self._context.plan.moves
        groups = self._context.by_platform(planned)
        own = [found for platform, moves in groups if (found := platform.health(moves, planned))]
        return [*own, *self._in_flight.stuck, *self._context.monitor(bool(own))]

    def _free(self) -> Mapping[BrokerId, int]:
        if not self._waiting:
            return {}
        return self._context.headroom(self._context.plan.moves, self._in_flight.moves)

    def _estimate(self) -> None:
        waiting = [] if self._gate.halted else self._waiting
        left_s = self._context.eta.left_s(self._state.moves, waiting, self._concurrency)
        if left_s is not None:
            self._state.estimated(left_s)

    def _still_fit(self, platform: Platform, moves: Sequence[Move]) -> list[Move]:
        """Moves that are still to be made; the others are skipped.

        Their partitions are placed as planned, and no dead broker that they leave has returned.
        """
        found: Mapping[PartitionId, ObservedMove] = {}
        with self._gate.asking():
            found = platform.placed(moves)
        if not found:
            self._waiting = [*moves, *self._waiting]
        fitting = []
        for move in (m for m in moves if m.id in found):
            if skipped := self._skipped(move, found[move.id]):
                self._record([skipped])
            else:
                fitting.append(move)
        return fitting

    def _skipped(self, move: Move, seen: ObservedMove) -> events.Failed | None:
        """The event of a move that is not started; None where it is."""
        if not seen.is_as_before(move):
            reason = seen.reason or f"someone else moves {move.id}"
            return events.Failed(move, MoveState.DROPPED, reason)
        if seen.view is None:
            return None
        reason = move_progress.returned(move, self._context.dead, seen.view)
        return events.Failed(move, MoveState.DROPPED, reason, unneeded=True) if reason else None

    def _outcome(self) -> tuple[RunState, str]:
        if reason := self._gate.halted:
            is_intended = reason in (STOPPED, ABORTED, CLOSED)
            return RunState.STOPPED if is_intended else RunState.FAILED, reason
        ended = (MoveState.DROPPED, MoveState.STUCK)
        skipped = [self._state.of(move) for move in self._state.among(*ended)]
        planned = count_text(len(self._context.plan.moves), "move")
        if failed := [at for at in skipped if not at.unneeded]:
            return RunState.FAILED, f"{len(failed)} of {planned} could not be made{_first(failed)}"
        if skipped:
            return RunState.DONE, f"{len(skipped)} of {planned} not needed{_first(skipped)}"
        return RunState.DONE, ""


def _first(moves: Sequence[MoveProgress]) -> str:
    """The first of some moves, and its reason."""
    return f", the first of {moves[0].move.id}: {moves[0].note}"


def _warn(left: str) -> None:
    """Log settings that are still in force where an error hides the report."""
    if left:
        _log.warning("%s", left, extra=named(LogEvent.RUN_SETTINGS))
