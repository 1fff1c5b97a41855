"""How many replicas of identical partitions each broker gets: optimal, for any size.

Partitions of a new topic are identical, so only counts matter. Brokers get at most
their cap, racks between their least and most, and the cost of each count is convex:
adding one replica at a time where it costs least is then optimal (Federgruen and
Groenevelt, 1986, for polymatroids), and the bounds of highest and lowest count follow
from counting.
"""

import heapq
from bisect import bisect_left
from dataclasses import dataclass, replace

import numpy as np

from model.snapshot.snapshot import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class CountLimits:
    """What B brokers in Q racks must and may get of a total."""

    cap: Ints
    """(B,) most replicas of each broker."""
    rack: Ints
    """(B,) number of its rack."""
    least: Ints
    """(Q,) replicas each rack must get."""
    most: Ints
    """(Q,) replicas each rack may get."""
    total: int

    def in_racks(self, count: Ints) -> Ints:
        """Return the (Q,) sums, by rack, of (B,) counts."""
        sums = np.bincount(self.rack, count, minlength=len(self.least))
        return np.asarray(sums).astype(np.int64)

    @property
    def enough(self) -> bool:
        """Whether some (B,) counts add up to the total within all limits of brokers and racks."""
        room = np.minimum(self.in_racks(self.cap), self.most)
        low, high = int(self.least.sum()), int(room.sum())
        return bool((self.least <= room).all()) and low <= self.total <= high


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """Cost of one more replica: first + rise x the broker's present count."""

    first: Floats
    """(B,) cost of the first replica."""
    rise: Floats
    """(B,) at least 0."""
    tie: Floats
    """(B,) tie-breaker between equal costs: lowest first."""

    def cost(self, count: Ints) -> float:
        """Compute the summed cost of (B,) counts, relative to none: a quadratic for each broker.

        In the unit of `first` and `rise`; ties do not count.
        """
        pairs = self.first * count + self.rise * (count * (count - 1) / 2)
        return float(pairs.sum())


def allocate_counts(room: CountLimits, slopes: Slopes) -> Ints:
    """Return (B,) counts of least cost that add up to `room.total` within all limits.

    Of equal costs, the broker with fewer replicas gets the next one, then the rack with fewer per
    broker, then the lowest `tie`. Requires `room.enough`. The greedy algorithm of Federgruen and
    Groenevelt, 1986.
    """
    count = np.zeros(len(room.cap), np.int64)
    racks = [_Rack(room, slopes, q) for q in range(len(room.least))]
    for q, rack in enumerate(racks):
        for _ in range(int(room.least[q])):
            count[rack.take()] += 1
    for _ in range(room.total - int(room.least.sum())):
        open_racks = (r for r in racks if r.taken < r.most and r.heap)
        rack = min(open_racks, key=lambda r: r.next_cost)
        count[rack.take()] += 1
    return count


class _Rack:
    """The brokers of one rack in a heap, the cheapest next one first."""

    def __init__(self, room: CountLimits, slopes: Slopes, number: int) -> None:
        self.most = int(room.most[number])
        self.taken = 0
        self._cap, self._slopes = room.cap, slopes
        here = np.flatnonzero((room.rack == number) & (room.cap > 0)).tolist()
        self._size = max(1, len(here))
        self.heap = [(float(slopes.first[b]), 0, float(slopes.tie[b]), b) for b in here]
        heapq.heapify(self.heap)

    @property
    def next_cost(self) -> tuple[float, int, float, float, int]:
        """Cost of the next one, then what breaks ties."""
        cost, count, tie, broker = self.heap[0]
        return cost, count, self.taken / self._size, tie, broker

    def take(self) -> int:
        """Give one replica to the cheapest broker, and return that broker."""
        _, count, tie, broker = self.heap[0]
        self.taken += 1
        if count + 1 == self._cap[broker]:
            heapq.heappop(self.heap)
        else:
            cost = self._slopes.first[broker] + self._slopes.rise[broker] * (count + 1)
            heapq.heapreplace(self.heap, (float(cost), count + 1, tie, broker))
        return broker


# ---- the proof


def least_highest(room: CountLimits) -> int:
    """Return a lower bound of the highest count on any broker, over all assignments.

    The least cap on every broker under which the limits leave enough room. Requires `room.enough`;
    otherwise it is `room.total`.
    """

    def is_enough(most: int) -> bool:
        return replace(room, cap=np.minimum(room.cap, most)).enough

    return bisect_left(range(room.total), True, key=is_enough)


def greatest_lowest(room: CountLimits) -> int:
    """Return an upper bound of the lowest count, over brokers that may get any replica.

    The greatest floor on those brokers that the limits of racks and the total allow; 0 without
    such brokers.
    """
    able = room.cap[room.cap > 0]
    if not len(able):
        return 0
    highest = int(able.min())
    return highest - bisect_left(range(highest), True, key=lambda s: _has_floor(room, highest - s))


def _has_floor(room: CountLimits, least: int) -> bool:
    """Whether every broker that may get any can get this many."""
    floor = room.in_racks(np.minimum(room.cap, least))
    fits = bool((floor <= room.most).all())
    return fits and int(np.maximum(floor, room.least).sum()) <= room.total
