"""A placement that is proposed: the changed rows of a snapshot, and broker sums."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.errors import InvalidCluster
from model.goals import Goals
from model.ids import BrokerId
from model.plan import Move
from model.snapshot import BrokerState, Floats, Resource, Snapshot

HOLDING = (BrokerState.ALIVE, BrokerState.EXCLUDED)
"""States in which a broker may keep load; only these are levelled."""


@dataclass(frozen=True, slots=True)
class Change:
    """New replicas and leader of one row."""

    row: int
    replicas: tuple[BrokerId, ...]
    leader: BrokerId


@dataclass(frozen=True)
class Proposal:
    """A snapshot with some rows changed. Plain and slow on purpose: the yardstick."""

    snapshot: Snapshot
    goals: Goals
    changes: tuple[Change, ...]

    @classmethod
    def of_moves(
        cls, snapshot: Snapshot, goals: Goals, moves: Iterable[Move]
    ) -> "Proposal":
        """The placement after all moves.

        Raises
        ------
        InvalidCluster
            A move names a partition that the snapshot does not have.
        """
        changes = []
        for move in moves:
            row = snapshot.row_of.get(move.id)
            if row is None:
                raise InvalidCluster(f"the snapshot has no partition {move.id}")
            changes.append(Change(row, move.replicas_after, move.leader_after))
        return cls(snapshot, goals, tuple(changes))

    @cached_property
    def holding(self) -> tuple[BrokerId, ...]:
        """Brokers that may keep load, by id."""
        return tuple(b.id for b in self.snapshot.header.brokers if b.state in HOLDING)

    @cached_property
    def loads_before(self) -> dict[BrokerId, dict[Resource, float]]:
        """Load per broker as the snapshot has it."""
        return self._loads({})

    @cached_property
    def loads_after(self) -> dict[BrokerId, dict[Resource, float]]:
        """Load per broker with the changes made."""
        return self._loads({c.row: c for c in self.changes})

    @cached_property
    def replicas_after(self) -> Counter[BrokerId]:
        """Replicas per broker with the changes made."""
        changed = {c.row: c.replicas for c in self.changes}
        count: Counter[BrokerId] = Counter()
        for row in range(len(self.snapshot)):
            count.update(changed.get(row) or self.snapshot.replicas(row))
        return count

    def _loads(
        self, changed: dict[int, Change]
    ) -> dict[BrokerId, dict[Resource, float]]:
        resources = self.snapshot.header.resources
        sums = {b.id: np.zeros(len(resources)) for b in self.snapshot.header.brokers}
        for row in range(len(self.snapshot)):
            change = changed.get(row)
            replicas = change.replicas if change else self.snapshot.replicas(row)
            leader = (
                change.leader
                if change
                else BrokerId(int(self.snapshot.partitions.leader[row]))
            )
            lead, follow = replica_loads(self.snapshot, row, len(replicas))
            for broker in replicas:
                # A plan may name a broker that this snapshot lacks; a rule says so.
                sums.setdefault(broker, np.zeros(len(resources)))
                sums[broker] += lead if broker == leader else follow
        return {
            b: dict(zip(resources, map(float, s), strict=True)) for b, s in sums.items()
        }


def replica_loads(snapshot: Snapshot, row: int, rf: int) -> tuple[Floats, Floats]:
    """What one partition loads its leader's broker and each follower's broker with.

    Followers take in what the leader takes in, and the leader serves it to each of
    them; consumers are served by the leader. Unknown loads count as 0.

    Returns
    -------
    (resources,) float64 each, in the order of the snapshot's resources.
    """
    resources = snapshot.header.resources
    lead = np.nan_to_num(snapshot.partitions.loads[row], nan=0.0)
    follow = lead.copy()
    for i, resource in enumerate(resources):
        if resource is Resource.NET_OUT:
            follow[i] = 0.0
            if Resource.NET_IN in resources:
                lead[i] += (rf - 1) * lead[resources.index(Resource.NET_IN)]
    return lead, follow
