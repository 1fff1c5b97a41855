"""Requests to the local brokers: which are registered, and new topics."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any, Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, BrokerMetadata, NewTopic  # type: ignore[attr-defined]  # its __all__

from clients.admin_connection import AdminConnection, send_request
from clients.connection import Connection
from model.errors import ClusterUnreachable

_PAUSE_S: Final = 0.1
_CALL_S: Final = 5.0
_LIST_S: Final = 2.0


class BrokerAdmin:
    """Requests that are repeated until the brokers can answer them.

    The client is created with the first call, since one created before its brokers may
    never connect.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._client: AdminClient | None = None

    def brokers(self) -> set[int]:
        """Ids of the brokers that every live broker knows; empty if a request fails.

        Brokers learn of each other, and of new topics, one after the other.
        """
        try:
            serving = self._connected().list_topics(timeout=_LIST_S).brokers
            return set(serving).intersection(*map(_brokers_known_to, serving.values()))
        except KafkaException:
            return set()

    def wait(self, what: str, done: Callable[[], bool], *, timeout_s: float) -> None:
        """Poll until `done` returns true.

        what: the condition that is not met, for the message.

        Raises ClusterUnreachable: `timeout_s` seconds have passed.
        """
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
        """Create a topic with these replicas, and wait until every broker knows it.

        Otherwise a client may ask a slower broker, which does not know the topic or
        its leaders yet. Raises ClusterUnreachable after `timeout_s` seconds, or if the
        brokers refuse the topic.
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
        with closing(AdminConnection(Connection(self._bootstrap, timeout_s=_CALL_S))) as client:
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
    """Ids of the brokers that one broker knows."""
    # A new client has no other connection, so this broker answers.
    only = _client(f"{broker.host}:{broker.port}")
    return set(only.list_topics(timeout=_LIST_S).brokers)


def _known_everywhere(client: AdminConnection, name: str, partitions: int) -> bool:
    """Whether each live broker lists the topic with all of its leaders."""
    from kafka.protocol.metadata import MetadataRequest

    wanted = MetadataRequest.MetadataRequestTopic(name=name)
    request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
    try:
        with client.calling("describe its topics", "DESCRIBE") as admin:
            live = admin.describe_cluster()["brokers"]
            answers = [send_request(admin, request, b["broker_id"], _CALL_S) for b in live]
    except ClusterUnreachable:
        return False
    return all(_led(answer.topics[0]) == partitions for answer in answers)


def _led(topic: Any) -> int:
    """Partitions of a topic that have a leader, as one broker sees it."""
    return sum(partition.leader_id >= 0 for partition in topic.partitions)
