"""The one place in this package that makes Kafka clients and reads their errors."""

import logging
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from clients.connection import Connection
from clients.driver_configs import confluent_settings
from clients.kafka_python import open_client
from clients.reachability import reason_of
from model.errors import ClusterUnreachable, PlimsollError, RightsMissing

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from kafka import KafkaAdminClient

T = TypeVar("T")
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


def send(
    admin: "KafkaAdminClient",
    request: object,
    broker: int | None,
    timeout_s: float | None = None,
) -> Any:
    """The answer to a request of the driver's protocol classes; None for any broker."""
    manager = admin._manager  # noqa: SLF001 - there is no public way to one broker

    async def answered() -> Any:
        return await answer(admin, post(admin, request, broker, timeout_s), timeout_s)

    return manager.run(answered)


def post(
    admin: "KafkaAdminClient",
    request: object,
    broker: int | None,
    timeout_s: float | None = None,
) -> Any:
    """Send a request, and wait for nothing; for `answer`, in the driver's own thread.

    The driver bears five to one broker.
    """
    manager = admin._manager  # noqa: SLF001 - as in `send`
    timeout_ms = None if timeout_s is None else int(1000 * timeout_s)
    return manager.send(request, node_id=broker, request_timeout_ms=timeout_ms)


async def answer(
    admin: "KafkaAdminClient", posted: Any, timeout_s: float | None = None
) -> Any:
    """What comes of a request that was posted."""
    timeout_ms = None if timeout_s is None else int(1000 * timeout_s)
    # A connection that is not made yet knows no time-out of its requests.
    return await admin._manager.wait_for(posted, timeout_ms)  # noqa: SLF001 - as above


def begin(
    admin: "KafkaAdminClient", work: Callable[[], Coroutine[Any, Any, T]]
) -> Future[T]:
    """Have the driver's own thread do something; returns at once."""
    future: Future[T] = Future()
    made = admin._manager.call_soon(work)  # noqa: SLF001 - as in `send`
    made.add_callback(future.set_result)
    made.add_errback(future.set_exception)
    return future


def failure_of(error: BaseException) -> str:
    """Why one broker gave no answer. Raises what is no failure of its own."""
    from kafka.errors import KafkaError

    if not isinstance(error, (KafkaError, OSError)):
        raise error
    return reason_of(error)


def is_unknown_broker(error: BaseException) -> bool:
    """Whether the client does not know the broker; it never will."""
    from kafka.errors import UnknownBrokerIdError

    return isinstance(error, UnknownBrokerIdError)


def make_producer(connection: Connection) -> "Producer":
    """A producer for samples; quiet, and without retries that outlive a sample."""
    from confluent_kafka import Producer

    return Producer(
        {
            **confluent_settings(connection),
            "log_level": 0,
            # Else what is fatal is written to the terminal, besides being raised.
            "logger": _librdkafka,
            # Waiting is bounded by time; there may be more partitions than the default.
            "queue.buffering.max.messages": 0,
            "linger.ms": 5,
            "acks": "all",
            "enable.idempotence": True,
            "delivery.timeout.ms": int(1000 * connection.timeout_s),
        }
    )
