"""Which brokers may take load, and which must end empty."""

from collections.abc import Iterator
from dataclasses import dataclass

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
    """Draining and dead brokers end with nothing."""

    name: str = "drained brokers"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Draining or dead brokers with replicas left."""
        for broker in proposal.snapshot.header.brokers:
            left = proposal.replicas_after[broker.id]
            leaving = broker.state in (BrokerState.DRAINING, BrokerState.DEAD)
            if leaving and left:
                yield Violation(
                    self.name,
                    f"broker {broker.id} is {broker.state} and would keep "
                    f"{left} replicas",
                )
