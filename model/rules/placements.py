"""Explicit placement: how many replicas in which rack."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.goals.rack_placement import ReplicaPlacement
from model.plan.proposal import HOLDING, Change, Proposal
from model.rules.rule import Violation


@dataclass(frozen=True)
class ExplicitPlacement:
    """Replicas and observers lie in the racks that their topic's placement names.

    Observers stand last and do not lead. Source: Confluent's replica placement constraints.
    """

    name: str = "explicit placement"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each row that would break its placement, moved or not."""
        for change in proposal.changes:
            rule = proposal.domains.of(change.row).placement
            if rule is None:
                continue
            for words in _faults(proposal, change, rule.placement):
                yield Violation(self.name, words)
        off = np.flatnonzero(proposal.forced.off_placement).tolist()
        for row in off:
            if row not in proposal.changed:
                yield Violation(self.name, _left(proposal, row))


def _left(proposal: Proposal, row: int) -> str:
    """The fault of a row that stays as it is."""
    snapshot = proposal.snapshot
    rule = proposal.domains.of(row).placement
    leader = snapshot.row(row).leader
    change = Change(row, snapshot.replicas(row), leader)
    faults = list(_faults(proposal, change, rule.placement)) if rule else []
    return faults[0] if faults else f"{snapshot.id(row)} is not placed as it must be"


def _faults(proposal: Proposal, change: Change, rule: ReplicaPlacement) -> Iterator[str]:
    pid = proposal.snapshot.id(change.row)
    leading = sum(rule.replica_racks.values())
    required = leading + sum(rule.observer_racks.values())
    if len(change.replicas) != required:
        given = len(change.replicas)
        yield f"{pid} has {given} replicas; its placement asks for {required}"
        return
    racks = {b.id: b.rack for b in proposal.snapshot.header.brokers}
    for noun, part, counts in (
        ("replicas", change.replicas[:leading], rule.replica_racks),
        ("observers", change.replicas[leading:], rule.observer_racks),
    ):
        found = Counter(racks.get(b) for b in part)
        for rack, count in counts.items():
            if found[rack] != count:
                yield (
                    f"{pid} would have {found[rack]} {noun} in rack {rack}, its "
                    f"placement asks for {count}{_why(proposal, rack)}"
                )
    if change.leader in change.replicas[leading:]:
        yield f"{pid} would be led by broker {change.leader}, an observer"


def _why(proposal: Proposal, rack: str) -> str:
    """What the rack lacks, if nobody there can hold a replica."""
    brokers = proposal.snapshot.header.brokers
    if any(b.rack == rack and b.state in HOLDING for b in brokers):
        return ""
    if any(b.rack == rack for b in brokers):
        return f"; rack {rack} has no broker that is not draining"
    return f"; no broker names the rack {rack}"
