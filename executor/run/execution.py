"""One run: carries out a plan move by move, and says exactly where it ended."""

import logging
from collections.abc import Callable, Mapping, Sequence

from executor.health.health_rules import CLOSED, BrokenStopRule
from executor.journal.run_history import PastRun
from executor.journal.run_journal import RunJournal
from executor.platforms.automq_balancer import RunBalancer
from executor.platforms.platform import Platform, Progress, Stage
from executor.platforms.tiered_segments import RunSegments
from executor.run.in_flight import InFlightMoves, by_dialect
from executor.run.operator_control import Steering
from executor.run.run_gate import ABORTED, STOPPED, Course
from executor.run.run_state import LiveRunState
from executor.schedule.admission import in_order, startable, too_big
from executor.schedule.concurrency import Concurrency
from executor.schedule.eta import WeeklyForecast
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.errors import GuardrailRefused, PlanOutdated, PlimsollError
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move, Plan
from model.run import MoveState, RunProgress, RunReport, RunState
from model.snapshot.snapshot import StorageKind
from model.units import count_text

_log = logging.getLogger("plimsoll.executor")


class Execution:
    """Carries out one plan, once.

    `check` raises where moves that are to begin do not fit the cluster; nothing is
    journalled or sent then. After that the run ends done, stopped (by `steering`) or
    failed, and what is under way is always waited for, within `limits`.

    With a `past` run of the same plan and journal it goes on with that one: what
    became of its moves meanwhile is read from the cluster.
    """

    def __init__(
        self,
        plan: Plan,
        dialects: Mapping[StorageKind, Platform],
        journal: RunJournal,
        *,
        check: Callable[[Sequence[Move]], None],
        limits: RunLimits,
        timing: Timing,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        throttle: RunThrottle,
        room: Callable[[Sequence[Move], Sequence[Move]], Mapping[BrokerId, int]],
        watch: Callable[[bool], Sequence[BrokenStopRule]],
        balancer: RunBalancer,
        segments: RunSegments,
        outlook: WeeklyForecast,
        past: PastRun | None = None,
    ) -> None:
        self._plan = plan
        self._past = past
        self._platforms = dialects
        self._check = check
        self._concurrency = Concurrency(limits)
        self._limits = limits
        self._timing = timing
        self._steering = steering
        self._throttle = throttle
        self._room = room
        self._watch = watch
        self._balancer = balancer
        self._segments = segments
        self._outlook = outlook
        self._ledger = LiveRunState(plan, journal, timing, observe, past)
        self._waiting = in_order(plan.moves)
        self._prepared = False
        self._course = Course(
            self._ledger,
            steering=steering,
            limits=limits,
            timing=timing,
            health=self._health,
        )
        self._flights = InFlightMoves(
            dialects,
            self._ledger,
            self._course,
            concurrency=self._concurrency,
            limits=limits,
            timing=timing,
            throttle=throttle,
            segments=segments,
        )

    def run(self) -> RunReport:
        """Do it.

        Raises PlanOutdated or GuardrailRefused where nothing was changed, and other
        errors of plimsoll where the run could not go on; those are journalled.
        """
        self._ledger.tell()
        if self._past is None:
            self._check(self._waiting)
            self._ledger.started(by=self._steering.by)
        else:
            self._ledger.resumed(by=self._steering.by)
        try:
            if self._past is not None:
                self._adopt(self._past)
            self._move()
        except PlimsollError as exc:
            _warn(self._end(RunState.FAILED, str(exc)))
            raise
        except BaseException:
            # An interrupt does not wait, but leaves nothing set.
            _warn(self._lift())
            raise
        self._end(*self._outcome())
        return self._ledger.report()

    @property
    def rolls_back(self) -> bool:
        """Whether a rule asks that what was finished be moved back."""
        return self._course.rolls_back

    def _end(self, state: RunState, reason: str) -> str:
        """End the run; what there is to say of its settings."""
        words = self._lift()
        if any(
            (self._throttle.stays, self._balancer.is_suspended, self._segments.stay)
        ):
            state = RunState.FAILED
        for dialect, moves in by_dialect(self._platforms, self._plan.moves):
            noted = dialect.noted()
            for move in moves:
                if found := noted.get(move.id):
                    self._ledger.noted(move, found.note, found.detail)
        self._ledger.ended(state, "; ".join(filter(None, (reason, words))))
        if self._ledger.unwritable not in reason:
            _log.warning("%s", self._ledger.unwritable)
        return words

    def _lift(self) -> str:
        """Take back what was set for the run; what there is to say of it, or empty."""
        words: list[str] = []
        try:
            words.append(self._throttle.end())
        finally:
            try:
                words.append(self._balancer.end())
            finally:
                words.append(self._segments.end())
        return "; ".join(filter(None, words))

    def _adopt(self, past: PastRun) -> None:
        """Read from the cluster what became of the moves of a run that was cut off."""
        ended = past.among(MoveState.DONE, MoveState.DROPPED)
        open_moves = [move for move in self._waiting if move not in ended]
        self._waiting = []
        for dialect, moves in by_dialect(self._platforms, open_moves):
            found = dialect.progress(moves)
            for move in moves:
                self._adopt_one(dialect, past, move, found[move.id])
        if self._waiting and not self._course.halted:
            try:
                self._check(self._waiting)
            except (PlanOutdated, GuardrailRefused) as exc:
                self._course.halt(str(exc))

    def _adopt_one(
        self, dialect: Platform, past: PastRun, move: Move, seen: Progress
    ) -> None:
        # Where a record is missing, it may have been the one of this move.
        is_ours = past.has_losses or past.moves[move.id].issued_at_ms is not None
        is_planned = seen.stage is Stage.NOT_BEGUN and move.id not in past.cancelling
        if is_planned or (seen.is_as_before(move) and not is_ours):
            self._ledger.put_back(move)
            self._waiting.append(move)
            return
        match seen.stage:
            case Stage.NOT_BEGUN | Stage.HALFWAY | Stage.REVERTED if (
                move.id in past.cancelling
            ):
                self._flights.adopt(move, cancelling=True)
            case Stage.DONE if is_ours:
                dialect.after(move)
                self._ledger.moved(move)
            case Stage.MOVING | Stage.HALFWAY | Stage.ARRIVED if is_ours:
                self._flights.adopt(move)
            case _:
                reason = seen.reason or f"somebody else moves or moved {move.id}"
                self._ledger.failed(move, MoveState.DROPPED, reason)
                self._course.halt(reason)

    def _prepare(self) -> None:
        self._prepared = True
        self._balancer.begin(self._waiting)
        self._throttle.begin(self._waiting, self._flights.moves)
        begun_s = self._timing.steady_s()
        self._segments.begin(self._waiting)
        for dialect, moves in by_dialect(self._platforms, self._waiting):
            prepared = dialect.prepare(moves, self._steering.stopping)
            for move in moves:
                found = prepared[move.id]
                if found.note or found.detail:
                    self._ledger.prepared(move, found.note, dict(found.detail))
        self._ledger.preparation_took(self._timing.steady_s() - begun_s)

    def _move(self) -> None:
        if not self._course.halted:
            self._waiting = self._outlook.order(self._waiting, self._free())
        self._course.begin()
        while True:
            with self._course.barring():
                self._start_more()
                if self._course.cancels:
                    self._flights.cancel()
            flying = self._flights.moves
            if not flying and (self._course.halted or not self._waiting):
                return
            idle = self._course.is_paused and not flying
            self._timing.pause(self._limits.health_s if idle else self._limits.poll_s)
            with self._course.barring():
                self._flights.look()
            self._estimate()

    def _start_more(self) -> None:
        """Nothing is prepared, and so nothing set, before all is well."""
        if self._waiting and not self._prepared and self._may_start():
            self._prepare()
        if self._may_start():
            self._start_next()

    def _may_start(self) -> bool:
        waiting, flying = bool(self._waiting), bool(self._flights.moves)
        return self._course.may_start(waiting=waiting, flying=flying)

    def _health(self) -> list[BrokenStopRule]:
        """What is broken, from a look at the cluster."""
        ways = by_dialect(self._platforms, self._plan.moves)
        own = [found for way, moves in ways if (found := way.health(moves))]
        return [*own, *self._flights.stuck, *self._watch(bool(own))]

    def _start_next(self) -> None:
        running = self._flights.moves
        free = self._free()
        chosen = startable(self._waiting, running, self._concurrency.limits, free)
        if self._waiting and not chosen and not running:
            move = self._waiting.pop(0)
            self._ledger.failed(move, MoveState.DROPPED, too_big(move, free))
        self._waiting = [move for move in self._waiting if move not in chosen]
        for dialect, moves in by_dialect(self._platforms, chosen):
            if fitting := self._still_fit(dialect, moves):
                self._flights.send(dialect, fitting)

    def _free(self) -> Mapping[BrokerId, int]:
        if not self._waiting:
            return {}
        return self._room(self._plan.moves, self._flights.moves)

    def _estimate(self) -> None:
        moves, waiting = self._ledger.moves, self._waiting
        if self._course.halted:
            waiting = []
        left_s = self._outlook.left_s(moves, waiting, self._concurrency)
        if left_s is not None:
            self._ledger.foreseen(left_s)

    def _still_fit(self, dialect: Platform, moves: Sequence[Move]) -> list[Move]:
        """Those whose partitions are as planned; others are dropped by name."""
        found: Mapping[PartitionId, Progress] = {}
        with self._course.asking():
            found = dialect.placed(moves)
        if not found:
            self._waiting = [*moves, *self._waiting]
        for move in (m for m in moves if m.id in found):
            if not found[move.id].is_as_before(move):
                reason = found[move.id].reason or f"somebody else moves {move.id}"
                self._ledger.failed(move, MoveState.DROPPED, reason)
        return [m for m in moves if m.id in found and found[m.id].is_as_before(m)]

    def _outcome(self) -> tuple[RunState, str]:
        if reason := self._course.halted:
            wanted = reason in (STOPPED, ABORTED, CLOSED)
            return RunState.STOPPED if wanted else RunState.FAILED, reason
        dropped = self._ledger.among(MoveState.DROPPED, MoveState.STUCK)
        if not dropped:
            return RunState.DONE, ""
        first = dropped[0]
        return RunState.FAILED, (
            f"{len(dropped)} of {count_text(len(self._plan.moves), 'move')} could not "
            f"be made, the first of {first.id}: {self._ledger.of(first).note}"
        )


def _warn(words: str) -> None:
    """Say what is still set where an error hides the report."""
    if words:
        _log.warning("%s", words)
