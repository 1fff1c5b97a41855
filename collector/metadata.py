"""Brokers, topics and placement of a cluster from its metadata, without loads."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from operator import itemgetter
from typing import Any, Final

import numpy as np

from clients.admin_connection import AdminConnection
from clients.connection import Connection
from collector.brokers.failover import AnyBroker
from collector.brokers.reassignments import ReassignmentPoll
from collector.brokers.requests import EncodedRequest
from collector.rights import configs_of, refuse_hidden_topics
from model.closing import Closing
from model.goals.topic_placement import CONFIG
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.replication import MOST_LISTED, Replication
from model.snapshot.snapshot import Bools, Broker, BrokerState, Ints, StorageKind, Topic

CONFIG_AGE_S: Final = 30.0
"""Topic configs are asked for again after this, or when a new topic appears."""
_DESCRIBE: Final = "DESCRIBE on the cluster"
READ: Final = "READ"
_TIER: Final = "remote.storage.enable"
_MIN_ISR: Final = "min.insync.replicas"
_AUTOMQ_FEATURE: Final = "automq.version"
_AUTOMQ_CONFIG: Final = "elasticstream.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """Placement at one moment; columns with one row per partition.

    Rows are sorted by topic position and partition number, like a snapshot's.
    """

    cluster_id: str
    taken_at_ms: int
    brokers: tuple[Broker, ...]
    """By id; those that only stand in replica lists are dead."""
    topics: tuple[Topic, ...]
    """By name."""
    topic: Ints
    """(n,) position in `topics`."""
    partition: Ints
    """(n,) Kafka's partition number."""
    replica_start: Ints
    """(n + 1,) where each row's replicas begin in `replica_broker`."""
    replica_broker: Ints
    """(replicas,) broker ids, each row's preferred leader first."""
    leader: Ints
    """(n,) broker id, -1 for none."""
    in_sync: Ints
    """(n,) how many replicas are in sync."""
    moving: Bools
    """(n,) True if a reassignment is in progress."""
    adding: Ints
    """(n,) how many of the replicas a reassignment adds, or has lately added."""
    may_describe: bool
    """Whether the user may see sizes and all groups (DESCRIBE on CLUSTER)."""
    offline: Bools | None = None
    """(replicas,) True for replicas that their live or dead broker cannot use; None where
    brokers do not report it."""
    replica_dir: Ints | None = None
    """(replicas,) as in a snapshot; None until brokers report several directories."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """By topic whose records the user may not read: the right that is missing."""
    min_isr: Mapping[str, int] = field(default_factory=dict)
    """`min.insync.replicas` by topic; 1 where absent."""

    def __len__(self) -> int:
        return len(self.topic)

    @property
    def internal(self) -> Bools:
        """(n,) True for partitions of Kafka's, AutoMQ's or plimsoll's own topics."""
        internal: Bools = np.array([t.internal for t in self.topics], np.bool_)
        return internal[self.topic]

    @property
    def replication(self) -> Replication:
        """Count the under-replicated partitions and those without a leader."""
        led = self.leader >= 0
        replicas = np.diff(self.replica_start) - self.adding
        behind = self.in_sync < replicas
        least = np.array([self.min_isr.get(t.name, 1) for t in self.topics], np.int64)
        # A topic may ask for more than it has; then it is below at all times.
        below = led & (self.in_sync < np.minimum(least[self.topic], replicas))
        return Replication(
            under_replicated=int((led & behind).sum()),
            offline=int((~led).sum()),
            behind_ids=self._ids(led & behind),
            offline_ids=self._ids(~led),
            below_min_isr=int(below.sum()),
            below_ids=self._ids(below),
            behind_of=self._counts(behind),
            moving=int(self.moving.sum()),
        )

    def _counts(self, rows: Bools) -> tuple[tuple[TopicName, int], ...]:
        """The topics of partitions of which `rows`, (n,), is True, and how many they have."""
        topics, counts = np.unique(self.topic[rows], return_counts=True)
        found = zip(topics.tolist(), counts.tolist(), strict=True)
        return tuple((self.topics[at].name, count) for at, count in found)

    def _ids(self, rows: Bools) -> tuple[PartitionId, ...]:
        """The first partitions of which `rows`, (n,), is True."""
        return tuple(
            PartitionId(self.topics[self.topic[row]].name, int(self.partition[row]))
            for row in np.flatnonzero(rows)[:MOST_LISTED].tolist()
        )


