"""Annealing over whole configurations of small reduced cost, for few brokers.

With several replicas a good plan exchanges sets of brokers and leaders together, which steps of
single replicas reach only over worse placements. Which reduced costs are small enough differs
from cluster to cluster by a factor of ten, so all limits are tried once, and the best again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import cycle
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.arithmetic import exponential, logarithm
from solver.kernels.compiled import linked
from solver.kernels.configuration_search import anneal_choice
from solver.kernels.node_bound import Configurations, unbounded
from solver.kernels.problem_arrays import NO_BUDGET, Columns
from solver.problem.placement import Placement, is_allowed
from solver.search.dual import PRICED_BUDGETS, Relaxation
from solver.search.priced_configurations import (
    MOST_PRICED,
    WORK_PER_PRICED,
    PricedConfigurations,
    price_configurations,
    priced_count,
)
from solver.search.search import Search

LIMITS: Final = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5)
"""Highest reduced costs of configurations, in costs of a move."""

FEW_PAIRS: Final = 2_000
"""Rows x brokers up to which branch and bound follows, which anneals configurations itself."""

MOST_CONFIGURATIONS: Final = 50_000
"""Configurations annealed over; of more, those of least reduced cost."""

STEPS: Final = 2_000_000
"""Steps of one annealing, unless its share of the search budget is smaller."""

LEAST_STEPS: Final = 100_000
"""Steps of one annealing at least."""

ANNEALINGS: Final = 24
"""Annealings that the search budget should suffice for."""

WORK_PER_STEP: Final = 1.7e-7
"""Work units per step; measured."""

WORK_PER_OFFER: Final = 1e-3
"""Work units for checking one placement; measured."""

COLD_SHARE: Final = 0.5
"""Share of the work for annealings from each row's cheapest configuration."""

FIRST_HOT: Final = 0.1
"""Temperature of the first annealing with each limit, in costs of a move."""

HOT: Final = (0.1, 0.05)
"""Temperatures of further annealings from the cheapest configurations."""

WARM_HOT: Final = (0.03, 0.05)
"""Temperatures of annealings from the best plans."""

LAST_TEMPERATURE: Final = 0.003
"""Final temperature, in costs of a move."""

KEPT_PLANS: Final = 3
"""Plans that warm annealings start from in turn."""

FIRST_SURCHARGE: Final = 0.05
"""Share by which prices of budgets rise after a plan that exceeds one; then by twice as much."""

MOST_SURCHARGE: Final = 1e6
"""Share at which they rise no more: doubled a thousand times, it would be infinite."""

MOST_REFUSED: Final = 6
"""Annealings in a row whose plans break a rule, such as a capacity, after which it ends."""


@dataclass(slots=True, kw_only=True)
class _Annealer:
    """The configurations of one problem, and the best choices so far."""

    search: Search
    base: Placement
    """Where rows are that have no configurations here."""
    listed: PricedConfigurations
    price: float
    """Cost of a move, with what it pays for budgets."""
    heat: float
    """Cost of a move without that, which temperatures refer to."""
    steps: int
    rng: np.random.Generator
    kept: list[tuple[float, Ints]] = field(default_factory=list)
    """The best choices, (R,) configurations, with their F; best first."""
    refused: int = 0
    """Choices in a row that broke a rule."""
    surcharge: float = 0.0
    """Share by which prices of budgets are higher than at first."""

    def run(self, limit: float, hot: float, start: Ints) -> float:
        """Anneal once from a choice and offer the result; return its value."""
        search, listed = self.search, self.listed
        may = np.flatnonzero(listed.reduced <= limit * self.price)
        count = np.diff(np.searchsorted(may, listed.start))
        rows = np.flatnonzero(count > 1)
        if not len(rows):
            return float("inf")
        chosen = start.copy()
        # The start may be outside the limit: it is in the part, but not drawn.
        kept = np.concatenate([may[(count > 1)[self._row_of(may)]], chosen[rows]])
        part, fixed, rest = self._part(kept, rows, chosen)
        cooling = exponential(-logarithm(hot / LAST_TEMPERATURE) / self.steps)
        random = self.rng.integers(1, 2**63, 1, dtype=np.uint64)
        offsets = np.zeros(len(rows) + 1, np.int64)
        offsets[1:] = np.cumsum(count[rows])
        inner = len(kept) - len(rows) + np.arange(len(rows))
        among = np.arange(len(kept) - len(rows))
        heat, anywhere = hot * self.heat, unbounded(len(fixed))
        value = anneal_choice(
            part, fixed, offsets, among, inner, self.steps, heat, cooling, random, anywhere
        )
        chosen[rows] = kept[inner]
        search.work += self.steps * WORK_PER_STEP + WORK_PER_OFFER
        self._offer(chosen, float(value) + rest)
        return float(value) + rest

    def _row_of(self, at: Ints) -> Ints:
        """(m,) positions of the rows that configurations belong to."""
        found: Ints = np.searchsorted(self.listed.start, at, side="right") - 1
        return found

    def _part(self, kept: Ints, rows: Ints, chosen: Ints) -> tuple[Configurations, Floats, float]:
        """The configurations kept; deviations and cost of what rows without a choice take."""
        c, others = self.listed.loads, np.ones(len(chosen), np.bool_)
        others[rows] = False
        rest = chosen[others]
        price = c.price + self.surcharge * self.listed.full_surcharge
        at, load = c.at[rest].ravel(), c.load[rest].ravel()
        fixed = self.listed.fixed + np.bincount(at, load, len(self.listed.fixed))
        part = Configurations(
            start=np.zeros(1, np.int64),
            at=c.at[kept],
            load=c.load[kept],
            used=c.used[kept],
            price=price[kept],
        )
        return linked(part), fixed, sum(price[rest].tolist())

    def _offer(self, chosen: Ints, value: float) -> None:
        problem = self.search.problem
        replicas, leader = self.base.replicas.copy(), self.base.leader.copy()
        at = self.listed.brokers[chosen]
        replicas[self.listed.rows, : at.shape[1]] = at
        leader[self.listed.rows] = at[:, 0]
        placement = Placement(replicas=replicas, leader=leader)
        if not is_allowed(problem, placement):
            self.refused += 1
            self.surcharge = min(MOST_SURCHARGE, 2.0 * self.surcharge + FIRST_SURCHARGE)
            return
        self.refused = 0
        self.search.offer(placement)
        # Plans within the budgets need not pay for them.
        more = self.listed.charged[chosen] + self.surcharge * self.listed.full_surcharge[chosen]
        value -= sum(more.tolist())
        if all((chosen != known).any() for _, known in self.kept):
            self.kept = sorted([*self.kept, (value, chosen)], key=lambda k: k[0])[:KEPT_PLANS]


