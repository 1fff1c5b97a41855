"""One run: carries out a plan move by move, and says exactly where it ended."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, assert_never

from executor.answers import Answer, Verdict
from executor.balancer import RunBalancer
from executor.concurrency import Concurrency
from executor.dialect import Dialect, Progress, Stage
from executor.flight import ATTEMPTS, Flight, Step
from executor.history import PastRun
from executor.journal import Journal
from executor.ledger import Ledger
from executor.schedule import in_order, startable, too_big
from executor.throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.errors import (
    ClusterUnreachable,
    GuardrailRefused,
    PlanOutdated,
    PlimsollError,
    WriterBarred,
)
from model.ids import BrokerId, PartitionId
from model.plan import Move, Plan
from model.run import MoveState, RunProgress, RunReport, RunState
from model.snapshot import StorageKind
from model.units import bytes_text, count_text

_BY_OPERATOR: Final = "stopped by the operator"
_log = logging.getLogger("plimsoll.executor")


class Execution:
    """Carries out one plan, once.

    `check` raises where moves that are to begin do not fit the cluster; nothing is
    journalled or sent then. After that the run ends done, stopped (by `stop`) or
    failed, and what is under way is always waited for, within `limits`.

    With a `past` run of the same plan and journal it goes on with that one: what
    became of its moves meanwhile is read from the cluster.
    """

    def __init__(
        self,
        plan: Plan,
        dialects: Mapping[StorageKind, Dialect],
        journal: Journal,
        *,
        check: Callable[[Sequence[Move]], None],
        limits: RunLimits,
        timing: Timing,
        observe: Callable[[RunProgress], None],
        stop: threading.Event,
        throttle: RunThrottle,
        room: Callable[[Sequence[Move]], Mapping[BrokerId, int]],
        watch: Callable[[], str | None],
        balancer: RunBalancer,
        past: PastRun | None = None,
    ) -> None:
        self._plan = plan
        self._past = past
        self._dialects = dialects
        self._check = check
        self._limits = limits
        self._concurrency = Concurrency(limits)
        self._timing = timing
        self._stop = stop
        self._throttle = throttle
        self._room = room
        self._watch = watch
        self._balancer = balancer
        self._ledger = Ledger(plan, journal, timing, observe, past)
        self._waiting = in_order(plan.moves)
        self._flights: dict[PartitionId, Flight] = {}
        self._halt = ""
        """Why nothing further is started; empty while all is well."""
        self._barred = False
        """Whether moves under way are left as they are where they need a request."""
        self._answered_at_s = 0.0
        self._healthy_at_s = float("-inf")

    def run(self) -> RunReport:
        """Do it.

        Raises PlanOutdated or GuardrailRefused where nothing was changed, and other
        errors of plimsoll where the run could not go on; those are journalled.
        """
        self._ledger.tell()
        if self._past is None:
            self._check(self._waiting)
            self._ledger.started()
        else:
            self._ledger.resumed()
        try:
            if self._past is not None:
                self._adopt(self._past)
            with self._barring():
                self._prepare()
            self._move()
        except PlimsollError as exc:
            self._end(RunState.FAILED, str(exc))
            raise
        except BaseException:
            # A second Ctrl-C does not wait, but leaves nothing set.
            self._lift()
            raise
        self._end(*self._outcome())
        return self._ledger.report()

    def _end(self, state: RunState, reason: str) -> None:
        left, words = self._lift()
        if left or self._balancer.stands_down:
            state = RunState.FAILED
        for dialect, moves in self._by_dialect(self._plan.moves):
            noted = dialect.noted()
            for move in moves:
                if found := noted.get(move.id):
                    self._ledger.noted(move, found.note, found.detail)
        self._ledger.ended(state, "; ".join(filter(None, (reason, left, words))))

    def _lift(self) -> tuple[str, str]:
        """Take back what was set for the run; what there is to say of each."""
        try:
            left = self._throttle.end()
        finally:
            words = self._balancer.end()
        return left, words

    def _adopt(self, past: PastRun) -> None:
        """Read from the cluster what became of the moves of a run that was cut off."""
        ended = past.among(MoveState.DONE, MoveState.DROPPED)
        open_moves = [move for move in self._waiting if move not in ended]
        self._waiting = []
        for dialect, moves in self._by_dialect(open_moves):
            found = dialect.progress(moves)
            for move in moves:
                self._adopt_one(past, move, found[move.id])
        if self._waiting and not self._halt:
            try:
                self._check(self._waiting)
            except (PlanOutdated, GuardrailRefused) as exc:
                self._halt_for(str(exc))

    def _adopt_one(self, past: PastRun, move: Move, seen: Progress) -> None:
        is_ours = past.moves[move.id].issued_at_ms is not None
        if seen.stage is Stage.NOT_BEGUN or (seen.is_as_before(move) and not is_ours):
            self._ledger.put_back(move)
            self._waiting.append(move)
            return
        match seen.stage:
            case Stage.DONE if is_ours:
                self._ledger.moved(move)
            case Stage.MOVING | Stage.HALFWAY | Stage.ARRIVED if is_ours:
                self._ledger.adopted(move)
                flight = Flight(move, self._limits.stuck_s)
                flight.sent(self._timing.now_s(), Verdict.ACCEPTED)
                self._flights[move.id] = flight
            case _:
                reason = seen.reason or f"somebody else moves or moved {move.id}"
                self._fail(move, MoveState.DROPPED, reason)
                self._halt_for(reason)

    def _prepare(self) -> None:
        if self._halt:
            return
        self._balancer.begin(self._waiting)
        self._throttle.begin(self._waiting)
        begun_s = self._timing.now_s()
        for dialect, moves in self._by_dialect(self._waiting):
            prepared = dialect.prepare(moves, self._stop)
            for move in moves:
                found = prepared[move.id]
                if found.note or found.detail:
                    self._ledger.prepared(move, found.note, dict(found.detail))
        self._ledger.preparation_took(self._timing.now_s() - begun_s)

    def _move(self) -> None:
        self._answered_at_s = self._timing.now_s()
        while True:
            with self._barring():
                if self._is_well():
                    self._start_next()
            if not self._flights and (self._halt or not self._waiting):
                return
            self._timing.pause(self._limits.poll_s)
            with self._barring():
                self._look()

    def _is_well(self) -> bool:
        """Whether more may be started; halts where operator or cluster say no."""
        if self._stop.is_set() and self._waiting:
            self._halt_for(_BY_OPERATOR)
        now_s = self._timing.now_s()
        if self._halt or now_s - self._healthy_at_s < self._limits.health_s:
            return not self._halt
        with self._asking():
            for dialect, moves in self._by_dialect(self._plan.moves):
                if reason := dialect.health(moves):
                    self._halt_for(reason)
            if reason := self._watch():
                self._halt_for(reason)
            self._healthy_at_s = now_s
        return self._healthy_at_s == now_s and not self._halt

    def _start_next(self) -> None:
        running = [flight.move for flight in self._flights.values()]
        free = self._room(self._plan.moves) if self._waiting else {}
        chosen = startable(self._waiting, running, self._concurrency.limits, free)
        if self._waiting and not chosen and not running:
            move = self._waiting.pop(0)
            self._fail(move, MoveState.DROPPED, too_big(move, free))
        self._waiting = [move for move in self._waiting if move not in chosen]
        for dialect, moves in self._by_dialect(chosen):
            if fitting := self._still_fit(dialect, moves):
                self._send(dialect, fitting)

    def _still_fit(self, dialect: Dialect, moves: Sequence[Move]) -> list[Move]:
        """Those whose partitions are as planned; others are dropped by name."""
        found: Mapping[PartitionId, Progress] = {}
        with self._asking():
            found = dialect.progress(moves)
        if not found:
            self._waiting = [*moves, *self._waiting]
        for move in (m for m in moves if m.id in found):
            if not found[move.id].is_as_before(move):
                reason = found[move.id].reason or f"somebody else moves {move.id}"
                self._fail(move, MoveState.DROPPED, reason)
        return [m for m in moves if m.id in found and found[m.id].is_as_before(m)]

    def _send(self, dialect: Dialect, moves: Sequence[Move]) -> None:
        sent_at_s = self._timing.now_s()
        self._ledger.issuing(moves)
        answers: Mapping[PartitionId, Answer] = {}
        with self._asking(), self._barring():
            answers = dialect.start(moves)
        for move in moves:
            answer = answers.get(move.id, Answer.unknown())
            self._ledger.issued(move, answer.verdict.value)
            if answer.verdict is Verdict.REFUSED:
                self._fail(move, MoveState.DROPPED, f"refused: {answer.reason}")
                continue
            flight = self._flights.setdefault(
                move.id, Flight(move, self._limits.stuck_s)
            )
            flight.sent(sent_at_s, answer.verdict)

    def _look(self) -> None:
        """See how far each move under way is, and do what follows."""
        moves = [flight.move for flight in self._flights.values()]
        for dialect, ours in self._by_dialect(moves):
            with self._asking():
                found = dialect.progress(ours)
                for move in ours:
                    # An abandoned run has no flights left.
                    if flight := self._flights.get(move.id):
                        self._follow(dialect, flight, found[move.id])

    def _follow(self, dialect: Dialect, flight: Flight, seen: Progress) -> None:
        move, now_s = flight.move, self._timing.now_s()
        self._ledger.copied(move, seen.bytes_copied)
        match flight.see(seen, now_s):
            case Step.WAIT:
                return
            case Step.HURRY | Step.SEND_NEXT | Step.SEND_AGAIN | Step.FINISH if (
                self._barred
            ):
                self._leave(move, seen)
            case Step.SEND_NEXT | Step.SEND_AGAIN:
                self._send(dialect, [move])
            case Step.HURRY:
                self._hurry(move)
            case Step.FINISH:
                self._ledger.electing([move])
                flight.finished_at_s = now_s
                dialect.finish([move])
            case Step.DONE:
                # Where no answer comes, the next look does it again.
                with self._barring():
                    self._throttle.release(move)
                dialect.after(move)
                del self._flights[move.id]
                self._ledger.moved(move)
                self._concurrency.ended(move, self._ledger.of(move).seconds or 0.0)
            case Step.GIVE_UP:
                reason = f"not begun after {ATTEMPTS} requests without an answer"
                self._fail(move, MoveState.DROPPED, reason)
            case Step.LOST:
                reason = seen.reason or f"somebody else cancelled the move of {move.id}"
                self._fail(move, MoveState.DROPPED, reason)
                self._halt_for(reason)
            case Step.STUCK:
                reason = f"{move.id} made no progress for {self._limits.stuck_s:.0f} s"
                self._fail(move, MoveState.STUCK, reason)
                self._halt_for(reason)
            case never:
                assert_never(never)

    def _hurry(self, move: Move) -> None:
        """A throttle under what is produced would keep a copy behind for ever."""
        if rate := self._throttle.raise_rate():
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

    @contextmanager
    def _barring(self) -> Iterator[None]:
        """Steps that may not be taken any more end the run, and not at once."""
        try:
            yield
        except WriterBarred as exc:
            self._barred = True
            self._halt_for(str(exc))

    def _halt_for(self, reason: str) -> None:
        """Start nothing further; the first reason stays."""
        if not self._halt:
            _log.info("run of plan %s stops: %s", self._plan.hash[:12], reason)
            self._halt = reason
            self._ledger.stopping(reason)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """A question to the cluster that may go without an answer for a while."""
        try:
            yield
        except ClusterUnreachable as exc:
            _log.debug("%s", exc)
            silent_s = self._timing.now_s() - self._answered_at_s
            if silent_s >= self._limits.unreachable_s:
                self._abandon(f"no answer for {silent_s:.0f} s: {exc}")
        else:
            self._answered_at_s = self._timing.now_s()

    def _abandon(self, reason: str) -> None:
        for flight in list(self._flights.values()):
            self._fail(flight.move, MoveState.STUCK, "its end was not seen")
        self._halt_for(reason)

    def _outcome(self) -> tuple[RunState, str]:
        if self._halt:
            by_operator = self._halt == _BY_OPERATOR
            return RunState.STOPPED if by_operator else RunState.FAILED, self._halt
        dropped = self._ledger.among(MoveState.DROPPED)
        if not dropped:
            return RunState.DONE, ""
        first = dropped[0]
        return RunState.FAILED, (
            f"{len(dropped)} of {count_text(len(self._plan.moves), 'move')} could not "
            f"be made, the first of {first.id}: {self._ledger.of(first).note}"
        )

    def _by_dialect(
        self, moves: Sequence[Move]
    ) -> Iterator[tuple[Dialect, list[Move]]]:
        for kind, dialect in self._dialects.items():
            if group := [move for move in moves if move.storage is kind]:
                yield dialect, group
