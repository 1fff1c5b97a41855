"""A plan changes no more than its budgets allow; forced changes count too."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from model.goals.goals import Budgets
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot.snapshot import StorageKind
from model.units import bytes_text, count_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The changes of a proposal, counted as budgets count them."""

    copied_bytes: int
    """As `Move.bytes_to_copy`, of partitions whose size is known."""
    unknown: tuple[PartitionId, ...]
    """Partitions that are copied and whose size is not known."""
    leader_changes: int
    into: Counter[BrokerId]
    """New replicas by broker."""
    out_of: Counter[BrokerId]
    """Replicas that leave, by broker."""
    of_topic: Counter[TopicName]
    """New replicas by topic."""
    changed: Counter[TopicName]
    """Partitions with a new replica or another leader, by topic."""

    @property
    def moves(self) -> int:
        """Number of new replicas."""
        return self.into.total()


@dataclass(frozen=True)
class WithinBudgets:
    """Moves, bytes and changes of leader stay within what one plan may change."""

    name: str = "budgets"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each budget that the proposal exceeds, with both figures.

        Copying a partition of unknown size breaks a budget of bytes.
        """
        budgets = proposal.goals.budgets
        if budgets == Budgets():
            return
        spent = spend(proposal)
        for words in (
            *_totals(budgets, spent),
            *_shares(budgets, spent),
            *_partitions(budgets, spent),
        ):
            yield Violation(self.name, words)


def spend(proposal: Proposal) -> Spent:
    """Count the replicas, bytes, leaders and partitions that a proposal changes."""
    snapshot = proposal.snapshot
    copied = leaders = 0
    unknown: list[PartitionId] = []
    into: Counter[BrokerId] = Counter()
    out_of: Counter[BrokerId] = Counter()
    of_topic: Counter[TopicName] = Counter()
    changed: Counter[TopicName] = Counter()
    for change in proposal.changes:
        row = snapshot.row(change.row)
        new, gone = set(change.replicas), set(row.replicas)
        new, gone = new - gone, gone - new
        into.update(new)
        out_of.update(gone)
        of_topic[row.id.topic] += len(new)
        leads_anew = change.leader != row.leader
        leaders += leads_anew
        changed[row.id.topic] += leads_anew or bool(new)
        if row.storage is not StorageKind.SHARED:
            copied += len(new) * max(0, row.local_bytes)
            unknown += [row.id] if new and row.local_bytes < 0 else []
    return Spent(
        copied_bytes=copied,
        unknown=tuple(unknown),
        leader_changes=leaders,
        into=into,
        out_of=out_of,
        of_topic=of_topic,
        changed=changed,
    )


def _totals(budgets: Budgets, spent: Spent) -> Iterator[str]:
    if budgets.replica_moves is not None and spent.moves > budgets.replica_moves:
        yield (f"{spent.moves} replicas would move; the budget is {budgets.replica_moves}")
    if budgets.bytes is not None and spent.copied_bytes > budgets.bytes:
        yield (
            f"{bytes_text(spent.copied_bytes)} would be copied; the budget is "
            f"{bytes_text(budgets.bytes)}"
        )
    if budgets.bytes is not None and spent.unknown:
        yield (
            f"{spent.unknown[0]} would be copied, and its size is unknown; the budget "
            f"is {bytes_text(budgets.bytes)}"
        )
    most = budgets.leader_changes
    if most is not None and spent.leader_changes > most:
        yield f"{spent.leader_changes} leaders would change; the budget is {most}"


def _partitions(budgets: Budgets, spent: Spent) -> Iterator[str]:
    total, most = spent.changed.total(), budgets.partitions
    if most is not None and total > most:
        yield f"{count_text(total, 'partition')} would change; the budget is {most}"
    most = budgets.partitions_per_topic
    for topic, count in sorted(spent.changed.items()):
        if most is not None and count > most:
            yield (
                f"{count_text(count, 'partition')} of topic {topic} would change; "
                f"the budget is {most}"
            )


def _shares(budgets: Budgets, spent: Spent) -> Iterator[str]:
    for most, counts, words in (
        (budgets.replica_moves_per_topic, spent.of_topic, "of topic {} would move"),
        (budgets.replica_moves_in_per_broker, spent.into, "would move to broker {}"),
        (budgets.replica_moves_out_per_broker, spent.out_of, "would leave broker {}"),
    ):
        for name, count in sorted(counts.items()):
            if most is not None and count > most:
                yield f"{count} replicas {words.format(name)}; the budget is {most}"