def anneal_configurations(
    search: Search, c: Columns, r: Relaxation, end: float, base: Placement | None = None
) -> bool:
    """Anneal over configurations until the search has spent `end` work units.

    The relaxation must be solved. Rows that it leaves out stay as in `base`, where `c.home` must
    have them; as in the snapshot without it. Returns False, with nothing tried, where rows have
    one replica or too many configurations, and with budgets that have no price or topics balanced
    one by one, which the value of a choice leaves out.
    """
    problem = search.problem
    few = len(r.rows) * len(c.scale) <= FEW_PAIRS
    unpriced = c.budgets[len(PRICED_BUDGETS) :] != NO_BUDGET
    coupled = bool(unpriced.any()) or bool(problem.topic_share)
    if few or coupled or c.home.shape[1] == 1 or priced_count(problem) > MOST_PRICED:
        return False
    search.work += priced_count(problem) * WORK_PER_PRICED
    listed = price_configurations(problem, c, r, LIMITS[-1] * r.price)
    if listed is None or search.near_enough or search.over(end):
        return False
    left = end - search.work
    steps = int(left / ANNEALINGS / WORK_PER_STEP)
    annealer = _Annealer(
        search=search,
        base=Placement.home(problem) if base is None else base,
        listed=listed,
        price=r.price,
        heat=r.unpriced,
        steps=max(LEAST_STEPS, min(STEPS, steps)),
        rng=np.random.default_rng(search.limits.seed),
    )
    most = listed.least_reduced(MOST_CONFIGURATIONS) / r.price
    limits = [limit for limit in LIMITS if limit <= most] or [most]
    best = _from_cheapest(annealer, limits, search.work + COLD_SHARE * left)
    for index, (limit, hot) in enumerate(_warm(best, limits)):
        if _over(annealer, end) or not annealer.kept:
            break
        annealer.run(limit, hot, annealer.kept[index % len(annealer.kept)][1])
    return True


def _from_cheapest(annealer: _Annealer, limits: list[float], end: float) -> list[float]:
    """Anneal from the cheapest configurations; return the limits, the best first."""
    found: dict[float, float] = {}
    start = annealer.listed.cheapest
    for limit in limits:
        if _over(annealer, end):
            break
        found[limit] = annealer.run(limit, FIRST_HOT, start)
    best = sorted(found, key=lambda limit: found[limit]) or limits
    for turn, hot in enumerate(cycle(HOT)):
        if _over(annealer, end):
            return best
        limit = best[turn // len(HOT) % min(2, len(best))]
        found[limit] = min(found[limit], annealer.run(limit, hot, start))
    return best


def _warm(best: list[float], limits: list[float]) -> Iterator[tuple[float, float]]:
    """Limits and temperatures of annealings from the best plans, without end."""
    tried = dict.fromkeys([best[0], 2.0 * best[0], 0.3, 0.1])
    among = [limit for limit in tried if limit <= limits[-1]] or limits
    return cycle((limit, hot) for limit in among for hot in WARM_HOT)


def _over(annealer: _Annealer, end: float) -> bool:
    search = annealer.search
    return annealer.refused >= MOST_REFUSED or search.near_enough or search.over(end)
