"""No broker is filled over its limits, and a plan changes no more than its budgets allow."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from model.goals.goals import Budgets
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.proposal import Proposal
from model.plan.remaining import over_limit_text
from model.snapshot.snapshot import StorageKind
from model.units import bytes_text, count_text


def under_capacity(proposal: Proposal) -> Iterator[str]:
    """Check that load stays under limit x capacity, now and at every slot.

    A broker over its limit may not get worse. It binds each broker by itself, where its capacity
    is known. Loads within 1e-9 of the limit count as rounding.
    """
    for broker, resource, key in proposal.limited():
        limit = proposal.goals.limit_of(resource) * broker.capacity[resource]
        before = proposal.loads_before[broker.id][key]
        after = proposal.loads_after[broker.id][key]
        if after > max(limit, before) * (1 + 1e-9):
            yield over_limit_text(broker.id, key, after, limit)


def replica_limit(proposal: Proposal) -> Iterator[str]:
    """Check that no broker gets more replicas than the limit allows, or than it has."""
    limit = proposal.goals.replicas_per_broker
    for broker, count in sorted(proposal.replicas_after.items()):
        if count > max(limit, proposal.replicas_before[broker]):
            yield f"broker {broker} would hold {count} replicas; the limit is {limit}"


@dataclass(slots=True)
class _Spent:
    """The changes of a proposal, counted as budgets count them."""

    copied_bytes: int = 0
    """As `Move.bytes_to_copy`, of partitions whose size is known."""
    unknown: list[PartitionId] = field(default_factory=list)
    """Partitions that are copied and whose size is not known."""
    leader_changes: int = 0
    into: Counter[BrokerId] = field(default_factory=Counter)
    """New replicas by broker."""
    out_of: Counter[BrokerId] = field(default_factory=Counter)
    """Replicas that leave, by broker."""
    of_topic: Counter[TopicName] = field(default_factory=Counter)
    """New replicas by topic."""
    changed: Counter[TopicName] = field(default_factory=Counter)
    """Partitions with a new replica or another leader, by topic."""


def within_budgets(proposal: Proposal) -> Iterator[str]:
    """Check that moves, bytes and changes of leader stay within what one plan may change.

    Forced changes count too. Copying a partition of unknown size breaks a budget of bytes.
    """
    budgets = proposal.goals.budgets
    if budgets == Budgets():
        return
    spent = _spend(proposal)
    count = spent.into.total()
    yield from _over(budgets.replica_moves, count, f"{count} replicas would move")
    if budgets.bytes is not None:
        budget = f"the budget is {bytes_text(budgets.bytes)}"
        if spent.copied_bytes > budgets.bytes:
            yield f"{bytes_text(spent.copied_bytes)} would be copied; {budget}"
        if spent.unknown:
            yield f"{spent.unknown[0]} would be copied, and its size is unknown; {budget}"
    count = spent.leader_changes
    yield from _over(budgets.leader_changes, count, f"{count} leaders would change")
    for topic, count in sorted(spent.of_topic.items()):
        words = f"{count} replicas of topic {topic} would move"
        yield from _over(budgets.replica_moves_per_topic, count, words)
    for broker, count in sorted(spent.into.items()):
        words = f"{count} replicas would move to broker {broker}"
        yield from _over(budgets.replica_moves_in_per_broker, count, words)
    for broker, count in sorted(spent.out_of.items()):
        words = f"{count} replicas would leave broker {broker}"
        yield from _over(budgets.replica_moves_out_per_broker, count, words)
    count = spent.changed.total()
    yield from _over(budgets.partitions, count, f"{count_text(count, 'partition')} would change")
    for topic, count in sorted(spent.changed.items()):
        words = f"{count_text(count, 'partition')} of topic {topic} would change"
        yield from _over(budgets.partitions_per_topic, count, words)


def _over(budget: int | None, count: int, words: str) -> Iterator[str]:
    if budget is not None and count > budget:
        yield f"{words}; the budget is {budget}"


def _spend(proposal: Proposal) -> _Spent:
    spent = _Spent()
    for change in proposal.changes:
        row = proposal.snapshot.row(change.row)
        new, gone = set(change.replicas), set(row.replicas)
        new, gone = new - gone, gone - new
        spent.into.update(new)
        spent.out_of.update(gone)
        spent.of_topic[row.id.topic] += len(new)
        other_leader = change.leader != row.leader
        spent.leader_changes += other_leader
        spent.changed[row.id.topic] += other_leader or bool(new)
        if row.storage is not StorageKind.SHARED:
            spent.copied_bytes += len(new) * max(0, row.local_bytes)
            if new and row.local_bytes < 0:
                spent.unknown.append(row.id)
    return spent
