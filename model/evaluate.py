"""The independent evaluator: F and every rule, recomputed from snapshot and moves.

It shares no code with the solver. F is the yardstick: under `variance` the sum of squared
relative deviations from the average over the brokers that may hold load, plus the cost of the
moves; under `band` the cost of the moves, plus the excess over the tolerance bands.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from model.dimensions import TOPIC_MEASURES, Weighted, weighted_dimensions
from model.goals.goals import Goal, Goals, ObjectiveKind
from model.goals.move_costs import change_price, move_price, replica_prices
from model.ids import BrokerId
from model.plan.plan import Move
from model.plan.proposal import HOLDING, Proposal
from model.plan.remaining import OverLimit, RackViolation
from model.plan.replication_change import ReplicationChange
from model.plan.tolerance import EDGE, OutsideTolerance
from model.plan.violations import over_limits, rack_violations
from model.rules import Violation, violations_of
from model.rules.log_dirs import bytes_before, growth
from model.snapshot.snapshot import TAKING, Broker, Floats, Measure, Resource, Snapshot
from model.snapshot.topic_spread import topic_cost


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Scores, loads and rule violations of a placement; dimensions by their keys."""

    objective: float
    """F: deviation + prices, or prices + the cost of the excess under `band`."""
    deviation: float
    """Weighted sum of squared relative deviations from the average."""
    excess: float
    """Weighted sum of the deviations beyond their bands, as shares of the average."""
    prices: float
    """Price of all moves, in units of F."""
    move_price: float
    """lambda, the price of one move equivalent."""
    levels: dict[str, float]
    """Mean load per broker of each dimension that counts."""
    costs: dict[str, float]
    """Each dimension's part of `deviation`."""
    loads: dict[BrokerId, dict[str, float]]
    """Load per broker after the moves."""
    violations: tuple[Violation, ...]
    deviations: dict[str, dict[BrokerId, float]]
    """Utilisation / average - 1 of each holding broker, per dimension that counts;
    without those that are balanced topic by topic."""
    over_limit: tuple[OverLimit, ...]
    """Brokers over a limit before or after the moves."""
    rack_violations: tuple[RackViolation, ...]
    """Partitions that break the rack rule before the moves. One that remains has a
    reason only where it may not move at all."""

    def outside(self, goals: Goals) -> Iterator[OutsideTolerance]:
        """Holding brokers outside the tolerance of a counted dimension, dimension by dimension.

        Dimensions balanced topic by topic are left out.

        goals: those of the evaluation; a measure without a goal has a tolerance of 1.
        """
        for key, by_broker in self.deviations.items():
            tolerance = goals.tolerance_of(key.partition("@")[0]) or 1.0
            for broker, deviation in by_broker.items():
                if abs(deviation) > tolerance + EDGE:
                    yield OutsideTolerance(
                        broker=broker, dimension=key, deviation=deviation, tolerance=tolerance
                    )

    def within_band(self, goals: Goals) -> bool:
        """Whether `outside` finds no broker; True where no dimension counts."""
        return next(self.outside(goals), None) is None

    def below_band(self, goals: Goals) -> frozenset[BrokerId]:
        """Brokers below their tolerance in some dimension; dimensions as in `outside`."""
        return frozenset(found.broker for found in self.outside(goals) if found.deviation < 0)


def evaluate(
    snapshot: Snapshot,
    goals: Goals,
    moves: Iterable[Move],
    replication: tuple[ReplicationChange, ...] = (),
) -> Evaluation:
    """Evaluate the placement after some moves: F, its parts, and every hard rule.

    replication: the topics whose replication factor the plan changes.

    Raises InvalidCluster: a move names a partition that the snapshot does not have, or one twice.
    """
    return evaluate_proposal(Proposal.of_moves(snapshot, goals, moves, replication))


def prices_of(snapshot: Snapshot, goals: Goals, moves: Iterable[Move]) -> float:
    """Cost of the moves in units of F, as `Evaluation.prices`.

    Raises InvalidCluster as `evaluate` does.
    """
    proposal = Proposal.of_moves(snapshot, goals, moves)
    return planned_price(proposal, counted_dimensions(proposal)) * _paid(proposal)


def evaluate_proposal(proposal: Proposal) -> Evaluation:
    """Evaluate a proposed placement: F, its parts, and every hard rule.

    Broken rules are `violations` of the result, not errors.
    """
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
    imbalance = deviation
    if proposal.goals.objective is ObjectiveKind.BAND:
        imbalance = proposal.goals.excess_price * price * excess
    return Evaluation(
        objective=imbalance + prices + directory_cost(proposal, price),
        deviation=deviation,
        excess=excess,
        prices=prices,
        move_price=price,
        levels={g.key: mean_load(proposal, g) for g in counted},
        costs=costs,
        loads=proposal.loads_after,
        deviations=deviations,
        violations=tuple(violations_of(proposal)),
        over_limit=over_limits(proposal),
        rack_violations=rack_violations(proposal),
    )


