"""Simulated clusters for tests: of any snapshot, and with loads that rise and fall."""

import math

from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import Curve, SimulatedBroker, SimulatedPartition, steady
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


def tide(low: float, high: float, period_s: float) -> Curve:
    """A sine between two rates, bytes per second; each period starts at `low`."""

    def rate(now_s: float) -> float:
        share = (1 - math.cos(2 * math.pi * now_s / period_s)) / 2
        return low + (high - low) * share

    return rate
