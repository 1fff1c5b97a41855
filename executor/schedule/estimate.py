"""An estimate of a run before it starts: time, bytes, and peak loads of brokers."""

from collections.abc import Mapping
from dataclasses import dataclass

from executor.schedule.admission import NO_LIMIT
from executor.schedule.order import schedule, urgent_of
from executor.schedule.simulate import Peak
from executor.schedule.task import NO_SIZES, ScheduleConstraints, Sizes, tasks_of
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.ids import BrokerId
from model.plan.plan import Move, Plan


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
    )
