"""Where large partitions with several replicas belong, on few brokers.

The relaxation splits large rows, so its prices say little about where these belong, and where the
others do depends on that. Once the large rows are placed, the relaxation of the others is nearly
exact: it values a choice of places, and its prices show where the other rows belong. So the search
climbs over the places of one or two large rows at a time. Prices found for one choice prove a bound
for any other, which rules out most of them unsolved (weak duality).
"""

from dataclasses import dataclass
from itertools import chain, combinations, zip_longest
from math import comb
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import changed
from solver.kernels.move_deltas import new_state
from solver.kernels.pricing import change_cost
from solver.kernels.problem_arrays import NO_BUDGET, Columns, leader_first
from solver.problem.placement import Placement
from solver.search.configuration_annealing import FEW_PAIRS, anneal_configurations
from solver.search.dual import Relaxation, resolve, solve_relaxation, warm_up
from solver.search.priced_configurations import MOST_PRICED, legal_configurations, priced_count
from solver.search.search import Search

LARGE: Final = 0.1
"""Load, as a share of a broker's mean, from which on a row is placed first."""

MOST_LARGE: Final = 12
"""Rows placed first at most, the largest."""

MOST_OTHERS: Final = 1_000
"""Other places of one row, and of two, looked at before the search for better ones ends."""

CLIMBING_SHARE: Final = 0.7
"""Share of the work for places of large rows; the others are annealed with the rest."""

MOST_NEAR: Final = 300
"""Other places of one row that are paired with another row's at most, the most promising."""

PAIRS_PER_WORK: Final = 2e7
"""Pairs of places that take a work unit to look at, about a CPU second."""

MOST_LISTED: Final = 50_000
"""Configurations of the large rows at most, so that memory stays small."""

LISTED_PER_WORK: Final = 6e4
"""Configurations that are listed at most per unit of work that is left."""

BEND: Final = 0.2
"""Share of the square of a shift of load that other rows are guessed not to make up for."""

FIRST_WORK: Final = 2.0
"""Work units for the first relaxation at most."""

NEXT_WORK: Final = 0.5
"""Work units for each further one at most."""

LEAST_GAIN: Final = 0.05
"""Gain from which on other places are taken, in costs of a move."""

