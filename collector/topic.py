"""Samples in a topic of the watched cluster, where changes are allowed."""

from typing import Final

import pyarrow as pa

from collector.client import Client, make_producer
from collector.samples import encode
from model.connection.client import Connection
from model.errors import ClusterUnreachable

DEFAULT_TOPIC: Final = "__plimsoll_samples"
PARTITIONS: Final = 4
RETENTION_MS: Final = 7 * 24 * 3600 * 1000
_MOST_COPIES: Final = 3


class SamplesTopic:
    """A sink like the spool; it makes its topic when that is missing."""

    def __init__(self, connection: Connection, topic: str, brokers: int) -> None:
        """Raises ClusterUnreachable or RightsMissing."""
        self.topic = topic
        self._connection = connection
        _create(connection, topic, min(_MOST_COPIES, brokers))
        self._producer = make_producer(connection)

    def write(self, samples: pa.Table) -> None:
        """Send one record per row and wait until all are acknowledged.

        Raises ClusterUnreachable.
        """
        failed: list[str] = []

        def note(error: object, _message: object) -> None:
            if error is not None:
                failed.append(str(error))

        places = zip(
            samples["topic"].to_pylist(), samples["partition"].to_pylist(), strict=True
        )
        for (topic, partition), record in zip(places, encode(samples), strict=True):
            self._producer.produce(
                self.topic, record, f"{topic}-{partition}", on_delivery=note
            )
            self._producer.poll(0)
        left = self._producer.flush(self._connection.timeout_s)
        if failed or left:
            raise ClusterUnreachable(
                f"{len(failed) + left} samples could not be written to the topic "
                f"{self.topic} ({failed[0] if failed else 'no answer in time'}). "
                "Check that its brokers run, or go without the topic."
            )

    def close(self) -> None:
        """Give up what was not acknowledged."""
        self._producer.purge()
        self._producer.flush(1.0)


def _create(connection: Connection, topic: str, copies: int) -> None:
    from kafka.errors import TopicAlreadyExistsError

    client = Client(connection)
    configs = {"retention.ms": str(RETENTION_MS), "cleanup.policy": "delete"}
    wanted = {
        "num_partitions": PARTITIONS,
        "replication_factor": copies,
        "configs": configs,
    }
    try:
        with client.calling(f"create the topic {topic}", "CREATE on CLUSTER") as admin:
            try:
                admin.create_topics({topic: wanted}, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                return
    finally:
        client.close()
