"""Implement `ClusterAdmin` with kafka-python, the only driver in this package."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from clients.admin_connection import AdminConnection, ClusterDefault
from clients.connection import OPEN, ClientProperties, Connection
from clients.driver_errors import authorized, raise_unauthorized
from executor.client.changing_calls import CHANGING_CALLS
from executor.client.cluster_admin import OffsetKind
from executor.client.kafka_calls import (
    alter_log_dirs,
    answers_of,
    by_topic,
    controller_epoch,
    described_configs,
    joined,
    known_offsets,
    log_dir_view,
    offsets_request,
    reassignment,
    set_or_delete,
    to_controller,
    unmentioned,
    views_of,
)
from executor.client.responses import ClusterView, LogDirView, PartitionResponse, PartitionView
from model.closing import Closing
from model.errors import ClusterUnreachable, ExecutionStopped, WriterBarred
from model.ids import BrokerId, PartitionId, TopicName

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_T = TypeVar("_T")
_READS: Final = 3
"""Attempts with a new client each before the cluster counts as unreachable."""
_CHANGES: Final = frozenset(call.request for call in CHANGING_CALLS.values())
_REFUSALS: Final = 20
"""Refused connections before a client is replaced."""
_FORWARDED_S: Final = 60.0
"""`retryTimeoutMs` in Kafka's `BrokerServer`."""
_ALTER: Final = "ALTER on the cluster"
_DESCRIBE: Final = "DESCRIBE on the cluster and its topics"
_ALTER_CONFIGS: Final = "ALTER_CONFIGS on the cluster and its topics"
_DESCRIBE_CONFIGS: Final = "DESCRIBE_CONFIGS on the cluster and its topics"


