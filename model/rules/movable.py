"""Which partitions may be moved at all."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from model.goals.goals import Goals
from model.ids import NO_BROKER
from model.plan.proposal import Proposal
from model.rules.rule import Violation
from model.snapshot.snapshot import Count, Resource, StorageKind


@dataclass(frozen=True)
class Movable:
    """Internal topics, excluded topics and partitions, and partitions without a leader
    or a known load are not moved.

    On shared storage internal topics may move; they are moved last.
    """

    name: str = "movable partitions"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each changed row that may not move, with the reason."""
        for change in proposal.changes:
            reason = why_fixed(proposal, change.row)
            if reason:
                yield Violation(self.name, f"{proposal.snapshot.id(change.row)} stays: {reason}")


def why_fixed(proposal: Proposal, row: int) -> str | None:
    """The reason why a row may not move, as a clause; None if it may.

    A cooldown is not considered here.
    """
    snapshot = proposal.snapshot
    topic = snapshot.header.topics[int(snapshot.partitions.topic[row])]
    if snapshot.partitions.leader[row] == NO_BROKER:
        return "it has no leader"
    if proposal.forced.rows[row]:
        return None
    if proposal.goals.excludes(topic.name):
        return "its topic is excluded"
    if proposal.goals.keeps(topic.name, int(snapshot.partitions.partition[row])):
        return "the goals let it stay"
    if topic.internal and topic.storage is not StorageKind.SHARED:
        return "its topic is internal"
    return _unknown_load(proposal, row)


def needed_resources(goals: Goals) -> frozenset[Resource]:
    """The resources whose load must be known before a partition is moved.

    Those that a goal balances; `leader_net_in` needs `net_in`.
    """
    measures = {g.resource for g in goals.balance}
    found = {m for m in measures if isinstance(m, Resource)}
    if Count.LEADER_NET_IN in measures:
        found.add(Resource.NET_IN)
    return frozenset(found)


def _unknown_load(proposal: Proposal, row: int) -> str | None:
    needed = needed_resources(proposal.goals)
    loads = proposal.snapshot.partitions.loads[row].tolist()
    for resource, load in zip(proposal.snapshot.header.resources, loads, strict=True):
        if math.isnan(load) and resource in needed:
            return f"its {resource} is not known yet"
    return None
