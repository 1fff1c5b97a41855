"""No broker is filled over its limit."""

from collections.abc import Iterator
from dataclasses import dataclass

from model.dimensions import Dimension, times_of
from model.plan.proposal import HOLDING, Proposal
from model.plan.remaining import over_words
from model.rules.rule import Violation
from model.snapshot.snapshot import Broker, Resource


@dataclass(frozen=True)
class CapacityLimit:
    """Load stays under limit x capacity, now and at every slot.

    A broker over its limit may not get worse. It binds each broker by itself, where
    its capacity is known.
    """

    name: str = "capacity"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each broker that gets over its limit, or further over it.

        Loads within 1e-9 of the limit count as rounding.
        """
        header = proposal.snapshot.header
        for broker in header.brokers:
            if broker.state not in HOLDING:
                continue
            for resource in broker.capacity:
                for slot in times_of(header, resource):
                    at = Dimension(measure=resource, slot=slot)
                    yield from self._over(proposal, broker, resource, at)

    def _over(
        self, proposal: Proposal, broker: Broker, resource: Resource, at: Dimension
    ) -> Iterator[Violation]:
        limit = proposal.goals.limit_of(resource) * broker.capacity[resource]
        before = proposal.loads_before[broker.id][at.key]
        after = proposal.loads_after[broker.id][at.key]
        if after > max(limit, before) * (1 + 1e-9):
            yield Violation(self.name, over_words(broker.id, at.key, after, limit))


@dataclass(frozen=True)
class ReplicaLimit:
    """A broker holds at most so many replicas; one over it may not get more."""

    name: str = "replicas per broker"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each broker that gets more replicas than the limit allows."""
        limit = proposal.goals.replicas_per_broker
        for broker, count in sorted(proposal.replicas_after.items()):
            if count > max(limit, proposal.replicas_before[broker]):
                yield Violation(
                    self.name, f"broker {broker} would hold {count} replicas; the limit is {limit}"
                )
