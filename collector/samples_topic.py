"""Samples in a topic of the observed cluster, where changes are allowed."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from clients.admin_connection import AdminConnection
from clients.connection import Connection
from clients.driver_configs import make_producer
from clients.driver_errors import produce_failure
from collector.samples import encode

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

Creating = Callable[[str, Mapping[str, object]], AbstractContextManager[None]]
"""The topic, and how it is created."""

PARTITIONS: Final = 4
RETENTION_MS: Final = 7 * 24 * 3600 * 1000
_MOST_COPIES: Final = 3


class SamplesTopic:
    """A sink like the spool, in a topic that is created where it is missing."""

    def __init__(
        self,
        connection: Connection,
        topic: str,
        brokers: int,
        creating: Creating = lambda _topic, _how: nullcontext(),
    ) -> None:
        """Create the topic if it is missing, and connect a producer.

        brokers: number of live ones; the topic gets one replica on each, at most 3.
        creating: entered while the topic is created. Raises ClusterUnreachable,
        RightsMissing if the topic may not be created, and as `creating` does.
        """
        self.topic = topic
        self._connection = connection
        _create(connection, topic, min(_MOST_COPIES, brokers), creating)
        self._producer = make_producer(connection)

    def write(self, samples: pa.Table) -> None:
        """Send one record per row (schema `SAMPLES`); wait until all are acknowledged.

        Waits at most the connection's time-out after the last. Raises struct.error as
        `encode` does, and the error of `produce_failure` if any record fails or is not
        acknowledged in time; others may have been written.
        """
        failed: list[KafkaError] = []

        def note(error: "KafkaError | None", _message: object) -> None:
            if error is not None:
                failed.append(error)

        left = self._send(samples, note, failed)
        if failed:
            self._replace_producer(failed)
        if failed or left:
            where = self._connection.bootstrap
            raise produce_failure(failed, left, where, self.topic)

    def close(self) -> None:
        """Drop records not yet acknowledged; waits at most 1 s."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._producer.purge()
            self._producer.flush(1.0)

    def _replace_producer(self, failed: "list[KafkaError]") -> None:
        """Replace a producer that may have ended; the cause of that is put first in `failed`."""
        from confluent_kafka import KafkaError, KafkaException

        if failed[0].code() == KafkaError._FATAL:  # noqa: SLF001 - the driver's own name
            # To produce says only that there is a cause; polling raises it, once.
            try:
                self._producer.poll(1.0)
            except KafkaException as exc:
                failed.insert(0, exc.args[0])
        self.close()
        self._producer = make_producer(self._connection)

    def _send(
        self,
        samples: pa.Table,
        note: "Callable[[KafkaError | None, object], None]",
        failed: "list[KafkaError]",
    ) -> int:
        """Return the number of records without an acknowledgement; note failures.

        The driver raises a fatal error in whichever call comes next.
        """
        from confluent_kafka import KafkaException

        places = zip(samples["topic"].to_pylist(), samples["partition"].to_pylist(), strict=True)
        try:
            for (topic, partition), record in zip(places, encode(samples), strict=True):
                key = f"{topic}-{partition}"
                self._producer.produce(self.topic, record, key, on_delivery=note)
                self._producer.poll(0)
            return self._producer.flush(self._connection.timeout_s)
        except KafkaException as exc:
            failed.insert(0, exc.args[0])
            return 0
        except SystemError as exc:
            # The driver's fatal error, where it came up while `note` was being called.
            if not isinstance(exc.__cause__, KafkaException):
                raise
            failed.insert(0, exc.__cause__.args[0])
            return 0


def _create(connection: Connection, topic: str, copies: int, creating: Creating) -> None:
    from kafka.errors import TopicAlreadyExistsError

    client = AdminConnection(connection)
    configs = {"retention.ms": str(RETENTION_MS), "cleanup.policy": "delete"}
    wanted = {"num_partitions": PARTITIONS, "replication_factor": copies, "configs": configs}
    right = f"CREATE on the cluster or the topic {topic}"
    try:
        with client.calling(f"create the topic {topic}", right) as admin:
            # To create one that is there wants the right, too.
            (found,) = admin.describe_topics([topic])
            if found["error_code"] == 0:
                return
            with creating(topic, wanted), suppress(TopicAlreadyExistsError):
                admin.create_topics({topic: wanted}, wait_for_metadata=True)
    finally:
        client.close()
