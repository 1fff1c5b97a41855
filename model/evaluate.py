"""The independent evaluator: F and every rule, recomputed from snapshot and moves.

It shares no code with the solver. F is the yardstick: under `variance` the sum of
squared relative deviations from the level over the brokers that may hold load, plus
the price of the moves; under `band` the price of the moves, plus what lies outside the
band.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from model.dimensions import TOPIC_MEASURES, Weighted, weighted_dimensions
from model.directories import directory_cost
from model.goals.goals import Goals, ObjectiveKind
from model.goals.move_costs import (
    change_price,
    move_price,
    replica_prices,
)
from model.ids import BrokerId
from model.plan.plan import Move
from model.plan.proposal import HOLDING, Proposal
from model.plan.remaining import OverLimit, RackViolation
from model.plan.violations import over_limits, rack_violations
from model.rules import RULES, Violation
from model.snapshot.snapshot import Floats, Measure, Resource, Snapshot
from model.snapshot.topic_spread import topic_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a placement is worth. Dimensions go by their keys."""

    objective: float
    """F: deviation + prices, or prices + the price of the excess under `band`."""
    deviation: float
    """Weighted sum of squared relative deviations from the level."""
    excess: float
    """Weighted sum of what deviations lie outside their band, in levels."""
    prices: float
    """Price of all moves, in units of F."""
    move_price: float
    """lambda, the price of one ordinary move."""
    levels: dict[str, float]
    """Mean load per broker of each dimension that counts."""
    costs: dict[str, float]
    """Each dimension's part of `deviation`."""
    loads: dict[BrokerId, dict[str, float]]
    """Load per broker after the moves."""
    violations: tuple[Violation, ...]
    deviations: dict[str, dict[BrokerId, float]]
    """Utilisation / level - 1 of each holding broker, per dimension that counts;
    without those that are levelled topic by topic."""
    over_limit: tuple[OverLimit, ...]
    """Brokers over a limit before or after the moves."""
    rack_violations: tuple[RackViolation, ...]
    """Partitions that break the rack rule before the moves. One that remains has a
    reason only where it may not move at all."""

    def within_band(self, goals: Goals) -> bool:
        """Whether every broker lies within every counted dimension's tolerance."""
        return all(
            abs(deviation) <= (goals.tolerance_of(key.partition("@")[0]) or 1.0)
            for key, by_broker in self.deviations.items()
            for deviation in by_broker.values()
        )


def evaluate(snapshot: Snapshot, goals: Goals, moves: Iterable[Move]) -> Evaluation:
    """Judge the placement that the moves lead to.

    Raises
    ------
    InvalidCluster
        A move names a partition that the snapshot does not have, or one twice.
    """
    return evaluate_proposal(Proposal.of_moves(snapshot, goals, moves))


def prices_of(snapshot: Snapshot, goals: Goals, moves: Iterable[Move]) -> float:
    """What the moves cost of F; `Evaluation.prices`, without the rest of it."""
    proposal = Proposal.of_moves(snapshot, goals, moves)
    return planned_price(proposal, counted_dimensions(proposal)) * _paid(proposal)


def evaluate_proposal(proposal: Proposal) -> Evaluation:
    """Judge a proposed placement."""
    counted = counted_dimensions(proposal)
    costs, deviations, excess = {}, {}, 0.0
    for goal in counted:
        if goal.dimension.measure in TOPIC_MEASURES:
            costs[goal.key] = topic_cost(proposal, goal)
            continue
        where = relative_deviations(proposal, goal)
        costs[goal.key] = goal.weight * float((where * where).sum())
        over = np.maximum(0.0, np.abs(where) - goal.tolerance)
        excess += goal.weight * float(over.sum())
        deviations[goal.key] = dict(zip(proposal.holding, where.tolist(), strict=True))
    deviation = sum(costs.values())
    price = planned_price(proposal, counted)
    prices = price * _paid(proposal)
    wanted = deviation
    if proposal.goals.objective is ObjectiveKind.BAND:
        wanted = proposal.goals.excess_price * price * excess
    return Evaluation(
        objective=wanted + prices + directory_cost(proposal, price),
        deviation=deviation,
        excess=excess,
        prices=prices,
        move_price=price,
        levels={g.key: mean_load(proposal, g) for g in counted},
        costs=costs,
        loads=proposal.loads_after,
        deviations=deviations,
        violations=tuple(v for rule in RULES for v in rule.violations(proposal)),
        over_limit=over_limits(proposal),
        rack_violations=rack_violations(proposal),
    )


def counted_dimensions(proposal: Proposal) -> tuple[Weighted, ...]:
    """Dimensions of the goals that are measured and whose mean reaches the floor."""
    if not proposal.holding:
        return ()
    header = proposal.snapshot.header
    return tuple(
        weighted
        for goal in proposal.goals.balance
        for weighted in weighted_dimensions(header, goal)
        if (mean := mean_load(proposal, weighted)) >= weighted.floor and mean > 0
    )


def mean_load(proposal: Proposal, goal: Weighted) -> float:
    """Whole load, also what must leave, over the number of holding brokers."""
    return _total(proposal, goal) / len(proposal.holding)


def _total(proposal: Proposal, goal: Weighted) -> float:
    if goal.dimension.measure in TOPIC_MEASURES:
        return float(proposal.sums(proposal.before, goal.dimension).sum())
    return float(proposal.table_before[:, proposal.column(goal.dimension)].sum())


def relative_deviations(proposal: Proposal, goal: Weighted) -> Floats:
    """(holding,) utilisation / level - 1 of each holding broker after the changes.

    The level is the whole load, also what must leave draining brokers, over the
    capacity of the holding ones.
    """
    capacity = capacity_column(proposal, goal.dimension.measure)
    level = _total(proposal, goal) / capacity.sum()
    column = proposal.column(goal.dimension)
    load: Floats = proposal.table_after[proposal.is_holding, column]
    deviations: Floats = load / capacity / level - 1
    return deviations


def capacity_column(proposal: Proposal, measure: Measure) -> Floats:
    """(holding,) capacity of each holding broker; 1 each where any is unknown."""
    held = capacities(proposal, measure)
    return np.array([held[b] for b in proposal.holding], np.float64)


def capacities(proposal: Proposal, measure: Measure) -> dict[BrokerId, float]:
    """Capacity of each holding broker; 1 each for counts and where any is unknown."""
    brokers = [b for b in proposal.snapshot.header.brokers if b.state in HOLDING]
    if not isinstance(measure, Resource):
        return {b.id: 1.0 for b in brokers}
    if any(measure not in b.capacity for b in brokers):
        return {b.id: 1.0 for b in brokers}
    return {b.id: b.capacity[measure] for b in brokers}


def planned_price(proposal: Proposal, counted: tuple[Weighted, ...]) -> float:
    """lambda of a proposal, by the goals that count."""
    return move_price(proposal, min((g.tolerance for g in counted), default=0.1))


def _paid(proposal: Proposal) -> float:
    """All moves, in units of lambda."""
    if not proposal.changes:
        return 0.0
    of_replica = replica_prices(proposal.snapshot, proposal.goals)
    return sum(
        change_price(proposal, c, float(of_replica[c.row])) for c in proposal.changes
    )
