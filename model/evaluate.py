"""The independent evaluator: F and every rule, recomputed from snapshot and moves.

It shares no code with the solver. F is the yardstick: the sum of squared relative
deviations from the level over the brokers that may hold load, plus the price of the
moves.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from model.goals import Goal, Goals
from model.ids import BrokerId
from model.plan import Move
from model.proposal import HOLDING, Change, Proposal
from model.rules import RULES, Violation
from model.snapshot import BrokerState, Resource, Snapshot, StorageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What a placement is worth."""

    objective: float
    """F: deviation + prices."""
    deviation: float
    """Weighted sum of squared relative deviations from the level."""
    prices: float
    """Price of all moves, in units of F."""
    move_price: float
    """lambda, the price of one ordinary move."""
    levels: dict[Resource, float]
    """Mean load per broker of each resource that counts."""
    loads: dict[BrokerId, dict[Resource, float]]
    """Load per broker after the moves."""
    violations: tuple[Violation, ...]
    deviations: dict[Resource, dict[BrokerId, float]]
    """Utilisation / level - 1 of each holding broker, per resource that counts."""

    def within_band(self, goals: Goals) -> bool:
        """Whether every broker lies within every counted resource's tolerance."""
        return all(
            abs(deviation) <= (goals.tolerance_of(resource) or 1.0)
            for resource, by_broker in self.deviations.items()
            for deviation in by_broker.values()
        )


def evaluate(snapshot: Snapshot, goals: Goals, moves: Iterable[Move]) -> Evaluation:
    """Judge the placement that the moves lead to.

    Raises
    ------
    InvalidCluster
        A move names a partition that the snapshot does not have.
    """
    return evaluate_proposal(Proposal.of_moves(snapshot, goals, moves))


def evaluate_proposal(proposal: Proposal) -> Evaluation:
    """Judge a proposed placement."""
    counted = counted_goals(proposal)
    deviations = {
        g.resource: relative_deviations(proposal, g.resource) for g in counted
    }
    deviation = sum(
        g.weight * sum(v * v for v in deviations[g.resource].values()) for g in counted
    )
    price = move_price(proposal, counted)
    prices = sum(change_price(proposal, c, price) for c in proposal.changes)
    return Evaluation(
        objective=deviation + prices,
        deviation=deviation,
        prices=prices,
        move_price=price,
        levels={g.resource: _mean(proposal, g.resource) for g in counted},
        loads=proposal.loads_after,
        deviations=deviations,
        violations=tuple(v for rule in RULES for v in rule.violations(proposal)),
    )


def counted_goals(proposal: Proposal) -> tuple[Goal, ...]:
    """Goals whose resource is measured and whose mean load reaches its floor."""
    known = proposal.snapshot.header.resources
    return tuple(
        g
        for g in proposal.goals.balance
        if g.resource in known
        and proposal.holding
        and (mean := _mean(proposal, g.resource)) >= g.floor
        and mean > 0
    )


def _mean(proposal: Proposal, resource: Resource) -> float:
    total = sum(load[resource] for load in proposal.loads_before.values())
    return total / len(proposal.holding)


def relative_deviations(
    proposal: Proposal, resource: Resource
) -> dict[BrokerId, float]:
    """Utilisation / level - 1 of each holding broker after the changes.

    The level is the whole load, also what must leave draining brokers, over the
    capacity of the holding ones.
    """
    capacity = capacities(proposal, resource)
    total = sum(load[resource] for load in proposal.loads_before.values())
    level = total / sum(capacity.values())
    return {
        b: proposal.loads_after[b][resource] / capacity[b] / level - 1
        for b in proposal.holding
    }


def capacities(proposal: Proposal, resource: Resource) -> dict[BrokerId, float]:
    """Capacity of each holding broker; 1 each where any is unknown."""
    brokers = [b for b in proposal.snapshot.header.brokers if b.state in HOLDING]
    if any(resource not in b.capacity for b in brokers):
        return {b.id: 1.0 for b in brokers}
    return {b.id: b.capacity[resource] for b in brokers}


def move_price(proposal: Proposal, counted: tuple[Goal, ...]) -> float:
    """lambda: as configured, else tolerance x brokers / partitions."""
    if proposal.goals.move_price is not None:
        return proposal.goals.move_price
    tolerance = min((g.tolerance for g in counted), default=0.1)
    return tolerance * len(proposal.holding) / max(1, len(proposal.snapshot))


def change_price(proposal: Proposal, change: Change, price: float) -> float:
    """Price of one changed row; replicas that had to leave are moved for free."""
    snapshot = proposal.snapshot
    before = snapshot.replicas(change.row)
    added = len(set(change.replicas) - set(before))
    forced = sum(
        snapshot.broker[b].state in (BrokerState.DRAINING, BrokerState.DEAD)
        for b in set(before) - set(change.replicas)
    )
    paid = max(0, added - forced) * _copy_share(snapshot, change.row)
    leader_before = snapshot.partitions.leader[change.row]
    if change.leader != leader_before:
        paid += proposal.goals.leader_price_share
    return price * paid


def _copy_share(snapshot: Snapshot, row: int) -> float:
    """Cost of one new replica in units of lambda, by what it has to copy.

    Shared storage copies nothing: the price is that of the pause, 1. A tiered
    partition pays 1, or its local bytes against the mean log where that is more.
    Replicated disks pay for every byte, against the mean log.
    """
    columns = snapshot.partitions
    storage = snapshot.header.topics[int(columns.topic[row])].storage
    known = columns.size_bytes[columns.size_bytes >= 0]
    mean = float(known.mean()) if len(known) else 0.0
    local = float(columns.local_bytes[row])
    if storage is StorageKind.SHARED or local < 0 or mean <= 0:
        return 1.0
    share = local / mean
    return share if storage is StorageKind.REPLICATED else max(1.0, share)
