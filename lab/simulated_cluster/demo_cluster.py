"""The initial cluster of `plimsoll demo --simulated`.

Its brokers keep about an hour of data, so that a move takes seconds.
"""

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from lab.simulated_cluster.cluster import SimulatedCluster
from lab.simulated_cluster.cluster_state import Curve, SimulatedBroker, SimulatedPartition
from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.ids import TopicName
from model.snapshot.snapshot import Broker, Floats, Resource, Snapshot, StorageKind, Topic

CLUSTER_ID: Final = "simulated"
RACKS: Final = 3
"""Number of racks, and of replicas of each partition."""
MOST_BROKERS: Final = 60
MOST_PARTITIONS: Final = 20_000
GROWTH: Final = 0.4
"""Standard deviation of the logarithm of the growth per broker."""
KEPT: Final = 1 / 8
"""Data kept, as a share of that of a synthetic cluster."""
MOST_BYTES: Final = 4e9
"""Largest partition, so that no copy takes long, even in a small cluster."""
CPU_PER_BYTE: Final = 1.5e-8
"""Cores per byte/s, in and out."""
CPU_CAPACITY: Final = 8.0
"""Cores."""
CARD_BYTES_PER_S: Final = 625e6
"""Capacity of a broker's network card, in each direction."""

_SUBJECTS: Final = (
    *("audit", "billing", "cart", "catalog", "clicks", "crm", "delivery", "devices"),
    *("fraud", "invoices", "loyalty", "orders", "payments", "prices", "search"),
    *("sessions", "shipping", "stock", "support", "users"),
)
_EVENTS: Final = ("changed", "closed", "created", "enriched", "failed", "raw")


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoClusterOptions:
    """Size and start of the cluster."""

    brokers: int
    """From `RACKS` to `MOST_BROKERS`."""
    seed: int
    now_s: float
    """Seconds since the epoch."""

    @property
    def partitions(self) -> int:
        """Number of partitions; grows with the square of the brokers."""
        return round(MOST_PARTITIONS * (self.brokers / MOST_BROKERS) ** 2)


def initial_snapshot(order: DemoClusterOptions) -> Snapshot:
    """Placement and mean loads; since then, the load of some brokers has grown."""
    shape = ClusterShape(
        brokers=order.brokers,
        partitions=order.partitions,
        rf=RACKS,
        racks=RACKS,
        hot=True,
        young=False,
    )
    name = ClusterName(cluster_id=CLUSTER_ID, taken_at_ms=int(1000 * order.now_s))
    rng = np.random.default_rng(order.seed)
    placed = cluster(shape, StorageKind.REPLICATED, name, rng)
    grown = np.exp(rng.normal(0.0, GROWTH, order.brokers))
    columns = placed.partitions
    loads = np.rint(columns.loads * grown[columns.leader][:, None])
    return _scaled_down(placed, loads)


def simulated(of: Snapshot, rates: list[float]) -> SimulatedCluster:
    """Create the cluster of a snapshot.

    rates: produce rate by row, bytes/s; read with every step, so the caller may change
    it between steps.
    """
    return SimulatedCluster(
        of.header.cluster_id,
        (
            SimulatedBroker(id=b.id, rack=b.rack, network_bytes_per_s=CARD_BYTES_PER_S)
            for b in of.header.brokers
        ),
        (
            # Older data is deleted on every replica.
            SimulatedPartition.of(row, _curve(rates, number), row.size_bytes)
            for number, row in enumerate(of.rows())
        ),
        now_s=of.header.taken_at_ms / 1000,
        tick_s=math.inf,
    )


def _curve(rates: list[float], row: int) -> Curve:
    return lambda _: rates[row]


def _scaled_down(of: Snapshot, loads: Floats) -> Snapshot:
    """Reduce the data on disks, and add CPU and readable topic names."""
    header = of.header
    disk = np.rint(np.minimum(KEPT * loads[:, 2], MOST_BYTES))
    cpu = CPU_PER_BYTE * (loads[:, 0] + loads[:, 1])
    loads = np.column_stack([loads[:, :2], disk, cpu])
    sizes = disk.astype(np.int64)
    update = {
        "brokers": tuple(map(_broker, header.brokers)),
        "topics": _named(header.topics),
        "resources": (*header.resources, Resource.CPU),
    }
    columns = replace(
        of.partitions,
        loads=loads,
        measured=np.ones(loads.shape, np.bool_),
        size_bytes=sizes,
        local_bytes=sizes,
    )
    return Snapshot(header.model_copy(update=update), columns)


def _broker(of: Broker) -> Broker:
    disk = KEPT * of.capacity[Resource.DISK]
    own = {Resource.DISK: disk, Resource.CPU: CPU_CAPACITY}
    return of.model_copy(update={"capacity": of.capacity | own})


def _named(topics: tuple[Topic, ...]) -> tuple[Topic, ...]:
    """Name topics by two words, with a number if these run out."""
    words = [f"{subject}.{event}" for event in _EVENTS for subject in _SUBJECTS]
    rounds = range(1, 2 + len(topics) // len(words))
    names = [w if number == 1 else f"{w}.v{number}" for number in rounds for w in words]
    pairs = zip(topics, sorted(names[: len(topics)]), strict=True)
    return tuple(t.model_copy(update={"name": TopicName(name)}) for t, name in pairs)
