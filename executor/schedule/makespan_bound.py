"""A lower bound on the makespan of moves, for any order."""

from collections import defaultdict
from collections.abc import Sequence

from executor.schedule.admission import brokers_of
from executor.schedule.concurrency import GOOD_S, Concurrency
from executor.schedule.task import CopyResource, CopySpeed, MoveTask
from executor.timing import RunLimits
from model.ids import BrokerId
from model.snapshot.snapshot import StorageKind


def least_s(tasks: Sequence[MoveTask], limits: RunLimits, speed: CopySpeed) -> float:
    """A lower bound in seconds on the duration of these moves.

    The busiest resource has to carry its bytes, and its last move then has to end; the
    slots of the cluster and of each broker have to hold every move for as long as it
    takes alone; moves of internal topics run alone.
    """
    concurrent = [task for task in tasks if not task.is_alone]
    alone_s = sum(task.alone_s(speed) for task in tasks if task.is_alone)
    return alone_s + max(
        *_resources_s(concurrent, speed).values(),
        *_slots_s(concurrent, Concurrency(limits).widest, speed),
        _widening_s(concurrent, limits, speed),
    )


def _resources_s(tasks: Sequence[MoveTask], speed: CopySpeed) -> dict[CopyResource, float]:
    """Seconds that each resource is busy, plus the fixed time of its last move."""
    busy: dict[CopyResource, float] = defaultdict(float)
    last: dict[CopyResource, float] = {}
    for task in tasks:
        fixed_s = task.fixed_s(speed)
        for resource, size in task.resources():
            busy[resource] += size / speed.of(resource)
            last[resource] = min(last.get(resource, fixed_s), fixed_s)
    return {resource: seconds + last[resource] for resource, seconds in busy.items()}


def _slots_s(tasks: Sequence[MoveTask], limits: RunLimits, speed: CopySpeed) -> list[float]:
    """The longest move, and the total duration divided by slots, for cluster and brokers."""
    alone = [task.alone_s(speed) for task in tasks]
    held: dict[BrokerId, float] = defaultdict(float)
    for task, seconds in zip(tasks, alone, strict=True):
        for broker in brokers_of(task.move):
            held[broker] += seconds
    return [
        max(alone, default=0.0),
        sum(alone) / limits.moves_in_flight,
        *(seconds / limits.moves_per_broker for seconds in held.values()),
    ]


def _widening_s(tasks: Sequence[MoveTask], limits: RunLimits, speed: CopySpeed) -> float:
    """Seconds that moves on shared storage take while concurrency still grows."""
    concurrency = Concurrency(limits)
    moves = [w.move for w in tasks if w.move.storage is StorageKind.SHARED]
    rounds = 0
    while moves and speed.seconds <= GOOD_S:
        now = concurrency.limits.moves_in_flight
        for move in moves[:now]:
            concurrency.ended(move, speed.seconds, 0, rounds * speed.seconds)
        del moves[:now]
        rounds += 1
    return rounds * speed.seconds
