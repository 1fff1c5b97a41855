"""Exchanges of up to four rows at a time that lower the F of a choice of configurations.

Annealing leaves a residual that no change of one or two rows removes. Four rows have many more
combinations, and the best of them is found without trying all (`solver.kernels.row_exchanges`).
"""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.incumbent import Incumbent
from solver.kernels.row_exchanges import best_exchange, list_pairs, new_pair_tree

PAIRS: Final = (4_000, 30_000, 100_000)
"""Pairs of changes listed, those of least reduced cost; more where fewer gain nothing."""

MOST_CHANGES: Final = 4_000
"""Changes of one row that are paired, those of least reduced cost."""

HALVINGS: Final = 30
"""Halvings in the search for the highest reduced cost of the pairs listed."""

LEAST_GAIN: Final = 1e-12

WORK_PER_OPERATION: Final = 4e-9
"""Work units for one operation of the search among pairs; measured."""

WORK_PER_SHIFT: Final = 1e-7
"""Work units for sorting one deviation of a pair into boxes; measured."""

MOST_EFFORT: Final = 100_000_000
"""Operations of one search among pairs at most."""

NOTHING: Final = (-1, -2)
"""Rows of two changes that change nothing, so that pairs may be single changes."""


class RowExchanges:
    """N configurations of R rows as vectors, priced; see `Incumbent` for what is listed."""

    def __init__(self, incumbent: Incumbent, reduced: Floats) -> None:
        """`reduced` is (N,): reduced costs of the listed configurations at `prices`."""
        c = incumbent.listed.configurations
        self._incumbent = incumbent
        self._reduced = reduced
        self._row = np.repeat(np.arange(len(c.start) - 1), np.diff(c.start))
        self._load = np.zeros((len(c.price), len(incumbent.listed.fixed)))
        """(N, J) deviations that a configuration adds."""
        for z in range(c.at.shape[1]):
            loaded = np.flatnonzero(z < c.used)
            self._load[loaded, c.at[loaded, z]] += c.load[loaded, z]

    def descend(self, chosen: Ints, end: float) -> Ints:
        """Exchange rows of a choice, (R,) configurations, while F falls; return the choice.

        Ends when no exchange of the pairs listed lowers F, or when the search is over or
        has spent `end` work units. The most pairs are listed only for a choice that is at
        most as far above the incumbent as that is above the bound.
        """
        search, stage = self._incumbent.local.search, 0
        while stage < len(PAIRS) and not search.over(end):
            if PAIRS[stage] == PAIRS[-1] and self._is_far(chosen):
                break
            found = self._exchanged(chosen, PAIRS[stage])
            if found is None:
                stage += 1
            else:
                chosen, stage = found, max(0, stage - 1)
        return chosen

    def _is_far(self, chosen: Ints) -> bool:
        incumbent = self._incumbent
        search = incumbent.local.search
        over = self._value(chosen) - self._value(incumbent.chosen)
        return over > search.objective - search.bound

    def _value(self, chosen: Ints) -> float:
        """F of a choice over the bound that the prices prove where deviations are not bounded."""
        z = self._residual(chosen)
        return float(sum((z * z).tolist()) + sum(self._reduced[chosen].tolist()))

    def _residual(self, chosen: Ints) -> Floats:
        """(J,) deviations less half the prices."""
        z = self._incumbent.listed.fixed - self._incumbent.prices / 2.0
        for i in chosen.tolist():
            z = z + self._load[i]
        return z

    def _exchanged(self, chosen: Ints, most: int) -> Ints | None:
        """The choice after the best exchange; None where none lowers F."""
        z = self._residual(chosen)
        square = sum((z * z).tolist())
        to, row, rise = self._changes(chosen)
        now = square + sum(self._reduced[chosen].tolist())
        one, other = _cheapest_pairs(row, rise, now, most)
        if not len(one):
            return None
        shift = np.zeros((len(to), len(z)))
        real = row >= 0
        shift[real] = self._load[to[real]] - self._load[chosen[row[real]]]
        tree = new_pair_tree(one, other, rise, shift)
        search = self._incumbent.local.search
        search.work += tree.shift.size * WORK_PER_SHIFT
        left = min(MOST_EFFORT, int(search.work_left / WORK_PER_OPERATION))
        between = self._incumbent.listed.between - self._incumbent.prices / 2.0
        p, q, _, effort = best_exchange(tree, row, z, between, square - LEAST_GAIN, left)
        search.work += effort * WORK_PER_OPERATION
        if p < 0:
            return None
        made = np.array([tree.one[p], tree.other[p], tree.one[q], tree.other[q]])
        made = made[row[made] >= 0]
        found = chosen.copy()
        found[row[made]] = to[made]
        return found

    def _changes(self, chosen: Ints) -> tuple[Ints, Ints, Floats]:
        """New configuration, row and rise of the cheapest changes, in ascending order of rise."""
        to = np.flatnonzero(np.arange(len(self._row)) != chosen[self._row])
        row = self._row[to]
        rise = self._reduced[to] - self._reduced[chosen[row]]
        to = np.concatenate([np.full(len(NOTHING), -1), to])
        row = np.concatenate([np.array(NOTHING), row])
        rise = np.concatenate([np.zeros(len(NOTHING)), rise])
        order = np.argsort(rise, kind="stable")[:MOST_CHANGES]
        return to[order], row[order], rise[order]


def _cheapest_pairs(row: Ints, rise: Floats, limit: float, most: int) -> tuple[Ints, Ints]:
    """Up to `most` pairs of changes of least rise, none above `limit`."""
    one, other = np.empty(most, np.int64), np.empty(most, np.int64)
    found = list_pairs(row, rise, limit, one, other)
    if found > most:
        low, high = 2.0 * float(rise[0]), limit
        for _ in range(HALVINGS):
            middle = (low + high) / 2.0
            few = list_pairs(row, rise, middle, one, other) <= most
            low, high = (middle, high) if few else (low, middle)
        found = list_pairs(row, rise, low, one, other)
    found = min(found, most)
    return one[:found], other[:found]
