"""The one place in this package that makes Kafka clients and reads their errors."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from collector.drivers import confluent_settings
from model.connection.client import Connection
from model.connection.driver import open_client
from model.connection.knock import reason_of
from model.errors import ClusterUnreachable, PlimsollError, RightsMissing

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from kafka import KafkaAdminClient

_log = logging.getLogger("plimsoll.collector")
_librdkafka = logging.getLogger("plimsoll.collector.librdkafka")
_librdkafka.setLevel(logging.CRITICAL + 1)
# kafka-python warns on the terminal of every reconnect; what matters is raised.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class Client:
    """Admin calls over one kafka-python client, which is made anew after a failure.

    One thread owns it. A client that met a cluster before all its brokers were there
    never learns of the others; hence the new one.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._admin: KafkaAdminClient | None = None

    @contextmanager
    def calling(self, what: str, right: str) -> "Iterator[KafkaAdminClient]":
        """The admin client, for one kind of call.

        `what` completes "refused to ..."; `right` is what the call needs.
        Raises ClusterUnreachable, RightsMissing or AccessRefused in place of the
        driver's errors.
        """
        from kafka.errors import AuthorizationError, KafkaError

        try:
            yield self._connected()
        except PlimsollError:
            raise
        except AuthorizationError as exc:
            raise self.refusal(what, right) from exc
        except (KafkaError, OSError, RuntimeError) as exc:
            self.close()
            raise ClusterUnreachable(
                f"The cluster at {self.connection.bootstrap} did not {what} "
                f"({reason_of(exc)}). Check that its brokers run and can be reached."
            ) from exc

    def refusal(self, what: str, right: str) -> RightsMissing:
        """The error for a kind of call that was refused, as in `calling`."""
        return RightsMissing(
            f"The cluster at {self.connection.bootstrap} refused to {what}. Give "
            f"plimsoll's user the right {right}."
        )

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _connected(self) -> "KafkaAdminClient":
        if self._admin is None:
            self._admin = open_client(self.connection)
        return self._admin


def list_offsets(
    admin: "KafkaAdminClient",
    broker: int,
    partitions: Mapping[str, Sequence[int]],
    spec: int,
) -> dict[tuple[str, int], int]:
    """Offsets of one kind, from the leader of all these partitions.

    A partition that the broker cannot answer for is absent. `spec`: -1 latest, -2
    earliest, -4 earliest local (KIP-405). The driver's own call asks for all metadata
    first and fails as a whole for one partition; hence its protocol classes.
    """
    from kafka.protocol.consumer import ListOffsetsRequest

    topic_class = ListOffsetsRequest.ListOffsetsTopic
    part_class = topic_class.ListOffsetsPartition
    request = ListOffsetsRequest(
        isolation_level=0,
        topics=[
            topic_class(
                name=name,
                partitions=[part_class(partition_index=p, timestamp=spec) for p in ps],
            )
            for name, ps in partitions.items()
        ],
        min_version=ListOffsetsRequest.min_version_for_timestamp(spec),
    )
    answer = send(admin, request, broker)
    return {
        (topic.name, partition.partition_index): partition.offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code == 0 and partition.offset >= 0
    }


def send(admin: "KafkaAdminClient", request: object, broker: int | None) -> Any:
    """The answer to a request of the driver's protocol classes; None for any broker."""
    manager = admin._manager  # noqa: SLF001 - there is no public way to one broker

    async def answered() -> Any:
        return await manager.send(request, node_id=broker)

    return manager.run(answered)


def make_producer(connection: Connection) -> "Producer":
    """A producer for samples; quiet, and without retries that outlive a sample."""
    from confluent_kafka import Producer

    return Producer(
        {
            **confluent_settings(connection),
            "log_level": 0,
            # Else what is fatal is written to the terminal, besides being raised.
            "logger": _librdkafka,
            "linger.ms": 5,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1000 * connection.timeout_s),
        }
    )
