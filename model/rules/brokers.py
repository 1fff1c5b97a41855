"""Which brokers may take load, and which must end empty."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from model.ids import NO_BROKER, BrokerId
from model.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot import BrokerState


@dataclass(frozen=True)
class EligibleBrokers:
    """New replicas and new leaders go to alive brokers only."""

    name: str = "eligible brokers"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """New replicas or leaders on brokers that are not alive."""
        snapshot = proposal.snapshot
        for change in proposal.changes:
            taking = set(change.replicas) - set(snapshot.replicas(change.row))
            if change.leader != snapshot.partitions.leader[change.row]:
                taking.add(change.leader)
            for broker in sorted(taking):
                known = snapshot.broker.get(broker)
                if known is None or known.state is not BrokerState.ALIVE:
                    state = known.state if known else "unknown"
                    yield Violation(
                        self.name,
                        f"{snapshot.ids[change.row]} would go to broker {broker}, "
                        f"which is {state}",
                    )


@dataclass(frozen=True)
class DrainedBrokersEmpty:
    """Draining and dead brokers end with nothing that can be moved.

    A partition without a leader has nobody to copy it from: where its only broker
    died it stays, and must not keep all others from being levelled.
    """

    name: str = "drained brokers"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Draining or dead brokers with replicas left."""
        stranded = _stranded(proposal)
        for broker in proposal.snapshot.header.brokers:
            left = proposal.replicas_after[broker.id] - stranded[broker.id]
            leaving = broker.state in (BrokerState.DRAINING, BrokerState.DEAD)
            if leaving and left:
                yield Violation(
                    self.name,
                    f"broker {broker.id} is {broker.state} and would keep "
                    f"{left} replicas",
                )


def _stranded(proposal: Proposal) -> Counter[BrokerId]:
    """Replicas per broker of partitions without a leader."""
    snapshot = proposal.snapshot
    rows = (snapshot.partitions.leader == NO_BROKER).nonzero()[0].tolist()
    return Counter(broker for row in rows for broker in snapshot.replicas(row))
