"""Estimates of a run: time, bytes and peak loads before it starts, then the time left."""

import logging
import math
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from executor.schedule.admission import NO_LIMIT
from executor.schedule.concurrency import Concurrency
from executor.schedule.order import quick_schedule, schedule, urgent_of
from executor.schedule.simulate import Peak, simulated
from executor.schedule.task import NO_SIZES, CopyResource, ScheduleConstraints, Sizes, tasks_of
from executor.schedule.throughput import MUCH, Pace, through
from executor.timing import RunLimits, Timing
from model.ids import BrokerId
from model.log_events import LogEvent, named
from model.plan.plan import Move, Plan
from model.run import MoveProgress, MoveState
from model.units import seconds_text

_EVERY_S: Final = 10.0
"""Seconds between two estimates of up to `_MANY` moves."""
_MANY: Final = 1000
_MARKS: Final = 7
"""Number of estimates over which the speed is averaged."""
_CHANGE: Final = 0.2
"""Relative change of the time left that is logged."""
_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The estimated duration, bytes and peaks of a run."""

    seconds: float
    least_s: float
    """Proved lower bound in seconds at this pace, for any order of the moves."""
    order: tuple[Move, ...]
    """The order of execution; a move starts when its brokers have free slots."""
    bytes_to_copy: int
    """Between and within brokers, of moves whose size is known."""
    unknown: int
    """Number of moves of unknown size, which count as empty."""
    peaks: dict[BrokerId, Peak]
    free_bytes: Mapping[BrokerId, int]
    """Free bytes beyond the reserve, by target broker that reports them."""
    unfit: tuple[str, ...]
    """Why moves will never fit on a disk, one sentence each."""
    known: int
    """Number of earlier moves that the estimate is based on."""
    leaders_s: float | None = None
    """Seconds that changes of leader alone would take; None where the plan names none."""


def forecast(
    plan: Plan,
    limits: RunLimits,
    pace: Pace,
    free_bytes: Mapping[BrokerId, int] = NO_LIMIT,
    sizes: Sizes = NO_SIZES,
) -> Forecast:
    """Schedule a plan and simulate the schedule."""
    constraints = ScheduleConstraints(
        limits=limits, speed=pace.speed(limits), free_bytes=free_bytes, urgent=urgent_of(plan)
    )
    found = schedule(tasks_of(plan.moves, sizes), constraints)
    timeline = found.timeline
    return Forecast(
        seconds=timeline.seconds,
        least_s=found.least_s,
        order=tuple(task.move for task in found.order),
        unknown=sum(task.move.bytes_to_copy is None for task in found.order),
        bytes_to_copy=sum(
            one.size
            for task in found.order
            if task.move.id in timeline.spans
            for one in task.copies
        ),
        peaks=timeline.peaks,
        free_bytes=free_bytes,
        unfit=tuple(reason for _, reason in timeline.unfit),
        known=pace.known,
        leaders_s=_leaders_s(plan, limits, pace),
    )


def _leaders_s(plan: Plan, limits: RunLimits, pace: Pace) -> float | None:
    """As many at once as a run begins; which brokers they are of is not known."""
    if plan.leaders_only is None:
        return None
    at_once = min(limits.leader_changes_in_flight, limits.moves_per_broker)
    return math.ceil(plan.leaders_only.leader_changes / at_once) * pace.seconds


def expected_seconds(
    plan: Plan, limits: RunLimits, past: Iterable[Sequence[MoveProgress]] = ()
) -> float:
    """Estimate the duration of a plan without asking the cluster.

    past: moves of earlier runs on the cluster, which show its pace. Moves of unknown size count
    as empty, and every disk has room. About as `forecast`, which proves more and takes longer.
    """
    constraints = ScheduleConstraints(
        limits=limits,
        speed=Pace.of(past).speed(limits),
        free_bytes=NO_LIMIT,
        urgent=urgent_of(plan),
    )
    return quick_schedule(tasks_of(plan.moves, NO_SIZES), constraints).timeline.seconds


class EtaEstimator:
    """Simulates the rest of a plan at the observed speed. The run's thread uses it.

    `look` returns the bytes of replicas to copy between directories of their broker.
    """

    def __init__(
        self,
        plan: Plan,
        limits: RunLimits,
        pace: Pace,
        timing: Timing,
        look: Callable[[Sequence[Move]], Sizes],
    ) -> None:
        self._limits = limits
        self._speed = pace.speed(limits)
        self._urgent = urgent_of(plan)
        self._timing = timing
        self._look = look
        self._sizes: Sizes = NO_SIZES
        self._marks: deque[tuple[float, Mapping[CopyResource, float]]] = deque(maxlen=_MARKS)
        self._due_s = float("-inf")
        self._logged_end_s = 0.0
        """Estimated end, by the steady clock, that was logged last."""

    def order(self, waiting: Sequence[Move], free_bytes: Mapping[BrokerId, int]) -> list[Move]:
        """Return the moves in the order in which to start them."""
        self._sizes = self._look(waiting)
        constraints = ScheduleConstraints(
            limits=self._limits, speed=self._speed, free_bytes=free_bytes, urgent=self._urgent
        )
        found = schedule(tasks_of(waiting, self._sizes), constraints)
        _log.info(
            "the moves will take about %s, in no order less than %s",
            seconds_text(found.timeline.seconds),
            seconds_text(found.least_s),
            extra=named(LogEvent.RUN_ESTIMATE),
        )
        self._logged_end_s = self._timing.steady_s() + found.timeline.seconds
        return [task.move for task in found.order]

    def left_s(
        self, moves: Sequence[MoveProgress], waiting: Sequence[Move], concurrency: Concurrency
    ) -> float | None:
        """Return the seconds until the last move ends; None if the last estimate is recent.

        Moves that wait for disk space are assumed to find it.
        """
        now_s = self._timing.steady_s()
        if now_s < self._due_s:
            return None
        self._due_s = now_s + _EVERY_S * max(1.0, len(waiting) / _MANY)
        self._observe(moves, now_s)
        running = [at for at in moves if at.state is MoveState.ISSUED]
        left_s = simulated(
            tasks_of(waiting, self._sizes),
            self._speed,
            concurrency,
            in_flight=tasks_of((at.move for at in running), self._sizes),
            copied={at.move.id: float(at.bytes_copied or 0) for at in running},
            urgent=self._urgent,
        ).seconds
        self._log_end(now_s + left_s, left_s)
        return left_s

    def _log_end(self, ends_s: float, left_s: float) -> None:
        """Log the estimated end if it differs from the one logged last."""
        later_s = ends_s - self._logged_end_s
        if abs(later_s) > _CHANGE * left_s + _EVERY_S:
            _log.info(
                "the run will end in about %s, %s %s than expected",
                seconds_text(left_s),
                seconds_text(abs(later_s)),
                "later" if later_s > 0 else "sooner",
                extra=named(LogEvent.RUN_ESTIMATE),
            )
            self._logged_end_s = ends_s

    def _observe(self, moves: Sequence[MoveProgress], now_s: float) -> None:
        """Take the speed from the resource that copied most lately."""
        passed: Counter[CopyResource] = Counter()
        for at in moves:
            passed.update(through(at))
        if self._marks:
            then_s, before = self._marks[0]
            most = max((n - before.get(k, 0.0) for k, n in passed.items()), default=0.0)
            if most >= MUCH and now_s > then_s:
                self._speed = replace(self._speed, network=most / (now_s - then_s))
        self._marks.append((now_s, passed))
