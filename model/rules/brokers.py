"""Which brokers may take load, and which must end empty."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.ids import NO_BROKER, BrokerId
from model.plan.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot.snapshot import LEAVING, TAKING


@dataclass(frozen=True)
class EligibleBrokers:
    """New replicas and new leaders go only to brokers that may take new load."""

    name: str = "eligible brokers"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each change that puts load on a broker that takes no new load."""
        snapshot = proposal.snapshot
        for change in proposal.changes:
            taking = set(change.replicas) - set(snapshot.replicas(change.row))
            if change.leader != snapshot.partitions.leader[change.row]:
                taking.add(change.leader)
            for broker in sorted(taking):
                known = snapshot.broker.get(broker)
                if known is None or known.state not in TAKING:
                    state = known.state if known else "unknown"
                    yield Violation(
                        self.name,
                        f"{snapshot.id(change.row)} would go to broker {broker}, which is {state}",
                    )


@dataclass(frozen=True)
class DrainedBrokersEmpty:
    """Draining and dead brokers end with nothing that can be moved.

    A partition without a leader has nobody to copy it from: where its only broker
    died it stays, and must not keep all others from being balanced. So do partitions
    that the goals defer to a later plan.
    """

    name: str = "drained brokers"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each draining or dead broker that would keep movable replicas."""
        stranded = _stranded(proposal)
        for broker in proposal.snapshot.header.brokers:
            left = proposal.replicas_after[broker.id] - stranded[broker.id]
            if broker.state in LEAVING and left:
                yield Violation(
                    self.name,
                    f"broker {broker.id} is {broker.state} and would keep {left} replicas",
                )


def _stranded(proposal: Proposal) -> Counter[BrokerId]:
    """Replicas per broker of partitions that cannot move, or not in this plan."""
    replicas = proposal.before
    stays = (proposal.snapshot.partitions.leader == NO_BROKER) | proposal.deferred
    lost = stays[replicas.row]
    counts = np.bincount(replicas.broker[lost], minlength=len(proposal.brokers))
    return Counter(dict(zip(proposal.brokers, counts.tolist(), strict=True)))
