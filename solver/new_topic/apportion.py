"""From counts per broker to replica lists: which brokers share a partition, and who leads."""

from collections import deque
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Ints
from solver.budget import Budget
from solver.new_topic.replica_counts import Slopes
from solver.problem.rack_rule import split_observers

GOLDEN: Final = 2654435769
"""2^32 over the golden ratio: multiples of it scatter well (Knuth, volume 3, 6.4)."""


def deal(count: Ints, rack: Ints, rows: int, seed: int = 0) -> Ints:
    """Deal counts to (rows, M) replica lists of distinct brokers, by position.

    `count` is (B,): replicas of each broker, at most `rows` each; their sum, above 0, is M x
    `rows`. `rack` is (B,) rack numbers. Each rack holds as many replicas of every row as of any
    other, give or take one, and rows are scattered differently for each rack, so that two brokers
    share few partitions. `seed` varies which brokers meet in a row.
    """
    dealt: list[list[int]] = [[] for _ in range(rows)]
    start = 0
    for q in np.unique(rack[count > 0]).tolist():
        mine = np.flatnonzero(rack == q)
        slots = np.repeat(mine, count[mine]).tolist()
        extra = len(slots) % rows
        partial = [(start + i) % rows for i in range(extra)]
        start = (start + extra) % rows
        _deal_rack(dealt, slots, partial, q + seed * (1 + int(rack.max())))
    return np.array(dealt, np.int64).reshape(rows, -1)


def _deal_rack(dealt: list[list[int]], slots: list[int], partial: list[int], seed: int) -> None:
    """Deal one rack's slots, equal brokers next to each other, to rows.

    `partial` are the rows that get one more than others; they are dealt to first.
    """
    at, turn = 0, 0
    while at < len(slots):
        rows = partial if partial and not at else list(range(len(dealt)))
        turn += 1
        # A broker continued from the last turn must not meet its rows again.
        rows = sorted(rows, key=lambda r: (slots[at] in dealt[r], _scatter(r, seed, turn)))
        for row in rows:
            dealt[row].append(slots[at])
            at += 1


def _scatter(row: int, seed: int, turn: int) -> int:
    mixed = (row + 1) * GOLDEN * (2 * seed + 1) + turn * 40503 * (row + 7)
    return (mixed ^ (mixed >> 15)) * GOLDEN % 2**32


WORK_OF_BROKER: Final = 1e-5
"""Work units of one search for a chain, per broker; measured."""

WORK_OF_LOOK: Final = 1e-6
"""Work units of one search for a chain, per row; measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leadership:
    """Which brokers may lead, how many rows, and at what cost."""

    able: Bools
    """(B,) may lead."""
    cap: Ints
    """(B,) rows that each may lead."""
    slopes: Slopes


def choose_leaders(replicas: Ints, rules: Leadership, budget: Budget) -> Ints | None:
    """Choose (n,) leaders of least cost for (n, M) replica lists, by position, without fillers.

    Leadership is passed along chains of rows (augmenting paths) as long as that lowers
    the cost; if no such chain is left, the choice is optimal, since the cost is convex.
    Returns the best so far where the budget ends first, and None where some row has no possible
    leader or that choice exceeds a cap.
    """
    able = [[b for b in row if rules.able[b]] for row in replicas.tolist()]
    if not all(able):
        return None
    state = _Leaders(able, rules)
    while not budget.over() and state.improve():
        budget.work += WORK_OF_BROKER * len(state.count) + WORK_OF_LOOK * state.looks
        state.looks = 0
    if (state.count > rules.cap).any():
        return None
    return np.array(state.leader, np.int64)


class _Leaders:
    """A choice of leaders that improves step by step."""

    def __init__(self, able: list[list[int]], rules: Leadership) -> None:
        self._able, self._rules = able, rules
        self.count = np.zeros(len(rules.cap), np.int64)
        self.leader: list[int] = []
        self.looks = 0
        """Number of rows in which chains were searched for."""
        self._led: list[set[int]] = [set() for _ in rules.cap]
        for row, choices in enumerate(able):
            first = min(choices, key=self._next)
            self.leader.append(first)
            self._led[first].add(row)
            self.count[first] += 1

    def _next(self, broker: int) -> tuple[float, float, float, int]:
        """Cost of one more row, excess over the cap first; then the tie-breakers."""
        slopes, count = self._rules.slopes, self.count[broker]
        over = float(max(0, count + 1 - self._rules.cap[broker]))
        cost = float(slopes.first[broker] + slopes.rise[broker] * count)
        return over, cost, float(slopes.tie[broker]), broker

    def _last(self, broker: int) -> tuple[float, float]:
        """Cost of a broker's last row."""
        slopes, count = self._rules.slopes, self.count[broker]
        over = float(max(0, count - self._rules.cap[broker]))
        return over, float(slopes.first[broker] + slopes.rise[broker] * (count - 1))

    def improve(self) -> bool:
        """Pass one leadership along a chain, starting at the most expensive broker.

        Returns whether there was such a chain.
        """
        leading = [b for b in range(len(self.count)) if self.count[b]]
        tried: set[int] = set()
        for source in sorted(leading, key=lambda b: (*self._last(b), b), reverse=True):
            # A more expensive broker's chains passed here and found nothing cheaper.
            if source in tried:
                continue
            came, target = self._reach(source)
            if target is not None:
                self._hand_on(came, source, target)
                return True
            tried |= came.keys()
        return False

    def _reach(self, source: int) -> tuple[dict[int, tuple[int, int]], int | None]:
        """Brokers that chains reach, and the first where a row costs less.

        Each broker comes with the broker and the row through which the chain reached it.
        """
        came = {source: (-1, -1)}
        queue, cost = deque([source]), self._last(source)
        while queue:
            broker = queue.popleft()
            self.looks += len(self._led[broker])
            for row in sorted(self._led[broker]):
                for other in self._able[row]:
                    if other in came:
                        continue
                    came[other] = broker, row
                    if _lower(self._next(other), cost):
                        return came, other
                    queue.append(other)
        return came, None

    def _hand_on(self, came: dict[int, tuple[int, int]], source: int, target: int) -> None:
        self.count[target] += 1
        self.count[source] -= 1
        while target != source:
            before, row = came[target]
            self._led[before].discard(row)
            self._led[target].add(row)
            self.leader[row] = target
            target = before


def _lower(new: tuple[float, float, float, int], old: tuple[float, float]) -> bool:
    """Whether a cost is lower by more than rounding."""
    if new[0] != old[0]:
        return new[0] < old[0]
    return new[1] < old[1] - 1e-12 * max(1.0, abs(old[1]))


def ordered(
    replicas: Ints, leader: Ints, rack: Ints, observers: Ints
) -> tuple[tuple[int, ...], ...]:
    """Order each row's list of broker positions: leader first, observers last.

    `replicas` is (n, M) without fillers, and `leader` (n,) one of each row; `rack` is (B,) rack
    numbers and `observers` (Q,) how many replicas in each of Q racks are observers. The order in
    between decides which replica leads after a failure; for each leader, the others take turns in
    second place.
    """
    second = np.zeros((len(rack), len(rack)), np.int64)
    lists = []
    for row, first in zip(replicas.tolist(), leader.tolist(), strict=True):
        rest = sorted((b for b in row if b != first), key=lambda b: (second[first, b], b))
        middle, last = split_observers(rest, rack, observers)
        if middle:
            second[first, middle[0]] += 1
        lists.append((first, *middle, *last))
    return tuple(lists)
