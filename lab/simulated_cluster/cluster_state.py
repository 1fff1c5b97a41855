"""State of a simulated cluster: brokers, partitions and copies."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from executor.client.responses import PartitionView
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.snapshot.snapshot import PartitionRow, StorageKind

Curve = Callable[[float], float]
"""A rate in bytes per second at a time in seconds since the epoch."""

CORDONED: Final = "cordoned.log.dirs"
_ROUNDING: Final = 0.5
"""Missing bytes up to which a copy counts as complete."""


@dataclass(slots=True, kw_only=True)
class DirectoryCopy:
    """A copy of a replica into another directory of its broker."""

    path: str
    copied: float = 0.0
    """Bytes."""


@dataclass(slots=True, kw_only=True)
class SimulatedBroker:
    """One broker with its disks, network card and settings."""

    id: BrokerId
    rack: str | None = None
    log_dirs: tuple[str, ...] = ("/data",)
    failed_dirs: set[str] = field(default_factory=set)
    """Log directories whose disk has failed (KIP-112)."""
    disk_bytes: float = math.inf
    """Capacity of the disk of each log directory."""
    network_bytes_per_s: float = 125e6
    """Capacity of its network card, in each direction."""
    alive: bool = True
    configs: dict[str, str] = field(default_factory=dict)
    copies: dict[PartitionId, DirectoryCopy] = field(default_factory=dict)
    """Copies between its directories, in the order of the requests."""
    requested_dirs: dict[PartitionId, str] = field(default_factory=dict)
    """Requested directories of future replicas; lost on a restart."""

    def is_cordoned(self, path: str) -> bool:
        """Whether a log directory takes no new replicas (KIP-1066)."""
        return {"*", path} & {*self.configs.get(CORDONED, "").split(",")} != set()


@dataclass(slots=True, kw_only=True)
class SimulatedPartition:
    """One partition; replicas other than the leader may lack the end of its log."""

    id: PartitionId
    topic_id: str
    storage: StorageKind
    replicas: list[BrokerId]
    leader: BrokerId
    bytes_in: Curve
    log_bytes: float
    """Bytes ever written to the leader's log."""
    tail_bytes: float = math.inf
    """Bytes at the end of the log on local disks, which a new replica copies."""
    in_sync: set[BrokerId] = field(default_factory=set)
    held: dict[BrokerId, float] = field(default_factory=dict)
    """End of each replica's copy, in bytes of the log."""
    dirs: dict[BrokerId, str] = field(default_factory=dict)
    """Log directories of replicas; by default the first one of the broker."""
    failed: set[BrokerId] = field(default_factory=set)
    """Live brokers on which the log directory of the replica has failed."""
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    opens_at_s: float | None = None
    """When a broker has opened the partition from object storage."""

    def __post_init__(self) -> None:
        self.in_sync = self.in_sync or set(self.replicas)
        for broker in self.replicas:
            self.held.setdefault(broker, self.log_bytes)

    @classmethod
    def of(cls, row: PartitionRow, bytes_in: Curve, tail_bytes: float) -> "SimulatedPartition":
        """Create the partition of a snapshot's row, without what the row does not have."""
        return cls(
            id=row.id,
            topic_id=row.topic_id,
            storage=row.storage,
            replicas=list(row.replicas),
            leader=row.leader,
            bytes_in=bytes_in,
            log_bytes=float(max(0, row.size_bytes)),
            tail_bytes=float(max(0, tail_bytes)),
        )

    @property
    def is_moving(self) -> bool:
        """Whether Kafka would list a reassignment in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> list[BrokerId]:
        """Replica list after the reassignment."""
        return [b for b in self.replicas if b not in self.removing]

    @property
    def start(self) -> float:
        """Start of a new replica, in bytes of the log."""
        return max(0.0, self.log_bytes - self.tail_bytes)

    def bytes_on(self, broker: BrokerId) -> float:
        """Bytes of a replica on its disk."""
        return max(0.0, self.held[broker] - self.start)

    def lags(self, broker: BrokerId) -> float:
        """Bytes that a replica is behind the leader."""
        missing = self.log_bytes - self.held[broker]
        return missing if missing > _ROUNDING else 0.0

    def view(self, dead: frozenset[BrokerId]) -> PartitionView:
        """The partition as metadata describe it."""
        return PartitionView(
            id=self.id,
            topic_id=self.topic_id,
            replicas=tuple(self.replicas),
            in_sync=frozenset(self.in_sync),
            offline=(dead | self.failed).intersection(self.replicas),
            leader=self.leader,
        )

    def elect(self, alive: frozenset[BrokerId], preferred: bool = False) -> None:
        """Elect a leader among the live in-sync replicas, if there are any.

        preferred: elect the first replica, or nothing changes.
        """
        can = [b for b in self.replicas if b in self.in_sync and b in alive - self.failed]
        if preferred and can[:1] != self.replicas[:1]:
            return
        if preferred or self.leader not in can:
            self.leader = can[0] if can else NO_BROKER


def steady(rate: float) -> Curve:
    """A constant rate, bytes per second."""
    return lambda _: rate