def counted_dimensions(proposal: Proposal) -> tuple[Weighted, ...]:
    """Dimensions of the goals that are measured and whose mean reaches the floor.

    Empty where no broker may hold load.
    """
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
    """Mean load per holding broker before the changes, in the units of the dimension.

    The sum is over all brokers: it includes what must leave draining ones. Where the changes add
    or remove replicas it is that after them. Precondition: at least one broker may hold load; else
    ZeroDivisionError.
    """
    return _total(proposal, goal) / len(proposal.holding)


def _total(proposal: Proposal, goal: Weighted) -> float:
    resized = bool(proposal.resized.any())
    if goal.dimension.measure in TOPIC_MEASURES:
        replicas = proposal.after if resized else proposal.before
        return float(proposal.sums(replicas, goal.dimension).sum())
    table = proposal.table_after if resized else proposal.table_before
    return float(table[:, proposal.column(goal.dimension)].sum())


def relative_deviations(proposal: Proposal, goal: Weighted) -> Floats:
    """(holding,) utilisation / average - 1 of each holding broker after the changes.

    In the order of `Proposal.holding`. The average is the whole load before the changes, also what
    must leave draining brokers, over the capacity of the holding ones.

    Precondition: a counted dimension that is not balanced topic by topic; ValueError where
    `Proposal.dimensions` lacks it.
    """
    capacity = capacity_column(proposal, goal.dimension.measure)
    average = _total(proposal, goal) / capacity.sum()
    column = proposal.column(goal.dimension)
    load: Floats = proposal.table_after[proposal.is_holding, column]
    deviations: Floats = load / capacity / average - 1
    return deviations


def capacity_column(proposal: Proposal, measure: Measure) -> Floats:
    """(holding,) capacity of each of `Proposal.holding`, in the units of the measure.

    1 each for counts, and where the capacity of any holding broker is unknown.
    """
    return np.array([*capacities(proposal, measure).values()], np.float64)


def capacities(proposal: Proposal, measure: Measure) -> dict[BrokerId, float]:
    """Capacity of each of `Proposal.holding`; 1 each for counts and where any is unknown."""
    brokers = [b for b in proposal.snapshot.header.brokers if b.state in HOLDING]
    if isinstance(measure, Resource) and all(measure in b.capacity for b in brokers):
        return {b.id: b.capacity[measure] for b in brokers}
    return dict.fromkeys(proposal.holding, 1.0)


def planned_price(proposal: Proposal, counted: tuple[Weighted, ...]) -> float:
    """lambda, the price of one move in units of F, as `move_price` computes it.

    The least tolerance of the counted goals scales it, 0.1 where none counts.
    """
    return move_price(proposal, min((g.tolerance for g in counted), default=0.1))


def _paid(proposal: Proposal) -> float:
    """All moves, in units of lambda."""
    if not proposal.changes:
        return 0.0
    of_replica = replica_prices(proposal.snapshot, proposal.goals)
    return sum(change_price(proposal, c, float(of_replica[c.row])) for c in proposal.changes)


def directory_cost(proposal: Proposal, price: float) -> float:
    """Cost of the imbalance of log directories inside brokers, in units of F.

    Of brokers that may take load and have two directories or more, and hold as many bytes as the
    floor of the goal for disks says. Bytes count where the directory is known, or named by a
    change. 0 unless the goals balance directories.

    price: lambda, which `band` prices the excess with.
    """
    goals = proposal.goals
    found = [g for g in goals.balance if g.resource is Resource.DISK]
    goal = found[0] if found else Goal(resource=Resource.DISK)
    if not goals.level_directories or goal.weight == 0:
        return 0.0
    used = bytes_before(proposal.snapshot)
    for place, more in growth(proposal.snapshot, proposal.changes).items():
        used[place] = used.get(place, 0.0) + more
    brokers = (b for b in proposal.snapshot.header.brokers if b.state in TAKING)
    return sum(
        _broker_directory_cost(
            proposal, b, goal, [used.get((b.id, d.path), 0.0) for d in b.log_dirs], price
        )
        for b in brokers
        if len(b.log_dirs) > 1
    )


def _broker_directory_cost(
    proposal: Proposal, broker: Broker, goal: Goal, used: list[float], price: float
) -> float:
    known = [d.capacity_bytes for d in broker.log_dirs]
    capacity = [1.0 if None in known or c is None else c for c in known]
    total = sum(used)
    if total <= 0 or total < goal.floor:
        return 0.0
    average = total / sum(capacity)
    where = [u / c / average - 1 for u, c in zip(used, capacity, strict=True)]
    if proposal.goals.objective is ObjectiveKind.BAND:
        over = sum(max(0.0, abs(v) - goal.tolerance) for v in where)
        return goal.weight * proposal.goals.excess_price * price * over
    return goal.weight * sum(v * v for v in where)
