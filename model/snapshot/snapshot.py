"""A cluster's state at one moment: brokers, placement and load per partition."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, SerializerFunctionWrapHandler, model_serializer
from pydantic_core import CoreSchema, core_schema

from model.files import FileModel
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.checks import check_snapshot
from model.snapshot.forecast import LoadForecast

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Resource(StrEnum):
    """What a partition loads a broker with."""

    NET_IN = "net_in"
    """Bytes per second from producers; a follower carries them too."""
    NET_OUT = "net_out"
    """Bytes per second to consumers, served by the leader."""
    DISK = "disk"
    """Bytes in local log directories; each replica carries its own."""
    CPU = "cpu"
    """Cores or percent of a broker, as its capacity; followers carry a share."""
    REQUESTS = "requests"
    """Produce and fetch requests per second, served by the leader."""


class Count(StrEnum):
    """What is counted, not measured; every replica or leader counts 1."""

    REPLICAS = "replicas"
    LEADERS = "leaders"
    LEADER_NET_IN = "leader_net_in"
    """Bytes per second from producers to the partitions that a broker leads."""
    TOPIC_REPLICAS = "topic_replicas"
    """Replicas of each topic, spread over the brokers topic by topic."""
    TOPIC_LEADERS = "topic_leaders"
    """Leaders of each topic, spread over the brokers topic by topic."""


Measure = Resource | Count
"""What a goal levels."""


class BrokerState(StrEnum):
    """What may be asked of a broker."""

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
    """Told by its operator to take no new replicas (KIP-1066)."""


TAKING = frozenset({BrokerState.ALIVE, BrokerState.NEW})
"""States in which a broker may take new load."""

LEAVING = frozenset({BrokerState.DRAINING, BrokerState.DEAD})
"""States in which a broker must end with nothing."""


class StorageKind(StrEnum):
    """Where a topic's bytes lie, which decides what a move costs."""

    REPLICATED = "replicated"
    """On the brokers' disks; a move copies every byte."""
    TIERED = "tiered"
    """Older segments in a remote tier (KIP-405); a move copies the local tail."""
    SHARED = "shared"
    """In object storage alone (AutoMQ); a move copies nothing."""


class CapacitySource(StrEnum):
    """Who told what a broker can carry."""

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


