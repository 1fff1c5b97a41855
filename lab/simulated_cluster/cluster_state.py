"""What a simulated cluster holds: brokers, partitions and their copies."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from executor.client.responses import PartitionView
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.snapshot.snapshot import StorageKind

Curve = Callable[[float], float]
"""A rate in bytes per second at a time in seconds since the epoch."""

_ROUNDING: Final = 0.5
"""Bytes within which a copy counts as whole."""


@dataclass(slots=True, kw_only=True)
class DirectoryCopy:
    """A replica on its way into another directory of its broker."""

    path: str
    copied: float = 0.0
    """Bytes."""


@dataclass(slots=True, kw_only=True)
class SimulatedBroker:
    """One broker and what it has."""

    id: BrokerId
    rack: str | None = None
    log_dirs: tuple[str, ...] = ("/data",)
    disk_bytes: float = math.inf
    """Of the disk of each log directory."""
    network_bytes_per_s: float = 125e6
    """Of its card, in and out each."""
    alive: bool = True
    configs: dict[str, str] = field(default_factory=dict)
    copies: dict[PartitionId, DirectoryCopy] = field(default_factory=dict)
    """Between its directories, in the order in which they were asked for."""
    requested_dirs: dict[PartitionId, str] = field(default_factory=dict)
    """Of replicas that it has not yet; in memory alone."""


@dataclass(slots=True, kw_only=True)
class SimulatedPartition:
    """One partition; the leader's log is whole, others may lack the end of it."""

    id: PartitionId
    topic_id: str
    storage: StorageKind
    replicas: list[BrokerId]
    leader: BrokerId
    bytes_in: Curve
    log_bytes: float
    """Of the leader, ever growing."""
    tail_bytes: float = math.inf
    """At the end of the log, what is on local disks and a new replica has to copy."""
    in_sync: set[BrokerId] = field(default_factory=set)
    held: dict[BrokerId, float] = field(default_factory=dict)
    """How far each replica's copy reaches into the log, in bytes."""
    dirs: dict[BrokerId, str] = field(default_factory=dict)
    """Log directories of replicas; the first of their broker where none is named."""
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    opens_at_s: float | None = None
    """When the only replica, in object storage, has been opened by its broker."""

    def __post_init__(self) -> None:
        self.in_sync = self.in_sync or set(self.replicas)
        for broker in self.replicas:
            self.held.setdefault(broker, self.log_bytes)

    @property
    def is_moving(self) -> bool:
        """Whether a reassignment is under way, as Kafka lists it."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> list[BrokerId]:
        """The replica list that a reassignment ends with."""
        return [b for b in self.replicas if b not in self.removing]

    @property
    def start(self) -> float:
        """Where a new replica begins, in bytes from the beginning of the log."""
        return max(0.0, self.log_bytes - self.tail_bytes)

    def bytes_on(self, broker: BrokerId) -> float:
        """What a replica takes of its disk."""
        return max(0.0, self.held[broker] - self.start)

    def lags(self, broker: BrokerId) -> float:
        """Bytes that a replica still lacks."""
        missing = self.log_bytes - self.held[broker]
        return missing if missing > _ROUNDING else 0.0

    def view(self, dead: frozenset[BrokerId]) -> PartitionView:
        """As metadata show it."""
        return PartitionView(
            id=self.id,
            topic_id=self.topic_id,
            replicas=tuple(self.replicas),
            in_sync=frozenset(self.in_sync),
            offline=dead.intersection(self.replicas),
            leader=self.leader,
        )

    def elect(self, alive: frozenset[BrokerId], preferred: bool = False) -> None:
        """Choose a leader among the replicas in sync; nobody where none serves."""
        can = [b for b in self.replicas if b in self.in_sync and b in alive]
        if preferred and can[:1] != self.replicas[:1]:
            return
        if preferred or self.leader not in can:
            self.leader = can[0] if can else NO_BROKER


def steady(rate: float) -> Curve:
    """A constant rate, bytes per second."""
    return lambda _: rate


def tide(low: float, high: float, period_s: float) -> Curve:
    """A sine between two rates, bytes per second; each period starts at `low`."""

    def rate(now_s: float) -> float:
        share = (1 - math.cos(2 * math.pi * now_s / period_s)) / 2
        return low + (high - low) * share

    return rate
