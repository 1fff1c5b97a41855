"""Partitions that have to move and for which no allowed place is left.

Where brokers are dead, they must not keep everything else from being planned, so plans
defer them and name them. Only rules of single partitions are asked: pins, placements,
racks and the return window. Limits and budgets are not.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

import numpy as np

from model.bound.row_rules import row_rules
from model.goals.goals import Goals, Stay
from model.ids import TopicName
from model.plan.proposal import Proposal
from model.plan.remaining import named_ids
from model.snapshot.snapshot import LEAVING, TAKING, BrokerState, Snapshot
from model.units import count_text


def with_placeless_deferred(goals: Goals, snapshot: Snapshot) -> Goals:
    """The goals, with partitions deferred whose allowed places broken brokers or disks took.

    A drain that cannot be completed stays infeasible: that is the answer to a request, and nobody
    requests that a broker dies or a directory fails. So do pins and placements that no broker could
    keep if all were alive, and a cluster in which no broker may take replicas: there is nothing
    else to plan.
    """
    states = {b.state for b in snapshot.header.brokers}
    broken = BrokerState.DEAD in states or snapshot.in_failed_dir.any()
    if not broken or not states & TAKING:
        return goals
    whole = TAKING | {BrokerState.DEAD}
    with_dead = _Places(Proposal(snapshot, goals, ()), whole, repaired=True)
    rows = [
        row
        for row in placeless(snapshot, goals)
        if not with_dead.too_few(row)
        and BrokerState.DRAINING not in {snapshot.broker[b].state for b in snapshot.replicas(row)}
    ]
    if not rows:
        return goals
    return deferring(snapshot, goals, rows)


def deferring(snapshot: Snapshot, goals: Goals, rows: Collection[int]) -> Goals:
    """The goals, with these rows left to a later plan, besides those that are already."""
    return goals.model_copy(update={"deferred": (*goals.deferred, *stays(snapshot, rows))})


def placeless(snapshot: Snapshot, goals: Goals) -> frozenset[int]:
    """Row numbers of partitions that must move and that too few brokers may hold.

    Only rules of single partitions count: broker states, pins, placements, racks and the return
    window; not limits and budgets. Rows that the goals defer are not among them.
    """
    proposal = Proposal(snapshot, goals, ())
    forced = np.flatnonzero(proposal.forced.rows).tolist()
    places = _Places(proposal)
    return frozenset(row for row in forced if places.too_few(row))


def placeless_warnings(snapshot: Snapshot, goals: Goals) -> Iterator[str]:
    """Clause on partitions that goals defer because they cannot be placed, and what to do.

    Nothing where the goals defer none of them.
    """
    if not goals.deferred:
        return
    named = {(s.topic, number) for s in goals.deferred for number in s.partitions}
    found = placeless(snapshot, goals.model_copy(update={"deferred": ()}))
    rows = [row for row in sorted(found) if tuple(snapshot.id(row)) in named]
    if rows:
        yield (
            f"{count_text(len(rows), 'partition')} cannot be moved, because too few brokers may "
            f"hold their replicas: {named_ids([snapshot.id(row) for row in rows])}. "
            "Restart a dead broker, replace a failed disk, or add a broker"
        )


def stays(snapshot: Snapshot, rows: Collection[int]) -> tuple[Stay, ...]:
    """Convert row numbers to entries of `Goals.stay` or `Goals.deferred`, by topic."""
    by_topic: dict[TopicName, list[int]] = defaultdict(list)
    for row in sorted(rows):
        partition = snapshot.id(row)
        by_topic[partition.topic].append(partition.partition)
    return tuple(
        Stay(topic=topic, partitions=tuple(numbers)) for topic, numbers in by_topic.items()
    )


class _Places:
    """Which brokers may hold each row, whatever else is changed."""

    def __init__(
        self,
        proposal: Proposal,
        taking: Collection[BrokerState] = TAKING,
        *,
        repaired: bool = False,
    ) -> None:
        """repaired: as if no log directory had failed."""
        self.proposal = proposal
        self._failed = proposal.snapshot.in_failed_dir & (not repaired)
        self._taking = proposal.snapshot.in_state(taking)
        self._keeping = self._taking | ~proposal.snapshot.in_state(LEAVING)
        self._racks = [b.rack for b in proposal.snapshot.header.brokers]
        rules = row_rules(proposal)
        pairs = rules.barred_row.tolist(), rules.barred_broker.tolist()
        self._barred: dict[int, list[int]] = defaultdict(list)
        for row, broker in zip(*pairs, strict=True):
            self._barred[row].append(broker)

    def too_few(self, row: int) -> bool:
        """Whether no allowed placement of a row exists."""
        snapshot, domain = self.proposal.snapshot, self.proposal.domains.of(row)
        start = snapshot.partitions.replica_start
        own = snapshot.replica_position[start[row] : start[row + 1]]
        places = self._taking.copy()
        places[self._barred.get(row, [])] = False
        places[own] = self._keeping[own] & ~self._failed[start[row] : start[row + 1]]
        places &= domain.allowed
        racks = Counter(self._racks[at] for at in np.flatnonzero(places).tolist())
        if racks.total() < len(own):
            return True
        if domain.placement is not None:
            required = domain.placement.placement.racks
            return any(racks[rack] < count for rack, count in required.items())
        takers = np.flatnonzero(self._taking & domain.allowed).tolist()
        usable = len({self._racks[at] for at in takers})
        return self.proposal.racks_bind and len(racks) < min(len(own), usable)