class KafkaAdmin(Closing):
    """Calls on a real cluster, as `ClusterAdmin` documents them.

    Driver errors become plimsoll's own: every call raises ClusterUnreachable,
    RightsMissing or AccessRefused. The client is opened at the first call and replaced
    after a failure, since a client that met a cluster in trouble may never recover.
    `timeout_s` is seconds per request. `before_change` is called in the driver's thread right
    before a request that changes something is sent, and may raise. One thread owns it.
    """

    def __init__(
        self,
        bootstrap: str,
        timeout_s: float,
        properties: ClientProperties = OPEN,
        before_change: Callable[[], None] | None = None,
    ) -> None:
        self._timeout_s = timeout_s
        self._before_change = before_change
        self._changes = False
        """Whether a call that changes something is in progress."""
        connection = Connection(bootstrap, timeout_s, properties)
        guard = None if before_change is None else self._before_sending
        self._client = AdminConnection(connection, guard)

    def close(self) -> None:
        self._client.close()

    def cluster(self) -> ClusterView:
        answer = self._ask(
            "describe the cluster", _DESCRIBE, lambda client: client.describe_cluster()
        )
        return ClusterView(
            cluster_id=answer["cluster_id"],
            alive=frozenset(
                BrokerId(b["broker_id"]) for b in answer["brokers"] if not b.get("is_fenced")
            ),
            racks={BrokerId(b["broker_id"]): b["rack"] for b in answer["brokers"] if b.get("rack")},
        )

    def controller_elections(self) -> int | None:
        return self._ask("describe its controller", _DESCRIBE, controller_epoch)

    def features(self) -> frozenset[str]:
        return frozenset(
            self._ask("describe its features", _DESCRIBE, lambda client: client.describe_features())
        )

    def topics(self) -> dict[TopicName, int]:
        topics = self._ask("list topics", _DESCRIBE, lambda client: client.describe_topics())
        return {TopicName(topic["name"]): len(topic["partitions"]) for topic in topics}

    def partitions(
        self, ids: Collection[PartitionId] | None = None
    ) -> dict[PartitionId, "PartitionView"]:
        if ids is not None and not ids:
            return {}
        names = None if ids is None else sorted({pid.topic for pid in ids})
        topics = self._ask(
            "describe topics", _DESCRIBE, lambda client: authorized(client.describe_topics(names))
        )
        found = {view.id: view for topic in topics for view in views_of(topic)}
        return found if ids is None else {i: found[i] for i in ids if i in found}

    def reassignments(self) -> dict[PartitionId, tuple[BrokerId, ...]]:
        listed = self._ask(
            "list reassignments", _DESCRIBE, lambda client: client.list_partition_reassignments()
        )
        return {
            PartitionId(tp.topic, tp.partition): tuple(
                BrokerId(b) for b in found["replicas"] if b not in found["removing_replicas"]
            )
            for tp, found in listed.items()
        }

    def reassign(
        self, targets: Mapping[PartitionId, Sequence[BrokerId] | None], *, resizes: bool = False
    ) -> dict[PartitionId, PartitionResponse]:
        """Request replica lists, or cancel with None (KIP-455).

        Returns one response per partition, UNKNOWN where none came. Brokers since 4.1 are told to
        refuse a change of the replication factor unless it `resizes` (KIP-860); the driver omits
        that for older ones.
        """
        request = reassignment(targets, int(1000 * self._timeout_s), resizes=resizes)
        with self._changing("reassign partitions", _ALTER) as client:
            response = to_controller(client, request)
        return {pid: unmentioned(response) for pid in targets} | answers_of(response)

    def elect_preferred(self, ids: Iterable[PartitionId]) -> None:
        """Request preferred leader elections; only metadata show the result.

        Errors of single partitions are not raised: the driver would hide all but one.
        """
        from kafka.protocol.admin import ElectionType

        with self._changing("elect preferred leaders", _ALTER) as client:
            answer = client.elect_leaders(ElectionType.PREFERRED, by_topic(ids), raise_errors=False)
            raise_unauthorized([answer.error_code])

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """One broker's log directories (KIP-113); a failed disk reports no replicas."""
        (answer,) = self._ask(
            "describe its log directories",
            _DESCRIBE,
            lambda client: client.describe_log_dirs(by_topic(ids), [int(broker)]),
        )
        return tuple(map(log_dir_view, answer["log_dirs"]))

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, PartitionResponse]:
        with self._changing("change log directories", _ALTER) as client:
            return alter_log_dirs(client, broker, targets)

    def offsets(
        self, leader: BrokerId, ids: Collection[PartitionId], kind: OffsetKind
    ) -> dict[PartitionId, int]:
        request = offsets_request(ids, int(kind))
        response = self._ask(
            "list offsets", _DESCRIBE, lambda client: known_offsets(client, request, leader)
        )
        if response is None:
            return {}
        return {
            PartitionId(topic.name, part.partition_index): part.offset
            for topic in response.topics
            for part in topic.partitions
            if part.error_code == 0
        }

    def broker_configs(self, broker: BrokerId, keys: Sequence[str]) -> dict[str, str]:
        return self._configs("BROKER", [str(broker)], keys).get(str(broker), {})

    def topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str]
    ) -> dict[TopicName, dict[str, str]]:
        found = self._configs("TOPIC", topics, keys)
        return {TopicName(name): values for name, values in found.items()}

    def own_broker_configs(self, broker: BrokerId | None, keys: Sequence[str]) -> dict[str, str]:
        name = self._resource(broker)
        which = "all" if broker is None else "modified"
        return self._configs("BROKER", [name], keys, which).get(name, {})

    def own_topic_configs(
        self, topics: Sequence[TopicName], keys: Sequence[str], broker: BrokerId | None = None
    ) -> dict[TopicName, dict[str, str]]:
        found = self._configs("TOPIC", topics, keys, "modified", broker)
        return {TopicName(name): values for name, values in found.items()}

    def alter_broker_configs(
        self, broker: BrokerId | None, values: Mapping[str, str | None]
    ) -> None:
        self._alter("BROKER", self._resource(broker), set_or_delete(values))

    def alter_topic_configs(self, topic: TopicName, values: Mapping[str, str | None]) -> None:
        self._alter("TOPIC", topic, set_or_delete(values))

    def append_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        self._alter("TOPIC", topic, joined("APPEND", lists))

    def subtract_topic_configs(self, topic: TopicName, lists: Mapping[str, Sequence[str]]) -> None:
        self._alter("TOPIC", topic, joined("SUBTRACT", lists))

    def _resource(self, broker: BrokerId | None) -> str:
        return ClusterDefault(self.cluster().any_alive) if broker is None else str(broker)

    def _alter(self, kind: str, name: str, entries: Mapping[str, tuple[str, str | None]]) -> None:
        from kafka.admin import ConfigResource, ConfigResourceType

        if not entries:
            return
        resource = ConfigResource(ConfigResourceType[kind], name, configs=dict(entries))
        whose = f"{kind.lower()} {name}" if name else "all brokers"
        what = f"change settings of {whose}"
        with self._changing(what, _ALTER_CONFIGS) as client:
            answer = client.alter_configs([resource], raise_on_unknown=False, incremental=True)
        result = str(answer[kind.lower()][name])
        if result != "OK":
            raise ExecutionStopped(f"the cluster did not {what}: {result}")

    def _configs(
        self,
        kind: str,
        names: Sequence[str],
        keys: Sequence[str],
        which: str = "all",
        broker: BrokerId | None = None,
    ) -> dict[str, dict[str, str]]:
        from kafka.admin import ConfigResource, ConfigResourceType

        resources = [
            ConfigResource(ConfigResourceType[kind], name, configs=dict.fromkeys(keys))
            for name in names
        ]
        answer = self._ask(
            "describe settings",
            _DESCRIBE_CONFIGS,
            lambda client: described_configs(client, resources, which, broker),
        )
        # A broker's own value appears in its topics, also as "modified".
        own = f"DYNAMIC_{kind}_CONFIG"
        return {
            name: {
                key: str(entry["value"])
                for key, entry in configs.items()
                # Of a name that its version does not know, a broker keeps the value to itself.
                if entry["value"] is not None and (which == "all" or entry["config_source"] == own)
            }
            for name, configs in answer.get(kind.lower(), {}).items()
        }

    @contextmanager
    def _changing(self, what: str, right: str) -> "Iterator[KafkaAdminClient]":
        """Yield the client for a call that changes something."""
        with self._client.calling(what, right) as client:
            self._changes = True
            try:
                yield client
            finally:
                self._changes = False

    def _before_sending(self, request: str) -> None:
        if self._before_change is None or request not in _CHANGES:
            return
        self._before_change()
        # The driver's thread continues a call that a signal has interrupted.
        if not self._changes:
            raise WriterBarred(f"{request} is not sent: its call has ended")

    def _ask(self, what: str, right: str, question: "Callable[[KafkaAdminClient], _T]") -> _T:
        """Send a read, and retry it with a new client within the time-out."""
        end_s = time.monotonic() + self._timeout_s
        for _ in range(_READS - 1):
            try:
                with self._client.calling(what, right) as client:
                    return _answer(client, question, end_s)
            except ClusterUnreachable:
                if time.monotonic() >= end_s:
                    raise
        with self._client.calling(what, right) as client:
            return _answer(client, question, end_s)


