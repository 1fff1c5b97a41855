"""Replicas of a partition lie in as many racks as possible."""

from collections.abc import Iterator
from dataclasses import dataclass

from model.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot import BrokerState


@dataclass(frozen=True)
class RackSpread:
    """New replicas leave a partition in min(replicas, usable racks) racks.

    As Kafka's own assignment does, it binds only where every broker names a rack.
    """

    name: str = "rack spread"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Changed rows that lie in fewer racks than they could."""
        brokers = proposal.snapshot.header.brokers
        racks = {b.id: b.rack for b in brokers}
        if None in racks.values():
            return
        usable = {b.rack for b in brokers if b.state is BrokerState.ALIVE}
        for change in proposal.changes:
            if set(change.replicas) == set(proposal.snapshot.replicas(change.row)):
                continue
            after = {racks[b] for b in change.replicas if b in racks}
            wanted = min(len(change.replicas), len(usable))
            if len(after) < wanted:
                yield Violation(
                    self.name,
                    f"{proposal.snapshot.ids[change.row]} would lie in {len(after)} "
                    f"racks where {wanted} are possible",
                )
