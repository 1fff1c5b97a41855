"""The parts of a snapshot: brokers, topics and sources, and columns per partition."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from model.cpu import in_cores
from model.files import FileModel, unless_empty, unless_none
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.forecast import LoadForecast

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Resource(StrEnum):
    """A resource of a broker that partitions load."""

    NET_IN = "net_in"
    """Bytes per second from producers; a follower carries them too."""
    NET_OUT = "net_out"
    """Bytes per second to consumers, served by the leader."""
    DISK = "disk"
    """Bytes in local log directories; each replica carries its own."""
    CPU = "cpu"
    """Cores; followers carry a share."""
    REQUESTS = "requests"
    """Produce and fetch requests per second, served by the leader."""

    @property
    def words(self) -> str:
        """As screens name it: `bytes in`."""
        return {Resource.NET_IN: "bytes in", Resource.NET_OUT: "bytes out"}.get(self, self.value)


def dimension_words(dimension: str) -> str:
    """A measure in words, `bytes in`, or one in a time slot, `bytes in @3`."""
    measure, at, slot = dimension.partition("@")
    name = measure
    if measure in list(Resource):
        name = Resource(measure).words
    elif measure in list(Count):
        name = Count(measure).words
    return f"{name} @{slot}" if at else name


_KEYS: Final = re.compile(
    r"(?<![\w.-])((?:leader_|potential_)?net_(?:in|out)|topic_(?:replicas|leaders))(?![\w-]|\.\w)(@?)"
)
_WHOLE: Final = re.compile(r"(?<=\d)\.0 %")


def in_words(text: str) -> str:
    """A sentence kept in a file as it is shown: `12.0 % in net_in` becomes `12 % in bytes in`.

    Files keep the measures' keys and every decimal, so that equal plans keep equal bytes. Names of
    topics are not changed.
    """
    named = _KEYS.sub(lambda key: dimension_words(key[1]) + (" @" if key[2] else ""), text)
    return _WHOLE.sub(" %", named)


class Count(StrEnum):
    """What follows from the placement; mostly, every replica or leader counts 1."""

    REPLICAS = "replicas"
    LEADERS = "leaders"
    LEADER_NET_IN = "leader_net_in"
    """Bytes per second from producers to the partitions that a broker leads."""
    POTENTIAL_NET_OUT = "potential_net_out"
    """Bytes per second that a broker would send if it led every partition it has a replica of
    (Cruise Control's `PotentialNwOutGoal`)."""
    TOPIC_REPLICAS = "topic_replicas"
    """Replicas of each topic, spread over the brokers topic by topic."""
    TOPIC_LEADERS = "topic_leaders"
    """Leaders of each topic, spread over the brokers topic by topic."""

    @property
    def words(self) -> str:
        """As screens name it: `leader bytes in`."""
        names = {
            Count.LEADER_NET_IN: "leader bytes in",
            Count.POTENTIAL_NET_OUT: "potential bytes out",
            Count.TOPIC_REPLICAS: "topic replicas",
            Count.TOPIC_LEADERS: "topic leaders",
        }
        return names.get(self, self.value)

    @property
    def resource(self) -> Resource | None:
        """The resource whose loads it adds up; None where every replica or leader counts 1."""
        match self:
            case Count.LEADER_NET_IN:
                return Resource.NET_IN
            case Count.POTENTIAL_NET_OUT:
                return Resource.NET_OUT
            case _:
                return None


Measure = Resource | Count
"""A quantity that a goal balances over the brokers."""


class BrokerState(StrEnum):
    """The state of a broker: whether it may keep load and take new load."""

    ALIVE = "alive"
    NEW = "new"
    """Alive, and lately added: expected to hold little yet."""
    DRAINING = "draining"
    """Ends with nothing; takes no new load."""
    DEAD = "dead"
    """Not registered or fenced; takes no new load."""
    EXCLUDED = "excluded"
    """Keeps what it has; takes no new load."""
    SLOW = "slow"
    """Answers late: may lose load, takes none until it recovers."""
    CORDONED = "cordoned"
    """Cordoned by its operator: takes no new replicas (KIP-1066)."""
    DEMOTED = "demoted"
    """Keeps its replicas; leads nothing that another replica can lead; takes no new load."""
    MAINTENANCE = "maintenance"
    """As `demoted`, since it is about to be stopped for a while."""

    @property
    def words(self) -> str:
        """What a broker is: `draining`, `in maintenance`."""
        return "in maintenance" if self is BrokerState.MAINTENANCE else str(self)


TAKING = frozenset({BrokerState.ALIVE, BrokerState.NEW})
"""States in which a broker may take new load."""

LEAVING = frozenset({BrokerState.DRAINING, BrokerState.DEAD})
"""States in which a broker must end with nothing."""

LEADERLESS = frozenset({BrokerState.DEMOTED, BrokerState.MAINTENANCE})
"""States in which a broker keeps replicas, but leads nothing that another replica can lead."""


class StorageKind(StrEnum):
    """Where a topic's bytes lie, which decides what a move costs."""

    REPLICATED = "replicated"
    """On the brokers' disks; a move copies every byte."""
    TIERED = "tiered"
    """Older segments in a remote tier (KIP-405); a move copies the local tail."""
    SHARED = "shared"
    """In object storage alone (AutoMQ); a move copies nothing."""


class CapacitySource(StrEnum):
    """The source of a broker's capacity."""

    FILE = "capacity file"
    """Cruise Control's, given by the operator."""
    SETTINGS = "settings"
    """`[capacities]`, given by the operator."""
    LOG_DIRS = "log directories"
    """The broker itself: the bytes of its disks (KIP-827)."""


class LogDir(FileModel):
    """One of a broker's log directories (JBOD)."""

    path: str
    capacity_bytes: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """None where unknown; the broker's directories then count as equal."""
    cordoned: bool = False
    """Takes no new replicas (KIP-1066)."""
    failed: Annotated[bool, unless_empty] = False
    """Its disk cannot be read or written (KIP-112); replicas in it must leave the broker. Since
    1.5."""


class Broker(FileModel):
    """One broker: id, rack, state, capacities and log directories."""

    id: BrokerId
    rack: str | None = None
    state: BrokerState = BrokerState.ALIVE
    capacity: Annotated[
        dict[Resource, Annotated[float, Field(gt=0, allow_inf_nan=False)]], *in_cores
    ] = {}
    """Bytes/s, bytes, or cores (in files percent of one core); a resource that is
    absent has no known limit."""
    capacity_from: dict[Resource, CapacitySource] = {}
    """The source of each capacity; absent where unknown. Since 1.2."""
    log_dirs: tuple[LogDir, ...] = ()
    """By path; empty where they are not known or there is only one."""

    @property
    def disk_failed(self) -> bool:
        """Whether at least one of its log directories has failed."""
        return any(directory.failed for directory in self.log_dirs)


class Topic(FileModel):
    """What all partitions of a topic share: name, id, storage and placement."""

    name: TopicName
    topic_id: str
    """Kafka's topic id (KIP-516), so that a topic deleted and created again shows."""
    storage: StorageKind = StorageKind.REPLICATED
    internal: bool = False
    """Kafka's, AutoMQ's or plimsoll's own; not for users' records."""
    placement: Annotated[str, unless_empty] = ""
    """The config `confluent.placement.constraints` as it stands; empty where unset or
    unknown. Since 1.4."""


class RecentMove(FileModel):
    """A move made earlier, for cooldown and no-return."""

    topic: TopicName
    partition: int
    left: tuple[BrokerId, ...]
    """Brokers that the partition left."""
    leader_left: Annotated[BrokerId | None, unless_none] = None
    """The broker that led before and still holds a replica; None where there is none, or where
    nothing says so. Since 1.6."""
    at_ms: int
    """When the move ended, milliseconds since the epoch."""


class Source(FileModel):
    """Where the loads of a snapshot come from, and how good they are."""

    name: str
    """`probe`, `file`, or a metrics reporter: `automq`, ..."""
    newest_sample_ms: int
    """Time of the newest sample behind any load."""
    window_s: float
    """Span of time that the loads are averaged over."""
    samples: int
    """Samples behind all loads together."""
    measured_share: float
    """Share of all loads that it measured; what no source did is estimated or unknown."""


class SnapshotHeader(FileModel):
    """All of a snapshot but its columns."""

    cluster_id: str
    taken_at_ms: int
    brokers: tuple[Broker, ...]
    """By id."""
    topics: tuple[Topic, ...]
    """By name; columns refer to them by position."""
    resources: tuple[Resource, ...]
    """The columns of `loads`, in order."""
    slots: tuple[str, ...] = ()
    """Names of further hours that a plan must balance besides now; at most 7."""
    forecast: LoadForecast | None = None
    """Why those hours, and by what; None where there is no history. Since 1.3."""
    sources: tuple[Source, ...] = ()
    recent_moves: tuple[RecentMove, ...] = ()
    racks_unknown: Annotated[bool, unless_empty] = False
    """True where no broker has a rack because the input cannot name any, as the output of
    kafka-topics --describe by itself; False where brokers say that they have none. Since 1.4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitions:
    """Columns, one row per partition, sorted by topic position and number."""

    topic: Ints
    """(n,) position in `SnapshotHeader.topics`."""
    partition: Ints
    """(n,) Kafka's partition number."""
    replica_start: Ints
    """(n + 1,) where each row's replicas begin in `replica_broker`."""
    replica_broker: Ints
    """(replicas,) broker ids, each row's preferred leader first."""
    leader: Ints
    """(n,) broker id, -1 for none."""
    loads: Floats
    """(n, resources) of the leader: bytes/s, bytes, cores or requests/s; NaN where unknown."""
    measured: Bools
    """(n, resources) True where measured, False where estimated or unknown."""
    size_bytes: Ints
    """(n,) bytes of the whole log, tier included; -1 where unknown."""
    local_bytes: Ints
    """(n,) bytes in the leader's local log directories; -1 where unknown."""
    slot_loads: Floats | None = None
    """(n, slots, resources) as `loads`, at each of the header's slots; None when it names none."""
    replica_dir: Ints | None = None
    """(replicas,) position in its broker's `log_dirs`, -1 where unknown; None where no
    directories are known."""


def partition_id(header: SnapshotHeader, partitions: Partitions, row: int) -> PartitionId:
    """The topic and number of the partition in one row."""
    topic = header.topics[int(partitions.topic[row])]
    return PartitionId(topic.name, int(partitions.partition[row]))


def replica_list(partitions: Partitions, row: int) -> tuple[BrokerId, ...]:
    """The broker ids of one row's replicas, preferred leader first."""
    start, end = partitions.replica_start[row : row + 2].tolist()
    return tuple(map(BrokerId, partitions.replica_broker[start:end].tolist()))
