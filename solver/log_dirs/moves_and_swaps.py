"""Directories by largest replica first, then by moves and swaps within the broker."""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Floats, Ints
from solver.budget import Budget
from solver.log_dirs.broker_dirs import WORK_OF_CALL, WORK_OF_PLACE, BrokerDirs
from solver.problem.placement import NOTHING

SWAPPED: Final = 512
"""Replicas of each of two directories tried in swaps, the most promising first: where
there are more, moves of small ones balance as well."""

LEAST_GAIN: Final = 1e-7
"""Swaps that gain less are ignored: there is no end of them."""

STEPS_PER_REPLICA: Final = 4
"""Moves and swaps per replica after which a search ends: far more than are ever useful."""


def place_and_improve(dirs: BrokerDirs, budget: Budget) -> Ints:
    """Return a `where`: a directory for each of k replicas, -1 for arrivals that fit nowhere.

    Starts from `dirs.home`. Places arrivals, the largest first, and then improves by moves and
    swaps, in turn, for as long as that gives more arrivals a place. Charges `budget`; only
    improving ends where it is exhausted.
    """
    search = _Search(dirs, dirs.home, budget)
    search.place()
    search.improve()
    while search.place():
        search.improve()
    return search.where


def improve(dirs: BrokerDirs, where: Ints, budget: Budget) -> Ints:
    """Return a `where` that no single move or tried swap improves, from a given one, (k,).

    Swaps that gain less than `LEAST_GAIN` are ignored, and arrivals at -1 stay there. Ends earlier
    where the budget or the number of steps is exhausted. The given `where` is not changed.
    """
    search = _Search(dirs, where, budget)
    search.improve()
    return search.where