def _answer(
    client: "KafkaAdminClient", question: "Callable[[KafkaAdminClient], _T]", end_s: float
) -> _T:
    """Try the next broker while brokers refuse the connection.

    The driver picks one at random of all that the cluster lists, which may just have
    died; on an immediate retry it avoids those.
    """
    from kafka.errors import KafkaConnectionError

    for _ in range(_REFUSALS):
        try:
            return question(client)
        except KafkaConnectionError:
            if time.monotonic() >= end_s:
                raise
    return question(client)


def longest_request_s(timeout_s: float) -> float:
    """The longest time, in seconds, from `before_change` until its request is given up.

    The driver resets the connection after the time-out, or sends nothing if it was not open yet;
    a second is for the scheduling of its thread.
    """
    return timeout_s + 1.0


def latest_effect_s(timeout_s: float) -> float:
    """The same until a request without an answer has taken effect, if it ever does.

    A broker that it has reached may try for a minute to forward it to the controller. It counts
    from `before_change`, like that of a slow call, since others may wait for the whole call.
    """
    return max(slowest_change_s(timeout_s), longest_request_s(timeout_s) + _FORWARDED_S)


def slowest_change_s(timeout_s: float) -> float:
    """The longest time, in seconds, until a call that changes something is answered.

    In time-outs: 1 for the reachability check, 2 to connect, 2 to find the controller and 1 to
    ask it; where it is not the controller any more, 3 to find it and ask again.
    """
    return 9 * timeout_s
