"""What a run will take, before it begins: time, bytes, and what brokers carry."""

from collections.abc import Mapping
from dataclasses import dataclass

from executor.schedule.admission import NO_LIMIT
from executor.schedule.order import Schedule, schedule, urgent_of
from executor.schedule.simulate import Peak
from executor.schedule.task import NO_SIZES, ScheduleConstraints, Sizes, tasks_of
from executor.schedule.throughput import Pace
from executor.timing import RunLimits
from model.ids import BrokerId
from model.plan.plan import Move, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What a run is expected to take."""

    seconds: float
    least_s: float
    """Proved: no order of the moves is quicker at this pace."""
    order: tuple[Move, ...]
    """As they are taken; one begins when slots of its brokers are free."""
    bytes_to_copy: int
    """Between brokers and inside them, of moves whose size is known."""
    unknown: int
    """Moves whose size is unknown; they are taken to copy nothing."""
    peaks: dict[BrokerId, Peak]
    free_bytes: Mapping[BrokerId, int]
    """Of brokers that moves copy to, beside the reserve, where that is known."""
    unfit: tuple[str, ...]
    """Why moves will never find room, of each that does not."""
    known: int
    """Moves of before that the time is estimated from."""


def forecast(
    plan: Plan,
    limits: RunLimits,
    pace: Pace,
    free_bytes: Mapping[BrokerId, int] = NO_LIMIT,
    sizes: Sizes = NO_SIZES,
) -> Forecast:
    """Schedule a plan, and run that on paper."""
    constraints = ScheduleConstraints(
        limits=limits,
        speed=pace.speed(limits),
        free_bytes=free_bytes,
        urgent=urgent_of(plan),
    )
    return _forecast_of(
        schedule(tasks_of(plan.moves, sizes), constraints), free_bytes, pace
    )


def _forecast_of(
    found: Schedule, free_bytes: Mapping[BrokerId, int], pace: Pace
) -> Forecast:
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