class _Search:
    """A `where` that improves step by step."""

    def __init__(self, dirs: BrokerDirs, where: Ints, budget: Budget) -> None:
        self.dirs, self.where, self._budget = dirs, where.copy(), budget
        self._slope = dirs.slope
        self._used = dirs.used(where)
        self._steps = STEPS_PER_REPLICA * len(where) + 100

    def place(self) -> bool:
        """Put replicas without a directory where they fit and cost least; return
        whether any did."""
        waiting = np.flatnonzero(self.where < 0)
        order = waiting[np.argsort(-self.dirs.size[waiting], kind="stable")]
        placed = [self._place(i) for i in order.tolist()]
        return any(placed)

    def _place(self, item: int) -> bool:
        size = float(self.dirs.size[item])
        room = self.dirs.open & (self._used + size <= self.dirs.limit)
        if not room.any():
            return False
        rise = self._cost(self._used + size) - self._cost(self._used)
        self._move(item, int(np.argmin(np.where(room, rise, np.inf))))
        return True

    def improve(self) -> None:
        """Move or swap as long as that pays."""
        while self._steps > 0 and not self._budget.over():
            if not (self._by_move() or self._by_swap()):
                return
            self._steps -= 1

    def _by_move(self) -> bool:
        """Make the best move out of the fullest directory that has a good one."""
        for j in self._fullest_first():
            items = np.flatnonzero(self.where == j)
            if not len(items):
                continue
            delta = self._move_deltas(j, items)
            best = int(np.argmin(delta))
            if delta.flat[best] < -NOTHING:
                at, k = divmod(best, delta.shape[1])
                self._move(int(items[at]), k)
                return True
        return False

    def _move_deltas(self, j: int, items: Ints) -> Floats:
        """(items, m) change of the objective by moves from j to each directory."""
        dirs, size, used = self.dirs, self.dirs.size[items], self._used
        self._charge(len(items) * len(used))
        taken = used + size[:, None]
        may = dirs.allowed(items) & (taken <= dirs.limit)
        may[:, j] = False
        left = dirs.cost((used[j] - size) * self._slope[j] - 1.0)
        now = self._cost(used)
        delta = self._cost(taken) - now + (left - now[j])[:, None]
        for k in range(len(used)):
            delta[:, k] += self._cost_increase(items, j, k)
        return np.where(may, delta, np.inf)

    def _by_swap(self) -> bool:
        """Make the best swap of the first two directories that have a good one."""
        order = self._fullest_first()
        for at, j in enumerate(order):
            for k in reversed(order[at + 1 :]):
                if self._swap(j, k):
                    return True
        return False

    def _swap(self, j: int, k: int) -> bool:
        a, b = self._tried(j, k)
        if not len(a) or not len(b):
            return False
        delta = self._swap_deltas(j, k, a, b)
        best = int(np.argmin(delta))
        if delta.flat[best] >= -LEAST_GAIN:
            return False
        first, second = divmod(best, len(b))
        self._move(int(a[first]), k)
        self._move(int(b[second]), j)
        return True

    def _swap_deltas(self, j: int, k: int, a: Ints, b: Ints) -> Floats:
        """(a, b) change of the objective by swaps of a in j with b in k."""
        dirs, used, slope = self.dirs, self._used, self._slope
        self._charge(len(a) * len(b))
        flow = dirs.size[a, None] - dirs.size[b]
        less, more = used[j] - flow, used[k] + flow
        may: Bools = (less <= dirs.limit[j]) & (more <= dirs.limit[k])
        cost = dirs.cost(less * slope[j] - 1.0) + dirs.cost(more * slope[k] - 1.0)
        delta = cost - self._cost(used)[[j, k]].sum()
        delta += self._cost_increase(a, j, k)[:, None] + self._cost_increase(b, k, j)
        return np.where(may, delta, np.inf)

    def _tried(self, j: int, k: int) -> tuple[Ints, Ints]:
        """Replicas in j and in k whose swap may pay, at most `SWAPPED` each.

        Costs are convex, so no swap saves more than the derivatives of the costs promise.
        """
        a, b = self._tradable(j, k), self._tradable(k, j)
        if not len(a) or not len(b):
            return a, b
        rate = self.dirs.cost_slope(self._used * self._slope - 1.0) * self._slope
        promised_a = self._cost_increase(a, j, k) - self.dirs.size[a] * (rate[j] - rate[k])
        promised_b = self._cost_increase(b, k, j) + self.dirs.size[b] * (rate[j] - rate[k])
        least_a, least_b = promised_a.min(), promised_b.min()
        return (
            _most_promising(a, promised_a, -LEAST_GAIN - least_b),
            _most_promising(b, promised_b, -LEAST_GAIN - least_a),
        )

    def _tradable(self, j: int, k: int) -> Ints:
        """Replicas in j that may move to k."""
        items = np.flatnonzero(self.where == j)
        tradable: Ints = items[self.dirs.open[k] | (self.dirs.home[items] == k)]
        return tradable

    def _cost_increase(self, items: Ints, j: int, k: int) -> Floats:
        """(items,) rise of the cost of changes when items move from j to k."""
        home, price = self.dirs.home[items], self.dirs.price[items]
        return np.where(home == j, price, np.where(home == k, -price, 0.0))

    def _cost(self, used: Floats) -> Floats:
        return self.dirs.cost(used * self._slope - 1.0)

    def _charge(self, places: int) -> None:
        self._budget.work += WORK_OF_CALL + WORK_OF_PLACE * places

    def _fullest_first(self) -> list[int]:
        """Directories by what one byte less saves there."""
        relative = self._used * self._slope - 1.0
        found: list[int] = np.argsort(-relative * self._slope, kind="stable").tolist()
        return found

    def _move(self, item: int, k: int) -> None:
        size, j = self.dirs.size[item], int(self.where[item])
        if j >= 0:
            self._used[j] -= size
        self._used[k] += size
        self.where[item] = k


def _most_promising(items: Ints, promised: Floats, below: float) -> Ints:
    """Items that promise less than a figure, the least first, at most `SWAPPED`."""
    order = np.argsort(promised, kind="stable")[:SWAPPED]
    found: Ints = items[order[promised[order] < below]]
    return found