class Broker(FileModel):
    """One broker and its limits."""

    id: BrokerId
    rack: str | None = None
    state: BrokerState = BrokerState.ALIVE
    capacity: dict[Resource, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = {}
    """Bytes per second or bytes; a resource that is absent has no known limit."""
    capacity_from: dict[Resource, CapacitySource] = {}
    """Who told each capacity; absent where that is not known. Since 1.2."""
    log_dirs: tuple[LogDir, ...] = ()
    """By path; empty where they are not known or there is only one."""


class Topic(FileModel):
    """What is known of a topic as a whole."""

    name: TopicName
    topic_id: str
    """Kafka's topic id (KIP-516), so that a topic deleted and created again shows."""
    storage: StorageKind = StorageKind.REPLICATED
    internal: bool = False
    """Kafka's, AutoMQ's or plimsoll's own; not for users' records."""
    placement: str = ""
    """The config `confluent.placement.constraints` as it stands; empty where unset or
    unknown. Since 1.4."""

    @model_serializer(mode="wrap")
    def _without_no_placement(
        self, whole: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        document: dict[str, Any] = whole(self)
        if not document["placement"]:
            del document["placement"]
        return document


class RecentMove(FileModel):
    """A move made earlier, for cooldown and no-return."""

    topic: TopicName
    partition: int
    left: tuple[BrokerId, ...]
    """Brokers that the partition left."""
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
    """Share of all loads that it measured; what no source did is estimated or
    unknown."""


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
    """Names of further hours that a plan must be level at, besides now; at most 7."""
    forecast: LoadForecast | None = None
    """Why those hours, and by what; None where there is no history. Since 1.3."""
    sources: tuple[Source, ...] = ()
    recent_moves: tuple[RecentMove, ...] = ()
    racks_unknown: bool = False
    """True where no broker has a rack because the input cannot name any, as the output
    of kafka-topics --describe by itself; False where brokers say that they have none.
    Since 1.4."""

    @model_serializer(mode="wrap")
    def _without_known_racks(
        self, whole: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        document: dict[str, Any] = whole(self)
        if not document["racks_unknown"]:
            del document["racks_unknown"]
        return document


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
    """(n, resources) of the leader: bytes/s or bytes; NaN where unknown."""
    measured: Bools
    """(n, resources) True where measured, False where estimated or unknown."""
    size_bytes: Ints
    """(n,) bytes of the whole log, tier included; -1 where unknown."""
    local_bytes: Ints
    """(n,) bytes in the leader's local log directories; -1 where unknown."""
    slot_loads: Floats | None = None
    """(n, slots, resources) as `loads`, at each of the header's slots; None when it
    names none."""
    replica_dir: Ints | None = None
    """(replicas,) position in its broker's `log_dirs`, -1 where unknown; None where no
    directories are known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionRow:
    """One partition as an object, for edges and words."""

    id: PartitionId
    topic_id: str
    storage: StorageKind
    internal: bool
    replicas: tuple[BrokerId, ...]
    leader: BrokerId
    size_bytes: int
    local_bytes: int

    def bytes_to_copy(self, added: int) -> int | None:
        """Local bytes that so many new replicas copy; None where they are unknown."""
        if not added or self.storage is StorageKind.SHARED:
            return 0
        return added * self.local_bytes if self.local_bytes >= 0 else None


@dataclass(frozen=True)
class Snapshot:
    """One moment of a cluster. Validated once; never changed."""

    header: SnapshotHeader
    partitions: Partitions

    def __post_init__(self) -> None:
        check_snapshot(self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: Any) -> CoreSchema:
        """As in a snapshot file, wherever it is part of what is written."""
        from model.snapshot.file import as_document, of_document

        return core_schema.no_info_plain_validator_function(
            lambda given: given if isinstance(given, cls) else of_document(given),
            serialization=core_schema.plain_serializer_function_ser_schema(as_document),
        )

    def __len__(self) -> int:
        return len(self.partitions.topic)

    @cached_property
    def ids(self) -> tuple[PartitionId, ...]:
        """The partitions in row order."""
        names = [t.name for t in self.header.topics]
        columns = self.partitions
        pairs = zip(columns.topic.tolist(), columns.partition.tolist(), strict=True)
        return tuple(PartitionId(names[t], p) for t, p in pairs)

    @cached_property
    def row_of(self) -> dict[PartitionId, int]:
        """Row number of each partition."""
        return {pid: row for row, pid in enumerate(self.ids)}

    @cached_property
    def broker(self) -> dict[BrokerId, Broker]:
        """Brokers by id."""
        return {b.id: b for b in self.header.brokers}

    def positions_of(self, brokers: Ints) -> Ints:
        """Positions in the header's brokers of known broker ids."""
        ids = np.array([b.id for b in self.header.brokers], np.int64)
        return np.searchsorted(ids, brokers).astype(np.int64)

    @cached_property
    def replica_position(self) -> Ints:
        """(replicas,) where the broker of each stands in the header."""
        return self.positions_of(self.partitions.replica_broker)

    @cached_property
    def _topic_position(self) -> dict[TopicName, int]:
        return {t.name: i for i, t in enumerate(self.header.topics)}

    def find(self, partition: PartitionId) -> int | None:
        """The row of a partition, None where there is none; makes no index of all."""
        columns = self.partitions
        topic = self._topic_position.get(partition.topic)
        if topic is None:
            return None
        start, end = np.searchsorted(columns.topic, [topic, topic + 1]).tolist()
        numbers = columns.partition[start:end]
        at = int(np.searchsorted(numbers, partition.partition))
        found = at < len(numbers) and numbers[at] == partition.partition
        return start + at if found else None

    def id(self, row: int) -> PartitionId:
        """The partition in one row."""
        topic = self.header.topics[int(self.partitions.topic[row])]
        return PartitionId(topic.name, int(self.partitions.partition[row]))

    def replicas(self, row: int) -> tuple[BrokerId, ...]:
        """The replica list of one row, preferred leader first."""
        start, end = self.partitions.replica_start[row : row + 2].tolist()
        return tuple(map(BrokerId, self.partitions.replica_broker[start:end].tolist()))

    def log_dir(self, row: int, index: int) -> str | None:
        """The log directory of a row's replica at one index, None where unknown."""
        columns = self.partitions
        if columns.replica_dir is None:
            return None
        at = int(columns.replica_start[row]) + index
        broker = self.broker[BrokerId(int(columns.replica_broker[at]))]
        number = int(columns.replica_dir[at])
        return broker.log_dirs[number].path if number >= 0 else None

    def row(self, row: int) -> PartitionRow:
        """One row as an object."""
        columns = self.partitions
        topic = self.header.topics[int(columns.topic[row])]
        return PartitionRow(
            id=self.id(row),
            topic_id=topic.topic_id,
            storage=topic.storage,
            internal=topic.internal,
            replicas=self.replicas(row),
            leader=BrokerId(int(columns.leader[row])),
            size_bytes=int(columns.size_bytes[row]),
            local_bytes=int(columns.local_bytes[row]),
        )

    def rows(self) -> Iterator[PartitionRow]:
        """Every row as an object, in row order."""
        return (self.row(i) for i in range(len(self)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over cluster, live brokers and placement; loads do not count."""
        columns = self.partitions
        live = [b.id for b in self.header.brokers if b.state is not BrokerState.DEAD]
        topics = [[t.name, t.topic_id] for t in self.header.topics]
        found = hashlib.sha256(
            json.dumps([self.header.cluster_id, live, topics]).encode()
        )
        for column in (
            columns.topic,
            columns.partition,
            columns.replica_start,
            columns.replica_broker,
            columns.leader,
        ):
            found.update(np.ascontiguousarray(column, "<i8").tobytes())
        return found.hexdigest()


def partitions_from_rows(
    topics: Sequence[Topic],
    rows: Iterable[PartitionRow],
    loads: Floats,
    measured: Bools | None = None,
) -> Partitions:
    """Columns from objects; for tests, files and clusters of ordinary size.

    Parameters
    ----------
    topics
        In the order of the header.
    rows
        Sorted by topic position and partition number.
    loads
        (n, resources) float64, in the order of `rows`.
    measured
        (n, resources); all of the known loads when left out.
    """
    rows = list(rows)
    position = {t.name: i for i, t in enumerate(topics)}
    lengths = [len(r.replicas) for r in rows]
    flat = [b for r in rows for b in r.replicas]
    return Partitions(
        topic=_ints(position[r.id.topic] for r in rows),
        partition=_ints(r.id.partition for r in rows),
        replica_start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        replica_broker=_ints(flat),
        leader=_ints(r.leader for r in rows),
        loads=np.asarray(loads, np.float64),
        measured=~np.isnan(loads) if measured is None else measured,
        size_bytes=_ints(r.size_bytes for r in rows),
        local_bytes=_ints(r.local_bytes for r in rows),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def has_shared(snapshot: Snapshot) -> bool:
    """Whether some topic is in shared storage."""
    return any(t.storage is StorageKind.SHARED for t in snapshot.header.topics)
