"""Partitions that have long had fewer in-sync replicas than their topics require."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from model.ids import NO_BROKER, PartitionId
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState, Snapshot

LASTING_S: Final = 120.0
"""Time below `min.insync.replicas` after which a restart no longer explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MinIsrWatch:
    """Since when partitions have been below; seconds of a clock that is never set."""

    below_since: Mapping[PartitionId, float] = field(default_factory=dict)

    def seen(self, replication: Replication | None, now_s: float) -> "MinIsrWatch":
        """The watch after another poll; without an answer, nothing changes."""
        if replication is None:
            return self
        since = self.below_since
        return MinIsrWatch(below_since={p: since.get(p, now_s) for p in replication.below_ids})

    def rows(
        self, snapshot: Snapshot, now_s: float, lasting_s: float = LASTING_S
    ) -> tuple[int, ...]:
        """Rows that have been below for long and that a plan heals, ascending.

        They have a leader to copy from, and a replica on a dead broker or disk to replace.
        """
        lasting = [p for p, at in self.below_since.items() if now_s - at >= lasting_s]
        found = (snapshot.find(partition) for partition in lasting)
        return tuple(sorted(r for r in found if r is not None and _heals(snapshot, r)))


def _heals(snapshot: Snapshot, row: int) -> bool:
    states = [snapshot.broker[b].state for b in snapshot.replicas(row)]
    led = int(snapshot.partitions.leader[row]) != NO_BROKER
    return led and (BrokerState.DEAD in states or bool(snapshot.lost_on(row)))
