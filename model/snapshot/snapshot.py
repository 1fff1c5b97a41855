"""A cluster's state at one moment: brokers, placement and load per partition."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.checks import check_snapshot
from model.snapshot.snapshot_parts import (
    LEADERLESS,
    LEAVING,
    TAKING,
    Bools,
    Broker,
    BrokerState,
    CapacitySource,
    Count,
    Floats,
    Ints,
    LogDir,
    Measure,
    Partitions,
    RecentMove,
    Resource,
    SnapshotHeader,
    Source,
    StorageKind,
    Topic,
    dimension_words,
    in_words,
    partition_id,
    replica_list,
)

__all__ = [
    "LEADERLESS",
    "LEAVING",
    "TAKING",
    "Bools",
    "Broker",
    "BrokerState",
    "CapacitySource",
    "Count",
    "Floats",
    "Ints",
    "LogDir",
    "Measure",
    "PartitionRow",
    "Partitions",
    "RecentMove",
    "Resource",
    "Snapshot",
    "SnapshotHeader",
    "Source",
    "StorageKind",
    "Topic",
    "dimension_words",
    "has_shared",
    "in_words",
    "partitions_from_rows",
]


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
        """Local bytes that `added` new replicas copy in total; None if the size is unknown.

        0 in shared storage and without new replicas, even if the size is unknown.
        """
        if not added or self.storage is StorageKind.SHARED:
            return 0
        return added * self.local_bytes if self.local_bytes >= 0 else None


@dataclass(frozen=True)
class Snapshot:
    """One moment of a cluster. Validated once; never changed."""

    header: SnapshotHeader
    partitions: Partitions

    def __post_init__(self) -> None:
        check_snapshot(self.header, self.partitions)

    def __len__(self) -> int:
        return len(self.partitions.topic)

    @cached_property
    def ids(self) -> tuple[PartitionId, ...]:
        """The topic and number of each partition, in row order."""
        names = [t.name for t in self.header.topics]
        columns = self.partitions
        pairs = zip(columns.topic.tolist(), columns.partition.tolist(), strict=True)
        return tuple(PartitionId(names[t], p) for t, p in pairs)

    @cached_property
    def row_of(self) -> dict[PartitionId, int]:
        """Row number of each partition; builds an index of all, unlike `find`."""
        return {pid: row for row, pid in enumerate(self.ids)}

    @cached_property
    def broker(self) -> dict[BrokerId, Broker]:
        """The header's brokers by id."""
        return {b.id: b for b in self.header.brokers}

    def in_state(self, states: Collection[BrokerState]) -> Bools:
        """(brokers,) True for the header's brokers that are in one of these states."""
        return np.array([b.state in states for b in self.header.brokers], np.bool_)

    @cached_property
    def replica_counts(self) -> Ints:
        """(n,) number of replicas of each row."""
        return np.diff(self.partitions.replica_start)

    @cached_property
    def replica_row(self) -> Ints:
        """(replicas,) the row of each replica."""
        return np.repeat(np.arange(len(self)), self.replica_counts)

    def positions_of(self, brokers: Ints) -> Ints:
        """Positions in the header's brokers of an array of broker ids, in its shape.

        Precondition: the header lists every id. Others, -1 for no leader too, give a wrong
        position.
        """
        ids = np.array([b.id for b in self.header.brokers], np.int64)
        return np.searchsorted(ids, brokers).astype(np.int64)

    @cached_property
    def replica_position(self) -> Ints:
        """(replicas,) position in the header's brokers of each replica's broker, in row order."""
        return self.positions_of(self.partitions.replica_broker)

    @cached_property
    def in_failed_dir(self) -> Bools:
        """(replicas,) True where the log directory of a replica has failed, in row order."""
        failed = [(b.id, d.path) for b in self.header.brokers for d in b.log_dirs if d.failed]
        return self.in_dirs(failed)

    def in_dirs(self, places: Collection[tuple[BrokerId, str]]) -> Bools:
        """(replicas,) True for replicas in these directories, by broker and path, in row order."""
        dirs, found = self.partitions.replica_dir, np.zeros(len(self.replica_row), np.bool_)
        if dirs is None or not places:
            return found
        for at, broker in enumerate(self.header.brokers):
            for number, entry in enumerate(broker.log_dirs):
                if (broker.id, entry.path) in places:
                    found |= (self.replica_position == at) & (dirs == number)
        return found

    @cached_property
    def _topic_position(self) -> dict[TopicName, int]:
        return {t.name: i for i, t in enumerate(self.header.topics)}

    def find(self, partition: PartitionId) -> int | None:
        """Row number of a partition, None if there is none; builds no index of all."""
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
        """The topic and number of the partition in one row."""
        return partition_id(self.header, self.partitions, row)

    def replicas(self, row: int) -> tuple[BrokerId, ...]:
        """The broker ids (not positions) of one row's replicas, preferred leader first."""
        return replica_list(self.partitions, row)

    def log_dirs(self, row: int) -> dict[BrokerId, str | None]:
        """Path of the log directory of each replica of a row, in order; None where unknown."""
        columns, brokers = self.partitions, self.replicas(row)
        if columns.replica_dir is None:
            return dict.fromkeys(brokers)
        start, end = columns.replica_start[row : row + 2].tolist()
        pairs = zip(brokers, columns.replica_dir[start:end].tolist(), strict=True)
        return {b: self.broker[b].log_dirs[at].path if at >= 0 else None for b, at in pairs}

    def lost_on(self, row: int) -> frozenset[BrokerId]:
        """Brokers on which the log directory of a row's replica has failed."""
        start, end = self.partitions.replica_start[row : row + 2].tolist()
        lost = self.in_failed_dir[start:end].tolist()
        return frozenset(b for b, gone in zip(self.replicas(row), lost, strict=True) if gone)

    def row(self, row: int) -> PartitionRow:
        """Build an object with the placement and sizes of one row."""
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
        """Yield every row as an object, in row order."""
        return (self.row(i) for i in range(len(self)))

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 in hex over cluster id, live brokers, topics and placement.

        Loads do not count: a plan fits as long as the placement is the same.
        """
        columns = self.partitions
        live = [b.id for b in self.header.brokers if b.state is not BrokerState.DEAD]
        topics = [[t.name, t.topic_id] for t in self.header.topics]
        found = hashlib.sha256(json.dumps([self.header.cluster_id, live, topics]).encode())
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
    topics: Sequence[Topic], rows: Iterable[PartitionRow], loads: Floats
) -> Partitions:
    """Columns from objects; for tests, files and clusters of ordinary size.

    topics: in the order of the header. rows: sorted by topic position and partition number. loads:
    (n, resources) float64, in the order of `rows`, NaN where unknown; all others count as measured.
    The result has no slot loads and no log directories.

    Raises KeyError: a row's topic is not in `topics`. `Snapshot` checks the rest.
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
        measured=~np.isnan(loads),
        size_bytes=_ints(r.size_bytes for r in rows),
        local_bytes=_ints(r.local_bytes for r in rows),
    )


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def has_shared(snapshot: Snapshot) -> bool:
    """Whether any topic is in shared storage (AutoMQ)."""
    return any(t.storage is StorageKind.SHARED for t in snapshot.header.topics)
