"""What a cluster reports, and its responses to requests, as values."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from model.errors import ClusterUnreachable
from model.ids import NO_BROKER, BrokerId, PartitionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """A cluster and its live brokers."""

    cluster_id: str
    alive: frozenset[BrokerId]
    """Registered and not fenced."""
    racks: Mapping[BrokerId, str] = field(default_factory=dict)
    """By broker that has a rack."""

    @property
    def any_alive(self) -> BrokerId:
        """A live broker, the same each time; raises ClusterUnreachable without one."""
        if not self.alive:
            raise ClusterUnreachable("All brokers of the cluster are fenced; check their logs.")
        return min(self.alive)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition's placement, as one broker's metadata show it."""

    id: PartitionId
    topic_id: str
    replicas: tuple[BrokerId, ...]
    """Preferred leader first; old and new replicas together during a reassignment."""
    in_sync: frozenset[BrokerId]
    offline: frozenset[BrokerId]
    """Replicas whose broker or log directory is down."""
    leader: BrokerId
    """NO_BROKER without a leader."""

    @property
    def is_led(self) -> bool:
        """Whether the partition has a leader."""
        return self.leader != NO_BROKER


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirView:
    """One log directory of a broker."""

    path: str
    sizes: Mapping[PartitionId, int]
    """Bytes of each requested replica in use; future replicas are left out."""
    coming: Mapping[PartitionId, int]
    """Bytes so far of replicas being copied from another directory of the broker."""
    usable_bytes: int | None
    """Free bytes (KIP-827); None where the broker does not report them."""
    offline: bool
    """Whether its disk has failed."""
    cordoned: bool
    """Whether it takes no new replicas (KIP-1066)."""


def by_leader(views: Iterable[PartitionView]) -> dict[BrokerId, list[PartitionId]]:
    """Partitions by leader, without those that have none."""
    found: dict[BrokerId, list[PartitionId]] = {}
    for view in views:
        if view.is_led:
            found.setdefault(view.leader, []).append(view.id)
    return found


class ResponseStatus(Enum):
    """The outcome of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The answer was lost, or does not mention the partition."""


@dataclass(frozen=True, slots=True)
class PartitionResponse:
    """The response for one partition."""

    status: ResponseStatus
    reason: str = ""
    """The broker's message where it refused."""
    by_policy: bool = False
    """Whether the request was too large, or violates a configured policy."""

    @classmethod
    def accepted(cls) -> Self:
        """The change will be made."""
        return cls(ResponseStatus.ACCEPTED)

    @classmethod
    def refused(cls, reason: str, *, by_policy: bool = False) -> Self:
        """The change will not be made."""
        return cls(ResponseStatus.REFUSED, reason, by_policy)

    @classmethod
    def unknown(cls) -> Self:
        """Only polling the cluster shows whether the change is made."""
        return cls(ResponseStatus.UNKNOWN)
