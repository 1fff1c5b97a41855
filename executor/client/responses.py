"""What a cluster says about itself and answers to requests, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from model.ids import NO_BROKER, BrokerId, PartitionId


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    """Which cluster it is and who serves."""

    cluster_id: str
    alive: frozenset[BrokerId]
    """Registered and not fenced."""
    racks: Mapping[BrokerId, str] = field(default_factory=dict)
    """Of the brokers that name one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition's placement at one moment, as one broker's metadata show it."""

    id: PartitionId
    topic_id: str
    replicas: tuple[BrokerId, ...]
    """Preferred leader first; old and new ones together while it is being moved."""
    in_sync: frozenset[BrokerId]
    offline: frozenset[BrokerId]
    """Replicas whose broker or directory does not serve."""
    leader: BrokerId
    """NO_BROKER where there is none."""

    @property
    def is_led(self) -> bool:
        """Whether anybody leads it."""
        return self.leader != NO_BROKER


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A reassignment under way."""

    target: tuple[BrokerId, ...]
    """The replica list it ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirView:
    """One log directory of a broker."""

    path: str
    sizes: Mapping[PartitionId, int]
    """Bytes of the replicas asked for; one that is only moving in is left out."""
    coming: Mapping[PartitionId, int]
    """Bytes so far of those that move in from another directory of the broker."""
    usable_bytes: int | None
    """Free for more (KIP-827); None where the broker does not say."""
    offline: bool
    """Its disk has failed."""
    cordoned: bool
    """Takes no new replicas (KIP-1066)."""


class Verdict(Enum):
    """What became of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    """The answer was lost, or does not mention the partition."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer for one partition."""

    verdict: Verdict
    reason: str = ""
    """The broker's words where it refused."""
    by_policy: bool = False
    """Refused as too much at once, or by a policy that somebody has configured."""

    @classmethod
    def accepted(cls) -> Self:
        """The move will be made."""
        return cls(Verdict.ACCEPTED)

    @classmethod
    def refused(cls, reason: str, *, by_policy: bool = False) -> Self:
        """The move will not be made."""
        return cls(Verdict.REFUSED, reason, by_policy)

    @classmethod
    def unknown(cls, reason: str = "no answer came") -> Self:
        """Only a look at the cluster tells."""
        return cls(Verdict.UNKNOWN, reason)
