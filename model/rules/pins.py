"""Pinned partitions lie on the brokers or racks that they are pinned to."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.plan.proposal import Proposal
from model.rules.rule import Violation


@dataclass(frozen=True)
class Pinned:
    """Every replica lies where all pins of its partition permit it."""

    name: str = "pins"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each replica that would lie outside its pins, moved or not."""
        if not proposal.goals.pins:
            return
        snapshot = proposal.snapshot
        kept = np.flatnonzero(proposal.forced.outside_pins).tolist()
        rows = [(c.row, c.replicas) for c in proposal.changes]
        rows += [(r, snapshot.replicas(r)) for r in kept if r not in proposal.changed]
        position = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
        for row, replicas in rows:
            allowed = proposal.domains.of(row).allowed
            for broker in replicas:
                if broker in position and not allowed[position[broker]]:
                    yield Violation(
                        self.name,
                        f"{snapshot.id(row)} would lie on broker {broker}, outside its pins",
                    )
