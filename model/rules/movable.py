"""Which partitions may be moved at all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from model.ids import NO_BROKER
from model.proposal import Proposal
from model.rules.forced import must_leave
from model.rules.rule import Violation
from model.snapshot import StorageKind


@dataclass(frozen=True)
class Movable:
    """Excluded and internal topics stay, and what has no leader or no known load.

    On shared storage internal topics may move; they are moved last.
    """

    name: str = "movable partitions"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Changed rows that had to stay."""
        for change in proposal.changes:
            reason = why_fixed(proposal, change.row)
            if reason:
                yield Violation(
                    self.name, f"{proposal.snapshot.ids[change.row]} stays: {reason}"
                )


def why_fixed(proposal: Proposal, row: int) -> str | None:
    """Why a row may not move, None if it may."""
    snapshot = proposal.snapshot
    topic = snapshot.header.topics[int(snapshot.partitions.topic[row])]
    if snapshot.partitions.leader[row] == NO_BROKER:
        return "it has no leader"
    if must_leave(snapshot, row):
        return None
    if proposal.goals.excludes(topic.name):
        return "its topic is excluded"
    if topic.internal and topic.storage is not StorageKind.SHARED:
        return "its topic is internal"
    return _unknown_load(proposal, row)


def _unknown_load(proposal: Proposal, row: int) -> str | None:
    loads = proposal.snapshot.partitions.loads[row].tolist()
    for resource, load in zip(proposal.snapshot.header.resources, loads, strict=True):
        if math.isnan(load) and proposal.goals.tolerance_of(resource) is not None:
            return f"its {resource} is not known yet"
    return None
