"""No broker is filled over its limit."""

from collections.abc import Iterator
from dataclasses import dataclass

from model.proposal import HOLDING, Proposal
from model.rules.rule import Violation


@dataclass(frozen=True)
class CapacityLimit:
    """Load stays under limit x capacity; a broker over it may not get worse."""

    name: str = "capacity"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Brokers that get over their limit, or further over it."""
        for broker in proposal.snapshot.header.brokers:
            if broker.state not in HOLDING:
                continue
            for resource, capacity in broker.capacity.items():
                limit = proposal.goals.capacity_limit * capacity
                before = proposal.loads_before[broker.id].get(resource, 0.0)
                after = proposal.loads_after[broker.id].get(resource, 0.0)
                if after > max(limit, before) * (1 + 1e-9):
                    yield Violation(
                        self.name,
                        f"broker {broker.id} would carry {after:.0f} of {resource}; "
                        f"its limit is {limit:.0f}",
                    )


@dataclass(frozen=True)
class ReplicaLimit:
    """A broker holds at most so many replicas; one over it may not get more."""

    name: str = "replicas per broker"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Brokers that get more replicas than allowed."""
        limit = proposal.goals.replicas_per_broker
        before = proposal.snapshot.partitions.replica_broker.tolist()
        for broker, count in sorted(proposal.replicas_after.items()):
            if count > max(limit, before.count(broker)):
                yield Violation(
                    self.name,
                    f"broker {broker} would hold {count} replicas; the limit is "
                    f"{limit}",
                )