class ClusterReader(Closing):
    """Reads `ClusterState`s over one connection; one thread owns it."""

    def __init__(
        self,
        connection: Connection,
        clock: Callable[[], float] = time.time,
        *,
        spared: Collection[str] = (),
    ) -> None:
        """spared: topics that may be hidden without an error, as plimsoll can do without them."""
        self._client = AdminConnection(connection)
        self._clock = clock
        self._anyone = AnyBroker(connection.timeout_s)
        self._moves = ReassignmentPoll(connection.timeout_s)
        self._controller: int | None = None
        self._moved: Mapping[tuple[str, int], int] = {}
        """Reassignments in progress at the previous poll."""
        self._known: tuple[object, ClusterState] | None = None
        """The last state, after what it was made of."""
        self._listed: Sequence[Mapping[str, Any]] = ()
        self._digests: set[bytes] = set()
        """Of answers that say just this; each broker has an order of its own."""
        self._spared = spared
        self._hidden: frozenset[str] = frozenset()
        self._sees_all = False
        self._automq: bool | None = None
        self._configs: Mapping[tuple[str, str], str | None] = {}
        """By topic and key."""
        self._configs_known: frozenset[str] = frozenset()
        self._configs_at_s = float("-inf")

    def read(self) -> ClusterState:
        """Read the current state; takes 10 ms for a small cluster.

        Everything is requested each time; where nothing has changed, the last state is
        reused with a new time.
        Raises ClusterUnreachable, AccessRefused or RightsMissing.
        """
        with self._client.calling("describe the cluster", _DESCRIBE) as admin:
            self._moves.ask(admin, self._controller)
            cluster = self._describe_cluster(admin)
            self._controller = cluster["controller_id"]
            listed = self._topics(admin)
            moving = self._moves.latest()
            # A broker may show a move yet that the controller has just ended.
            adding, self._moved = {**self._moved, **moving}, moving
            self._refuse_hidden(admin, cluster["brokers"], listed)
            topics = [t for t in listed if t["partitions"]]
            storage = self._storage_kinds(admin, topics)
            placements, min_isr = self._placements(topics), self._min_isr(topics)
        now_ms = int(1000 * self._clock())
        made_of = (listed, cluster, storage, placements, min_isr, moving, adding)
        if self._known is None or self._known[0] != made_of:
            state = build_state(
                cluster,
                topics,
                storage,
                moving,
                placements=placements,
                adding=adding,
                taken_at_ms=now_ms,
            )
            self._known = (
                made_of,
                replace(
                    state, unreadable={**state.unreadable, **self._unseen(topics)}, min_isr=min_isr
                ),
            )
        return replace(self._known[1], taken_at_ms=now_ms)

    def _unseen(self, topics: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """The right that is missing on topics that are still hidden."""
        hidden = self._hidden - {t["name"] for t in topics}
        return dict.fromkeys(hidden, "DESCRIBE")

    def close(self) -> None:
        """Drop the connection and pending requests; the next read connects again."""
        self._moves.forget()
        self._client.close()

    def _describe_cluster(self, admin: Any) -> dict[str, Any]:
        from kafka.errors import IncompatibleBrokerVersion, for_code
        from kafka.protocol.admin import DescribeClusterRequest

        request = DescribeClusterRequest(
            include_cluster_authorized_operations=True, include_fenced_brokers=True
        )
        try:
            found = self._anyone.ask(admin, request)
        except IncompatibleBrokerVersion:  # before Kafka 2.8
            return dict(admin.describe_cluster())
        if found.error_code:
            raise for_code(found.error_code)
        return _cluster(found)

    def _topics(self, admin: Any) -> Sequence[Mapping[str, Any]]:
        """Topics as `build_state` takes them; the last result where metadata are unchanged."""
        from kafka.protocol.metadata import MetadataRequest, MetadataResponse

        request = MetadataRequest(
            topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        answer = self._anyone.ask(admin, EncodedRequest(request))
        # It begins with the time for which it was throttled.
        digest = sha256(answer.body[4 * (answer.version >= 3) :]).digest()
        if digest not in self._digests:
            found = MetadataResponse.decode(answer.body, version=answer.version)
            listed = sorted(map(_described, found.topics), key=itemgetter("name"))
            if listed != self._listed:
                self._listed, self._digests = listed, set()
            self._digests.add(digest)
        return self._listed

    def _refuse_hidden(
        self, admin: Any, brokers: Iterable[Mapping[str, Any]], topics: Iterable[Mapping[str, Any]]
    ) -> None:
        """Check at the first poll only: it asks every broker for all that it stores."""
        if not self._sees_all:
            alive = [b for b in brokers if not b.get("is_fenced")]
            self._hidden = refuse_hidden_topics(self._client, admin, alive, topics, self._spared)
            self._sees_all = True

    def _storage_kinds(
        self, admin: Any, topics: Iterable[Mapping[str, Any]]
    ) -> dict[str, StorageKind]:
        if self._automq is None:
            self._automq = self._is_automq(admin)
        if self._automq:
            return {t["name"]: StorageKind.SHARED for t in topics}
        self._refresh_configs(admin, topics)
        return {
            t["name"]: StorageKind.TIERED
            if self._configs.get((t["name"], _TIER)) == "true"
            else StorageKind.REPLICATED
            for t in topics
        }

    def _placements(self, topics: Iterable[Mapping[str, Any]]) -> dict[str, str]:
        """Configs with placement constraints, by topic."""
        found = ((t["name"], self._configs.get((t["name"], CONFIG))) for t in topics)
        return {name: value for name, value in found if value}

    def _min_isr(self, topics: Iterable[Mapping[str, Any]]) -> dict[str, int]:
        """`min.insync.replicas` by topic, where it is known."""
        found = ((t["name"], self._configs.get((t["name"], _MIN_ISR))) for t in topics)
        return {name: int(value) for name, value in found if value and value.isdecimal()}

    def _refresh_configs(self, admin: Any, topics: Iterable[Mapping[str, Any]]) -> None:
        known = frozenset(t["topic_id"] for t in topics)
        now_s = self._clock()
        fresh = now_s - self._configs_at_s < CONFIG_AGE_S
        if fresh and known <= self._configs_known:
            return
        names, keys = [t["name"] for t in topics], (_TIER, CONFIG, _MIN_ISR)
        self._configs = configs_of(self._client, admin, "TOPIC", names, keys)
        self._configs_known, self._configs_at_s = known, now_s

    def _is_automq(self, admin: Any) -> bool:
        """Recognise AutoMQ by its feature flag, which 1.0.0 lacks, or by a broker's setting."""
        if _AUTOMQ_FEATURE in admin.describe_features():
            return True
        broker = str(self._anyone.last)
        keys = (_AUTOMQ_CONFIG,)
        found = configs_of(self._client, admin, "BROKER", [broker], keys)
        return found.get((broker, _AUTOMQ_CONFIG)) == "true"


def build_state(
    cluster: Mapping[str, Any],
    topics: Iterable[Mapping[str, Any]],
    storage: Mapping[str, StorageKind],
    moving: Iterable[tuple[str, int]],
    *,
    placements: Mapping[str, str],
    adding: Mapping[tuple[str, int], int],
    taken_at_ms: int,
) -> ClusterState:
    """Build a state from kafka-python's descriptions of the cluster and its topics.

    storage: kind of storage by topic, complete. placements: configs of placement
    constraints by topic, if any. moving: partitions in reassignments, as topic and number.
    adding: how many replicas these add (KIP-455), 0 where absent. taken_at_ms: Unix time.
    Partitions without replicas are omitted. Raises KeyError for a topic not in `storage`.
    """
    topics = sorted(topics, key=lambda t: str(t["name"]))
    rows = [
        (position, partition)
        for position, topic in enumerate(topics)
        for partition in sorted(topic["partitions"], key=lambda p: int(p["partition_index"]))
        if partition["replica_nodes"]
    ]
    moving, operations = set(moving), cluster.get("authorized_operations")
    keys = [(topics[t]["name"], p["partition_index"]) for t, p in rows]
    lengths = [len(p["replica_nodes"]) for _, p in rows]
    replicas = _ints(chain.from_iterable(p["replica_nodes"] for _, p in rows))
    return ClusterState(
        cluster_id=cluster["cluster_id"],
        taken_at_ms=taken_at_ms,
        brokers=_brokers(cluster["brokers"], replicas),
        topics=tuple(_topic(t, storage[t["name"]], placements.get(t["name"], "")) for t in topics),
        topic=_ints(position for position, _ in rows),
        partition=_ints(p["partition_index"] for _, p in rows),
        replica_start=_ints([0, *np.cumsum(lengths, dtype=np.int64).tolist()]),
        replica_broker=replicas,
        leader=_ints(p["leader_id"] for _, p in rows),
        in_sync=_ints(len(p["isr_nodes"]) for _, p in rows),
        moving=np.fromiter((key in moving for key in keys), np.bool_),
        adding=_ints(adding.get(key, 0) for key in keys),
        offline=np.fromiter(
            (b in (p.get("offline_replicas") or ()) for _, p in rows for b in p["replica_nodes"]),
            np.bool_,
        ),
        # Old brokers do not report it; then the calls themselves fail.
        may_describe=operations is None or "DESCRIBE" in operations,
        unreadable={
            t["name"]: READ
            for t in topics
            # Old brokers do not report it (KIP-430).
            if READ not in (t.get("authorized_operations") or (READ,))
        },
    )


def _cluster(found: Any) -> dict[str, Any]:
    """Describe the cluster as `build_state` takes it."""
    return {
        "cluster_id": found.cluster_id,
        "controller_id": found.controller_id,
        "brokers": [
            {"broker_id": b.broker_id, "rack": b.rack, "is_fenced": b.is_fenced}
            for b in sorted(found.brokers, key=lambda b: int(b.broker_id))
        ],
        "authorized_operations": _operations(found.authorized_operations),
    }


def _operations(codes: Iterable[int] | None) -> list[str] | None:
    """Names of what the user may do; None where brokers do not report it (KIP-430)."""
    from kafka.admin import ACLOperation

    every = {operation.value: operation.name for operation in ACLOperation}
    return None if codes is None else sorted(every[c] for c in codes if c in every)


def _described(topic: Any) -> dict[str, Any]:
    """Describe a topic as `build_state` takes it, in a third of the driver's own time."""
    return {
        "error_code": topic.error_code,
        "name": topic.name,
        "topic_id": topic.topic_id,
        "is_internal": topic.is_internal,
        "authorized_operations": _operations(topic.authorized_operations),
        "partitions": [
            {
                "partition_index": p.partition_index,
                "leader_id": p.leader_id,
                "replica_nodes": p.replica_nodes,
                "isr_nodes": p.isr_nodes,
                # Since Kafka 1.0 (KIP-112).
                "offline_replicas": p.offline_replicas or [],
            }
            for p in sorted(topic.partitions, key=lambda p: int(p.partition_index))
        ],
    }


def _topic(topic: Mapping[str, Any], storage: StorageKind, placement: str) -> Topic:
    name = topic["name"]
    return Topic(
        name=TopicName(name),
        topic_id=str(topic["topic_id"]),
        storage=storage,
        # Kafka flags only two of its own; the others keep to the same prefix.
        internal=bool(topic["is_internal"]) or name.startswith("__"),
        placement=placement,
    )


def _brokers(registered: Iterable[Mapping[str, Any]], replicas: Ints) -> tuple[Broker, ...]:
    found = {
        BrokerId(b["broker_id"]): Broker(
            id=BrokerId(b["broker_id"]),
            rack=b["rack"],
            state=BrokerState.DEAD if b.get("is_fenced") else BrokerState.ALIVE,
        )
        for b in registered
    }
    for gone in map(BrokerId, np.unique(replicas).tolist()):
        found.setdefault(gone, Broker(id=gone, state=BrokerState.DEAD))
    return tuple(found[b] for b in sorted(found))


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)
