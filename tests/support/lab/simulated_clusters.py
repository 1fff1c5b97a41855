"""Simulated clusters for tests: of any snapshot, with lagging brokers or changing loads."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from executor.client.responses import PartitionView
from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import Curve, SimulatedBroker, SimulatedPartition, steady
from model.ids import BrokerId, PartitionId
from model.snapshot.snapshot import PartitionRow, Resource, Snapshot, StorageKind


def simulated_of(snapshot: Snapshot) -> SimulatedCluster:
    """The cluster of a snapshot, with constant loads."""
    header = snapshot.header
    rates = [0.0] * len(snapshot)
    if Resource.NET_IN in header.resources:
        rates = snapshot.partitions.loads[:, header.resources.index(Resource.NET_IN)].tolist()
    return SimulatedCluster(
        header.cluster_id,
        [
            SimulatedBroker(
                id=b.id,
                rack=b.rack,
                disk_bytes=b.capacity.get(Resource.DISK, math.inf),
                network_bytes_per_s=b.capacity.get(Resource.NET_IN, 125e6),
            )
            for b in header.brokers
        ],
        map(_partition, snapshot.rows(), rates),
        now_s=header.taken_at_ms / 1000,
    )


def _partition(row: PartitionRow, rate: float) -> SimulatedPartition:
    tail = math.inf if row.storage is StorageKind.REPLICATED else row.local_bytes
    return SimulatedPartition.of(row, steady(0.0 if math.isnan(rate) else rate), tail)


class LaggingCluster(SimulatedCluster):
    """A cluster whose brokers' metadata lag behind the controller.

    A broker learns of a change once it has read that part of the controller's log. Clients
    ask any broker, so a later response may show an older state.
    """

    def __init__(self, *args: Any, lags_s: Mapping[BrokerId, float], **others: Any) -> None:
        """lags_s: seconds that brokers lag behind the controller; others do not."""
        super().__init__(*args, **others)
        self._lags_s = lags_s
        self._past: dict[PartitionId, list[tuple[float, PartitionView]]] = {}
        self._asked = 0

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._note()

    def shown(self, ids: Iterable[PartitionId] | None = None) -> dict[PartitionId, PartitionView]:
        """Placement as the next broker in turn describes it."""
        self._asked += 1
        asked = sorted(self.alive)[self._asked % len(self.alive)]
        at_s = self.now_s - self._lags_s.get(asked, 0.0)
        selected = self.partitions if ids is None else ids
        return {pid: self._as_of(pid, at_s) for pid in selected if pid in self._past}

    def _pass(self, seconds: float, rates: Mapping[tuple[PartitionId, BrokerId], float]) -> None:
        self._note()
        super()._pass(seconds, rates)

    def _note(self) -> None:
        dead = self.dead
        for partition in self.partitions.values():
            view, past = partition.view(dead), self._past.setdefault(partition.id, [])
            if not past or past[-1][1] != view:
                past.append((self.now_s, view))

    def _as_of(self, pid: PartitionId, at_s: float) -> PartitionView:
        past = self._past[pid]
        known = [view for noted_s, view in past if noted_s <= at_s]
        return known[-1] if known else past[0][1]


def check_leaders(cluster: SimulatedCluster, every_s: float) -> None:
    """Elect preferred leaders at intervals, as with `auto.leader.rebalance.enable`."""

    def check() -> None:
        cluster.elect_preferred(cluster.partitions)
        cluster.after(every_s, check)

    cluster.after(every_s, check)


def tide(low: float, high: float, period_s: float) -> Curve:
    """A sine between two rates, bytes per second; each period starts at `low`."""

    def rate(now_s: float) -> float:
        share = (1 - math.cos(2 * math.pi * now_s / period_s)) / 2
        return low + (high - low) * share

    return rate
