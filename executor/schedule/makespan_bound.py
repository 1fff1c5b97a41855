"""What no order of a plan's moves can be quicker than."""

from collections import defaultdict
from collections.abc import Sequence

from executor.schedule.admission import brokers_of
from executor.schedule.concurrency import GOOD_S, Concurrency
from executor.schedule.task import CopySpeed, Lane, Work
from executor.timing import RunLimits
from model.ids import BrokerId
from model.snapshot.snapshot import StorageKind


def least_s(works: Sequence[Work], limits: RunLimits, speed: CopySpeed) -> float:
    """Seconds that these moves take at least, however they are ordered.

    The busiest lane has to carry its bytes, and the last move through it then to end;
    the slots of the cluster and of each broker have to hold every move as long as it
    takes alone; moves of internal topics run alone.
    """
    beside = [work for work in works if not work.is_alone]
    alone_s = sum(work.alone_s(speed) for work in works if work.is_alone)
    return alone_s + max(
        *_resources_s(beside, speed).values(),
        *_slots_s(beside, Concurrency(limits).widest, speed),
        _widening_s(beside, limits, speed),
    )


def _resources_s(works: Sequence[Work], speed: CopySpeed) -> dict[Lane, float]:
    """Seconds that each lane is busy for, and the last of its moves after that."""
    busy: dict[Lane, float] = defaultdict(float)
    last: dict[Lane, float] = {}
    for work in works:
        fixed_s = work.fixed_s(speed)
        for lane, size in work.lanes():
            busy[lane] += size / speed.of(lane)
            last[lane] = min(last.get(lane, fixed_s), fixed_s)
    return {lane: seconds + last[lane] for lane, seconds in busy.items()}


def _slots_s(works: Sequence[Work], limits: RunLimits, speed: CopySpeed) -> list[float]:
    """The longest move, and all of them and those of each broker by their slots."""
    alone = [work.alone_s(speed) for work in works]
    held: dict[BrokerId, float] = defaultdict(float)
    for work, seconds in zip(works, alone, strict=True):
        for broker in brokers_of(work.move):
            held[broker] += seconds
    return [
        max(alone, default=0.0),
        sum(alone) / limits.moves_in_flight,
        *(seconds / limits.moves_per_broker for seconds in held.values()),
    ]


def _widening_s(works: Sequence[Work], limits: RunLimits, speed: CopySpeed) -> float:
    """What moves on shared storage take while they have shown little yet."""
    concurrency = Concurrency(limits)
    moves = [w.move for w in works if w.move.storage is StorageKind.SHARED]
    rounds = 0
    while moves and speed.seconds <= GOOD_S:
        now = concurrency.limits.moves_in_flight
        for move in moves[:now]:
            concurrency.ended(move, speed.seconds, 0, rounds * speed.seconds)
        del moves[:now]
        rounds += 1
    return rounds * speed.seconds
