"""What of a large repair one plan can do within its budgets; the rest is deferred."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from model.domains import Domain
from model.forced import rack_totals
from model.goals import Goals, Stay
from model.ids import BrokerId, TopicName
from model.proposal import Proposal
from model.snapshot import LEAVING, TAKING, Bools, BrokerState, Snapshot, StorageKind
from model.units import count_text

MOST_NAMED: Final = 5
"""Partitions that are named in a sentence."""


def staged(
    snapshot: Snapshot, goals: Goals, *, waited: Collection[BrokerId] = ()
) -> tuple[Goals, int]:
    """Goals under which what rules force to move fits the budgets.

    A rule that forces more moves than a plan may make leaves no plan at all. Partitions
    with the fewest live replicas go first; further ones are deferred to a later plan.
    Those with more replicas than brokers that may hold them stay as they are.

    Parameters
    ----------
    waited
        Dead brokers that keep their replicas, since they may return.

    Returns
    -------
    The goals, and how many partitions the budgets defer.
    """
    proposal = Proposal(snapshot, goals, ())
    forced = np.flatnonzero(proposal.forced.rows).tolist()
    if not forced:
        return goals, 0
    lost = homeless(snapshot, goals)
    keep = [
        row
        for row in forced
        if row in lost or set(snapshot.replicas(row)) & set(waited)
    ]
    rest = sorted(set(forced) - set(keep), key=lambda row: (_live(snapshot, row), row))
    room = _Room(proposal)
    over = [row for row in rest if not room.take(row)]
    deferred = (*goals.deferred, *_stays(snapshot, (*keep, *over)))
    return goals.model_copy(update={"deferred": deferred}), len(over)


def homeless(snapshot: Snapshot, goals: Goals) -> frozenset[int]:
    """Rows that rules force to move, with more replicas than brokers may hold them."""
    proposal = Proposal(snapshot, goals, ())
    domains, brokers = proposal.domains, snapshot.header.brokers
    taking = np.array([b.state in TAKING for b in brokers], np.bool_)
    keeping = np.array([b.state not in LEAVING for b in brokers], np.bool_)
    start, found = snapshot.partitions.replica_start, []
    for row in np.flatnonzero(proposal.forced.rows).tolist():
        own = snapshot.replica_position[start[row] : start[row + 1]]
        places = taking.copy()
        places[own] = keeping[own]
        domain = domains.each[domains.of_row[row]]
        if _lacks_brokers(snapshot, domain, places & domain.allowed, len(own)):
            found.append(row)
    return frozenset(found)


def _lacks_brokers(
    snapshot: Snapshot, domain: Domain, places: Bools, replicas: int
) -> bool:
    """Whether a partition has more replicas than brokers that may hold them.

    places: (brokers,) where a replica may be, whatever the placement constraints.
    """
    if domain.placement is None:
        return int(np.count_nonzero(places)) < replicas
    rack = np.array([str(b.rack) for b in snapshot.header.brokers])
    wanted = rack_totals(domain.placement.placement)
    return any(
        np.count_nonzero(places & (rack == name)) < count
        for name, count in wanted.items()
    )


def homeless_text(snapshot: Snapshot, rows: Collection[int]) -> str:
    """Which partitions stay for want of brokers, and what to do about it."""
    named = ", ".join(str(snapshot.id(row)) for row in sorted(rows)[:MOST_NAMED])
    more = f" and {len(rows) - MOST_NAMED:,} more" if len(rows) > MOST_NAMED else ""
    return (
        f"{count_text(len(rows), 'partition')} cannot be moved, since fewer brokers may"
        f" hold their replicas than they have: {named}{more}; restart a dead broker or "
        "add one"
    )


class _Room:
    """What is left of the budgets."""

    def __init__(self, proposal: Proposal) -> None:
        self._snapshot, self._new = proposal.snapshot, proposal.forced.replicas
        self._budgets = proposal.goals.budgets
        states = {b.id: b.state for b in self._snapshot.header.brokers}
        self._leaving = {b for b, state in states.items() if state in LEAVING}
        self._taking = sum(state in TAKING for state in states.values())
        self._domains = proposal.domains
        self._at = {b.id: at for at, b in enumerate(self._snapshot.header.brokers)}
        self._spent = Counter[str]()

    def take(self, row: int) -> bool:
        """Spend what a row needs at least; whether the budgets have room for it."""
        spent = self._spent + self._needed(row)
        if any(count > self._most(name) for name, count in spent.items()):
            return False
        self._spent = spent
        return True

    def _needed(self, row: int) -> Counter[str]:
        partition, new = self._snapshot.row(row), int(self._new[row])
        leaves = partition.leader in self._leaving or self._may_not_lead(row)
        shared = partition.storage is StorageKind.SHARED
        found = Counter(
            {
                "replica_moves": new,
                "bytes": 0 if shared else new * max(0, partition.local_bytes),
                "leader_changes": int(leaves),
                "partitions": 1,
                f"partitions_per_topic {partition.id.topic}": 1,
                f"replica_moves_per_topic {partition.id.topic}": new,
                "replica_moves_in_per_broker": new,
            }
        )
        for broker in set(partition.replicas) & self._leaving:
            found[f"replica_moves_out_per_broker {broker}"] = 1
        return found

    def _may_not_lead(self, row: int) -> bool:
        """Whether pins or placement constraints keep the leader from leading."""
        leader = self._snapshot.broker.get(self._snapshot.row(row).leader)
        domain = self._domains.of(row)
        if leader is None:
            return False
        racks = domain.placement.placement.replica_racks if domain.placement else None
        misplaced = racks is not None and leader.rack not in racks
        return misplaced or not domain.allowed[self._at[leader.id]]

    def _most(self, name: str) -> float:
        field = name.partition(" ")[0]
        limit: int | None = getattr(self._budgets, field)
        if limit is None:
            return float("inf")
        # Which brokers get the replicas is the planner's choice.
        return limit * (self._taking if field == "replica_moves_in_per_broker" else 1)


def _live(snapshot: Snapshot, row: int) -> int:
    """Replicas of a row on brokers that are not dead."""
    states = (snapshot.broker[b].state for b in snapshot.replicas(row))
    return sum(state is not BrokerState.DEAD for state in states)


def _stays(snapshot: Snapshot, rows: Iterable[int]) -> tuple[Stay, ...]:
    by_topic: dict[TopicName, list[int]] = defaultdict(list)
    for row in sorted(rows):
        partition = snapshot.id(row)
        by_topic[partition.topic].append(partition.partition)
    return tuple(
        Stay(topic=topic, partitions=tuple(numbers))
        for topic, numbers in by_topic.items()
    )
