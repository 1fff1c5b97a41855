"""What the lab asks of its own brokers: who is there, and new topics."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # its __all__
    AdminClient,
    BrokerMetadata,
    NewTopic,
)

from clients.admin_connection import AdminConnection, send_request
from clients.connection import Connection
from model.errors import ClusterUnreachable

_PAUSE_S: Final = 0.1
_CALL_S: Final = 5.0
_LIST_S: Final = 2.0


class BrokerAdmin:
    """Calls that are repeated until the brokers can answer them.

    The client is made at the first call: one made before its brokers may never
    recover from what it saw.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: AdminClient | None = None

    def brokers(self) -> set[int]:
        """Ids of the brokers that every broker which serves knows; empty if one fails.

        Brokers learn of each other one after the other, as they do of a new topic.
        """
        try:
            serving = self._connected().list_topics(timeout=_LIST_S).brokers
            return set(serving).intersection(*map(_brokers_known_to, serving.values()))
        except KafkaException:
            return set()

    def wait(self, what: str, done: Callable[[], bool], *, timeout_s: float) -> None:
        """Look until something is so; raises ClusterUnreachable after the time-out."""
        end = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > end:
                raise ClusterUnreachable(
                    f"The local cluster was not ready after {timeout_s:.0f} s: {what}."
                )
            time.sleep(_PAUSE_S)

    def create_topic(
        self,
        name: str,
        assignment: Sequence[Sequence[int]],
        configs: Mapping[str, str],
        *,
        timeout_s: float,
    ) -> None:
        """Create a topic with these replicas, and wait until every broker has it.

        Brokers learn of a new topic one after the other; a client that asks a slower
        one would be told that the topic does not exist, or has no leaders.
        """
        topic = NewTopic(
            name,
            num_partitions=len(assignment),
            replica_assignment=[list(replicas) for replicas in assignment],
            config=dict(configs),
        )
        self.wait(
            f"topic {name} could not be created",
            lambda: self._try_create(topic),
            timeout_s=timeout_s,
        )
        with closing(
            AdminConnection(Connection(self._bootstrap, timeout_s=_CALL_S))
        ) as client:
            self.wait(
                f"not every broker knows topic {name} and its leaders",
                lambda: _known_everywhere(client, name, len(assignment)),
                timeout_s=timeout_s,
            )

    def _try_create(self, topic: NewTopic) -> bool:
        try:
            (future,) = self._connected().create_topics([topic]).values()
            future.result(_CALL_S)
        except KafkaException as exc:
            error = exc.args[0]
            # An earlier attempt may have succeeded although its response was lost.
            if error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return True
            if error.retriable() or error.code() < 0:
                return False
            raise ClusterUnreachable(
                f"The local cluster refused topic {topic.topic}: {error.str()}."
            ) from exc
        except TimeoutError:
            # The broker may hang; a new client asks another one.
            self._client = None
            return False
        return True

    def _connected(self) -> AdminClient:
        if self._client is None:
            self._client = _client(self._bootstrap)
        return self._client


def _client(bootstrap: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            # Brokers that are starting or were killed are expected here.
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
        }
    )


def _brokers_known_to(broker: BrokerMetadata) -> set[int]:
    """Ids of the brokers in one broker's own view of the cluster."""
    # A new client has no other connection, so this broker answers.
    only = _client(f"{broker.host}:{broker.port}")
    return set(only.list_topics(timeout=_LIST_S).brokers)


def _known_everywhere(client: AdminConnection, name: str, partitions: int) -> bool:
    """Whether each broker that serves lists the topic with all of its leaders."""
    from kafka.protocol.metadata import MetadataRequest

    wanted = MetadataRequest.MetadataRequestTopic(name=name)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    try:
        with client.calling("describe its topics", "DESCRIBE") as admin:
            live = admin.describe_cluster()["brokers"]
            answers = [
                send_request(admin, request, b["broker_id"], _CALL_S) for b in live
            ]
    except ClusterUnreachable:
        return False
    return all(_led(answer.topics[0]) == partitions for answer in answers)


def _led(topic: Any) -> int:
    """How many partitions of a topic have a leader, as one broker sees it."""
    return sum(partition.leader_id >= 0 for partition in topic.partitions)
