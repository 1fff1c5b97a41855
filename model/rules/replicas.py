"""The replication factor is kept; no broker holds a partition twice."""

from collections.abc import Iterator
from dataclasses import dataclass

from model.plan.proposal import Proposal
from model.rules.rule import Violation


@dataclass(frozen=True)
class ReplicationFactorKept:
    """A move never changes the number of replicas (KIP-860's guard)."""

    name: str = "replication factor"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each change to more or fewer replicas than before."""
        for change in proposal.changes:
            before, after = proposal.snapshot.replicas(change.row), change.replicas
            if len(before) != len(after):
                yield Violation(
                    self.name,
                    f"{proposal.snapshot.id(change.row)} would have {len(after)} "
                    f"replicas, it has {len(before)}",
                )


@dataclass(frozen=True)
class DistinctReplicas:
    """A broker holds at most one replica of a partition, and one of them leads."""

    name: str = "distinct replicas"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each change with a broker listed twice, or with a foreign leader.

        A foreign leader holds no replica of the partition.
        """
        for change in proposal.changes:
            partition = proposal.snapshot.id(change.row)
            if len(set(change.replicas)) != len(change.replicas):
                yield Violation(
                    self.name, f"{partition} would lie twice on a broker: {change.replicas}"
                )
            if change.leader not in change.replicas:
                yield Violation(
                    self.name,
                    f"{partition} would be led by broker {change.leader}, "
                    "which holds no replica of it",
                )
