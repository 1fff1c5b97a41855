"""A lower bound on F from prices of deviation, by weak duality.

It shares no code with the solver: anyone can recompute the bound that a plan claims
from the prices in its file. Any prices give a valid bound; good ones a tight one. With
pi for the price of a deviation of 1 (100 %) of broker b in dimension d,

    variance: D = sum_p h_p - sum_bd (pi + pi^2 / (4 w_d))
    band:     D = sum_p h_p - sum_bd (pi + tolerance_d |pi|), |pi| <= what w_d costs

where h_p is the least cost of partition p, with its loads priced and its moves paid
for (`model.bound.row_costs`). Capacities, replica limits and other budgets are relaxed, which
only lowers D. Topic measures add the least they can cost.

Budgets of new replicas, bytes and leader changes may have prices y >= 0, too: each row pays them
besides, and D loses y times the budget, since no plan within it uses more.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context
from functools import cached_property
from typing import Final

import numpy as np

from model.bound.row_costs import PricedBudgets, PricedLoad, RowCosts
from model.bound.row_rules import row_rules
from model.dimensions import TOPIC_MEASURES, Weighted, replica_loads
from model.evaluate import capacity_column, counted_dimensions, planned_price
from model.files import DIGITS
from model.goals.goals import Goals, ObjectiveKind
from model.ids import BrokerId, PartitionId
from model.plan.proposal import Proposal
from model.snapshot.snapshot import Floats, Snapshot
from model.snapshot.topic_spread import least_topic_cost

Prices = Mapping[BrokerId, Mapping[str, float]]
"""pi by broker and dimension key; 0 where none stands."""

_SLACK: Final = 1e-12
"""Share of the sums' magnitude that rounding is granted; 4,000 times float's own."""

_MOST_PRICE: Final = 1e100
"""Squares of larger prices overflow a double; no bound needs them."""

_DOWN: Final = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def price_bound(
    snapshot: Snapshot,
    goals: Goals,
    prices: Prices,
    repaired: Iterable[PartitionId] = (),
    budget_prices: Mapping[str, float] | None = None,
) -> float:
    """Lower bound on the F of every allowed plan, rounded down; at least 0.

    Lagrangian relaxation (weak duality): any prices give a valid bound.

    repaired: partitions whose racks the plan repairs. The bound is that of the plans
    that repair them too.

    budget_prices: of budgets, by their names. Those that are not finite and above 0, or whose
    budget has no limit or is none of new replicas, bytes and leader changes, count as 0.

    Prices of unknown dimensions, of brokers that must end empty, and infinite and NaN
    prices count as 0; under `band` they are cut to their range.
    """
    proposal = Proposal(snapshot, goals, ())
    counted = counted_dimensions(proposal)
    least = 0.0
    if goals.objective is ObjectiveKind.VARIANCE:
        least = _least_of_topics(proposal, counted) * (1 - _SLACK)
    plain = tuple(g for g in counted if g.dimension.measure not in TOPIC_MEASURES)
    if len(snapshot):
        price = planned_price(proposal, counted)
        dual = Dual(
            proposal=proposal,
            dimensions=plain,
            price=price,
            prices=prices,
            repaired=frozenset(repaired),
            budget_prices=budget_prices or {},
        )
        least += max(0.0, dual.value)
    return float(_DOWN.create_decimal_from_float(least))


def _least_of_topics(proposal: Proposal, counted: tuple[Weighted, ...]) -> float:
    topics = [g for g in counted if g.dimension.measure in TOPIC_MEASURES]
    if not topics:
        return 0.0
    fixed = row_rules(proposal).fixed
    return sum(least_topic_cost(proposal, g, fixed) for g in topics)


@dataclass(frozen=True, kw_only=True)
class Dual:
    """The dual function D at given prices, for dimensions balanced broker by broker."""

    proposal: Proposal
    """Nothing changed."""
    dimensions: tuple[Weighted, ...]
    price: float
    """lambda."""
    prices: Prices
    repaired: frozenset[PartitionId] = frozenset()
    """As `RowCosts.repaired`."""
    budget_prices: Mapping[str, float] = field(default_factory=dict)
    """y by the name of the budget, in units of F."""

    @property
    def value(self) -> float:
        """D in units of F, less a margin for rounding; a valid lower bound on F."""
        terms, within = self.broker_terms, self.within_budgets
        whole = math.fsum([*self.rows.costs.tolist(), *terms.tolist(), -within])
        return whole - _SLACK * (self.rows.magnitude + float(np.abs(terms).sum()) + within)

    @cached_property
    def budgets(self) -> PricedBudgets:
        """The prices of budgets that count."""
        return PricedBudgets(**{name: self._budget_price(name) for name in PricedBudgets._fields})

    def _budget_price(self, name: str) -> float:
        price = self.budget_prices.get(name, 0.0)
        limited = getattr(self.proposal.goals.budgets, name) is not None
        return price if limited and 0.0 < price < _MOST_PRICE else 0.0

    @property
    def within_budgets(self) -> float:
        """What a plan within the budgets pays for them at most, in units of F."""
        budgets = self.proposal.goals.budgets
        priced = self.budgets._asdict().items()
        return math.fsum(y * getattr(budgets, name) for name, y in priced if y)

    @cached_property
    def rows(self) -> RowCosts:
        """Least cost h of every row at these prices, in units of F."""
        return RowCosts(self.proposal, self.loads, self.price, self.repaired, self.budgets)

    @cached_property
    def pi(self) -> Floats:
        """(dimensions, brokers) prices used, in units of F per unit of deviation.

        0 for brokers that hold no load and for prices that are NaN or over
        `_MOST_PRICE`; under `band` clipped to what the excess costs.
        """
        found = np.array(
            [
                [self.prices.get(b, {}).get(g.key, 0.0) for b in self.proposal.brokers]
                for g in self.dimensions
            ],
            np.float64,
        ).reshape(len(self.dimensions), len(self.proposal.brokers))
        found[~(np.abs(found) < _MOST_PRICE)] = 0.0
        found[:, ~self.proposal.is_holding] = 0.0
        weight = np.array([g.weight for g in self.dimensions], np.float64)[:, np.newaxis]
        if self.proposal.goals.objective is ObjectiveKind.BAND:
            most = self.proposal.goals.excess_price * self.price * weight
            return np.clip(found, -most, most)
        return np.where(weight > 0, found, 0.0)

    @cached_property
    def broker_terms(self) -> Floats:
        """(dimensions x brokers,) minimum of a deviation's cost less its price.

        In units of F: -(pi + pi^2 / (4 w)) under `variance`, -(pi + tolerance |pi|) under `band`.
        """
        if self.proposal.goals.objective is ObjectiveKind.BAND:
            tolerance = np.array([g.tolerance for g in self.dimensions])[:, np.newaxis]
            return np.asarray(-self.pi - tolerance * np.abs(self.pi)).ravel()
        weight = np.array([g.weight or 1.0 for g in self.dimensions])[:, np.newaxis]
        return np.asarray(-self.pi - self.pi**2 / (4 * weight)).ravel()

    @cached_property
    def loads(self) -> tuple[PricedLoad, ...]:
        """The priced loads of the dimensions in which any broker has a price."""
        priced = np.flatnonzero(self.pi.any(axis=1)).tolist()
        return tuple(self._load(d, self.dimensions[d]) for d in priced)

    def _load(self, d: int, goal: Weighted) -> PricedLoad:
        proposal = self.proposal
        capacity = capacity_column(proposal, goal.dimension.measure)
        column = proposal.column(goal.dimension)
        mean = float(proposal.table_before[:, column].sum() / capacity.sum())
        price = np.zeros(len(proposal.brokers))
        price[proposal.is_holding] = self.pi[d, proposal.is_holding] / capacity / mean
        lead, follow = replica_loads(proposal.snapshot, goal.dimension)
        return PricedLoad(follow=follow, more=lead - follow, price=price)