_Other = tuple[float, float, tuple[tuple[int, int], ...]]
"""Guess and least change of the value, and for each row the index of its configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """Places of the large rows, with the relaxation of the others."""

    at: dict[int, Ints]
    """Row -> (M,) brokers, leader first."""
    value: float
    """Bound of F over all plans with these places, before the refund is subtracted."""
    prices: Floats
    """(B, K) prices that prove it."""


def places_large(search: Search, c: Columns) -> bool:
    """Return whether the places of large rows are searched for first.

    Rows must have equally many replicas, two at least, and few configurations. Not with budgets
    or topics balanced one by one, which the values of configurations leave out.
    """
    problem = search.problem
    several = c.home.shape[1] > 1 and bool((c.rf == c.rf[0]).all())
    coupled = bool((c.budgets != NO_BUDGET).any()) or bool(problem.topic_share)
    few = int(c.free.sum()) * len(c.scale) <= FEW_PAIRS
    return several and not coupled and not few and priced_count(problem) <= MOST_PRICED


def place_large(search: Search, c: Columns, end: float) -> None:
    """Improve the incumbent until the search has spent `end` work units.

    `places_large` must hold, and the search must have an incumbent. Without large rows, or with
    too little work to list their configurations, nothing happens.
    """
    rows = _large_rows(c, end - search.work)
    if not rows:
        return
    climb = _Climb(search, c, rows)
    work = search.work + CLIMBING_SHARE * (end - search.work)
    found = climb.climb(work)
    climb.restrict(found.at)
    climb.relaxation.prices = found.prices
    base = climb.placement(found.at)
    anneal_configurations(search, climb.relaxation.columns, climb.relaxation, end, base)


class _Climb:
    """The large rows with their configurations, and one relaxation that is changed in place."""

    def __init__(self, search: Search, c: Columns, rows: list[int]) -> None:
        self.search, self.columns, self.rows = search, c, rows
        self._legal = {row: legal_configurations(search.problem, c, row) for row in self.rows}
        self._price = {
            row: np.array([float(change_cost(c, row, at)) for at in self._legal[row]])
            for row in self.rows
        }
        start = self._incumbent()
        decided = _decided(c, start)
        self.relaxation = Relaxation(
            decided, new_state(decided, decided.home).v, search.limits.seed, search.stops
        )

    def climb(self, end: float) -> _Choice:
        """Take better places until none is found, or the search has spent `end` work units."""
        r, search = self.relaxation, self.search
        best = self._first()
        small = LEAST_GAIN * r.price
        tried = {_key(best.at)}
        while not search.over(end):
            before = best.value
            for bound, at in self._others(best):
                if search.over(end):
                    break
                if bound >= best.value - small or _key(at) in tried:
                    continue
                tried.add(_key(at))
                other = self._solve(at, best)
                if other.value < best.value - small:
                    best = other
                    break
            if best.value >= before:
                break
        return best

    def restrict(self, at: dict[int, Ints]) -> None:
        """Decide the large rows in the relaxation."""
        r = self.relaxation
        r.columns = _decided(self.columns, at)

    def placement(self, at: dict[int, Ints]) -> Placement:
        """The large rows at their places, all others at home."""
        problem = self.search.problem
        replicas, leader = problem.replicas.copy(), problem.leader.copy()
        for row, brokers in at.items():
            replicas[row], leader[row] = brokers, brokers[0]
        return Placement(replicas=replicas, leader=leader)

    def _incumbent(self) -> dict[int, Ints]:
        best = self.search.best
        assert best is not None  # noqa: S101  # asked for at the entrance
        at = leader_first(self.columns, best.replicas, best.leader)
        return {row: at[row] for row in self.rows}

    def _first(self) -> _Choice:
        r, at = self.relaxation, self._incumbent()
        before = r.work
        warm_up(r, FIRST_WORK / 2)
        solve_relaxation(r, FIRST_WORK / 2)
        self.search.work += r.work - before
        return _Choice(at=at, value=r.bound + self._cost(at), prices=r.prices)

    def _solve(self, at: dict[int, Ints], near: _Choice) -> _Choice:
        """Value other places, from the prices of `near`; in part where these prove no better."""
        r, cost = self.relaxation, self._cost(at)
        self.restrict(at)
        before = r.work
        resolve(r, near.prices, NEXT_WORK, near.value - cost)
        self.search.work += r.work - before
        return _Choice(at=at, value=r.bound + cost, prices=r.prices)

    def _cost(self, at: dict[int, Ints]) -> float:
        """Cost of the changes of the large rows."""
        return sum(float(change_cost(self.columns, row, held)) for row, held in at.items())

    def _others(self, best: _Choice) -> list[tuple[float, dict[int, Ints]]]:
        """Other places of one row and of two by turns, the most promising first, with bounds."""
        more = {row: self._more(best, row) for row in self.rows}
        shift = {row: self._shift(best, row) for row in self.rows}
        guess = {row: more[row] + BEND * (shift[row] ** 2).sum(axis=1) for row in self.rows}
        single: list[_Other] = []
        double: list[_Other] = []
        for row in self.rows:
            some = np.flatnonzero(more[row] < 0.0).tolist()
            single += [(float(guess[row][i]), float(more[row][i]), ((row, i),)) for i in some]
        near = {
            row: np.sort(np.argsort(guess[row], kind="stable")[:MOST_NEAR]) for row in self.rows
        }
        for row, other in combinations(self.rows, 2):
            one, two = near[row], near[other]
            both = more[row][one][:, None] + more[other][two]
            rough = guess[row][one][:, None] + guess[other][two]
            rough += 2.0 * BEND * (shift[row][one] @ shift[other][two].T)
            self.search.work += both.size / PAIRS_PER_WORK
            for i, j in _most_promising(both, rough).tolist():
                places = (row, int(one[i])), (other, int(two[j]))
                double.append((float(rough[i, j]), float(both[i, j]), places))
        turns = zip_longest(sorted(single)[:MOST_OTHERS], sorted(double)[:MOST_OTHERS])
        return [
            (best.value + one[1], {**best.at, **{row: self._legal[row][i] for row, i in one[2]}})
            for one in chain.from_iterable(turns)
            if one is not None
        ]

    def _shift(self, best: _Choice, row: int) -> Floats:
        """(N, B x K) change of the deviations by each configuration of a row, as in F."""
        c, at = self.columns, np.vstack([self._legal[row], best.at[row]])
        load = np.zeros((len(at), *c.scale.shape))
        for k in range(at.shape[1]):
            each = c.lead[row] if k == 0 else c.follow[row]
            load[np.arange(len(at)), at[:, k]] += each * c.scale[at[:, k]]
        load *= np.sqrt(c.weight)
        found: Floats = (load[:-1] - load[-1]).reshape(len(at) - 1, -1)
        return found

    def _more(self, best: _Choice, row: int) -> Floats:
        """(N,) least change of the value by each configuration of a row."""
        c, at = self.columns, self._legal[row]
        q = best.prices * c.scale
        follow, lead = q @ c.follow[row], q @ c.lead[row]

        def cost(held: Ints) -> Floats:
            priced: Floats = lead[held[:, 0]] + follow[held[:, 1:]].sum(axis=1)
            return priced

        now = best.at[row][None]
        stay = float(cost(now)[0]) + float(change_cost(c, row, now[0]))
        found: Floats = cost(at) + self._price[row] - stay
        return found


def _large_rows(c: Columns, work: float) -> list[int]:
    """Return the large rows, the largest first, as many as `work` units allow to list."""
    size = c.lead.max(axis=1, initial=0.0)
    order = np.argsort(-size, kind="stable")
    rows = [row for row in order.tolist() if c.free[row] and size[row] > LARGE]
    most = int(min(MOST_LISTED, work * LISTED_PER_WORK) / _listed(c))
    return rows[: max(min(most, MOST_LARGE), 0)]


def _listed(c: Columns) -> int:
    """Return how many configurations one row has, if every broker is allowed."""
    brokers, rf = len(c.scale), int(c.home.shape[1])
    return comb(brokers, rf) * rf


def _most_promising(both: Floats, rough: Floats) -> Ints:
    """Return (N, 2) pairs whose bound is better, of more than `MOST_OTHERS` the best guesses."""
    better = np.argwhere(both < 0.0)
    if len(better) <= MOST_OTHERS:
        return better
    guess = rough[better[:, 0], better[:, 1]]
    found: Ints = better[guess <= np.partition(guess, MOST_OTHERS - 1)[MOST_OTHERS - 1]]
    return found


def _decided(c: Columns, at: dict[int, Ints]) -> Columns:
    """Return columns in which rows are whole on given brokers, (M,) leader first, and not free."""
    home, free, forced, displaced = (x.copy() for x in (c.home, c.free, c.forced, c.displaced))
    for row, brokers in at.items():
        home[row], free[row], forced[row], displaced[row] = brokers, False, False, False
    return changed(c, home=home, free=free, forced=forced, displaced=displaced)


def _key(at: dict[int, Ints]) -> bytes:
    return b"".join(held.tobytes() for held in at.values())
