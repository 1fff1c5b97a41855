"""The one place in this package that makes Kafka clients and reads their errors."""

import logging
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from model.errors import ClusterUnreachable, ConfigError, PlimsollError, RightsMissing

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from kafka import KafkaAdminClient

CLIENT_ID: Final = "plimsoll"
_log = logging.getLogger("plimsoll.collector")
# kafka-python warns on the terminal of every reconnect; what matters is raised.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Connection:
    """How to reach a cluster.

    Raises ConfigError where `bootstrap` is no list of `host:port`.
    """

    bootstrap: str
    """`host:port`, several parted by commas."""
    timeout_s: float = 10.0
    """How long one call may take."""

    def __post_init__(self) -> None:
        _ = self.addresses

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """The bootstrap servers, apart."""
        return tuple(_address(part, self.bootstrap) for part in self.servers)

    @property
    def servers(self) -> list[str]:
        """The bootstrap servers as written."""
        return [part.strip() for part in self.bootstrap.split(",")]


def _address(text: str, whole: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not (colon and host and port.isdecimal() and 0 < int(port) < 65536):
        raise ConfigError(
            f"{text!r} in the bootstrap servers {whole!r} is no host:port; write "
            "for example localhost:9092, several parted by commas"
        )
    return host.strip("[]"), int(port)


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
        Raises ClusterUnreachable or RightsMissing in place of the driver's errors.
        """
        from kafka.errors import AuthorizationError, KafkaError

        try:
            yield self._connected()
        except PlimsollError:
            raise
        except AuthorizationError as exc:
            raise RightsMissing(
                f"The cluster at {self.connection.bootstrap} refused to {what}. Give "
                f"plimsoll's user the right {right}."
            ) from exc
        except (KafkaError, OSError, RuntimeError) as exc:
            self.close()
            raise ClusterUnreachable(
                f"The cluster at {self.connection.bootstrap} did not {what} "
                f"({_reason(exc)}). Check that its brokers run and can be reached."
            ) from exc

    def close(self) -> None:
        """Drop the connection; the next call makes a new one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def _connected(self) -> "KafkaAdminClient":
        if self._admin is None:
            from kafka import KafkaAdminClient  # 0.2 s

            # The driver would leave a thread behind for each server that is not there.
            _knock(self.connection)
            timeout_ms = int(1000 * self.connection.timeout_s)
            self._admin = KafkaAdminClient(
                bootstrap_servers=self.connection.servers,
                client_id=CLIENT_ID,
                request_timeout_ms=timeout_ms,
                bootstrap_timeout_ms=timeout_ms,
                reconnect_backoff_max_ms=1000,
            )
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
    answer = _send(admin, request, broker)
    return {
        (topic.name, partition.partition_index): partition.offset
        for topic in answer.topics
        for partition in topic.partitions
        if partition.error_code == 0 and partition.offset >= 0
    }


def _send(admin: "KafkaAdminClient", request: object, broker: int) -> Any:
    manager = admin._manager  # noqa: SLF001 - there is no public way to one broker

    async def send() -> Any:
        return await manager.send(request, node_id=broker)

    return manager.run(send)


def make_producer(connection: Connection) -> "Producer":
    """A producer for samples; quiet, and without retries that outlive a sample."""
    from confluent_kafka import Producer

    return Producer(
        {
            "bootstrap.servers": connection.bootstrap,
            "client.id": CLIENT_ID,
            "log_level": 0,
            "linger.ms": 5,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1000 * connection.timeout_s),
        }
    )


def _knock(connection: Connection) -> None:
    """Raise ClusterUnreachable unless one of the bootstrap servers can be reached."""
    end = time.monotonic() + connection.timeout_s
    reasons = []
    for (host, port), server in zip(
        connection.addresses, connection.servers, strict=True
    ):
        left_s = max(0.1, end - time.monotonic())
        try:
            socket.create_connection((host, port), timeout=left_s).close()
        except OSError as exc:
            reasons.append(f"{server}: {_reason(exc)}")
        else:
            return
    raise ClusterUnreachable(
        f"No Kafka broker answers at {connection.bootstrap} ({'; '.join(reasons)}). "
        "Check the address, and that the cluster runs."
    )


def _reason(exc: Exception) -> str:
    """What the driver says, in one line."""
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    return str(exc).split("\n", 1)[0] or type(exc).__name__
