"""Admin calls over one kafka-python client that reconnects, and single requests."""

import logging
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from clients.connection import Connection
from clients.driver_errors import kafka_errors, rights_missing
from clients.kafka_python import guard_requests, open_client
from model.errors import ClusterUnreachable, RightsMissing
from model.ids import BrokerId

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

T = TypeVar("T")
# kafka-python warns on the terminal of every reconnect; lasting failures are raised.
logging.getLogger("kafka").setLevel(logging.CRITICAL)


class AdminConnection:
    """One kafka-python client, opened at the first call and replaced after a failure.

    One thread owns it. A client that met a cluster before all its brokers were there
    never learns of the others; hence the replacement.
    """

    def __init__(
        self, connection: Connection, before_sending: Callable[[str], None] | None = None
    ) -> None:
        """before_sending: as of `kafka_python.guard_requests`."""
        self.connection = connection
        self._before_sending = before_sending
        self._admin: KafkaAdminClient | None = None

    @contextmanager
    def calling(self, what: str, right: str) -> "Iterator[KafkaAdminClient]":
        """Yield the driver's client for one kind of call.

        `what` and `right` are those of `driver_errors.kafka_errors`. Raises
        ClusterUnreachable, RightsMissing or AccessRefused in place of the driver's
        errors.
        """
        try:
            with kafka_errors(self.connection.bootstrap, what, right):
                if self._admin is None:
                    self._admin = open_client(self.connection)
                    if self._before_sending is not None:
                        guard_requests(self._admin, self._before_sending)
                yield self._admin
        except ClusterUnreachable:
            self.close()
            raise

    def refusal(self, what: str, right: str) -> RightsMissing:
        """Build a RightsMissing for a refused call; parameters as of `calling`."""
        return rights_missing(self.connection.bootstrap, what, right)

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()


class ClusterDefault(str):
    """The resource of cluster-wide defaults (KIP-226), as kafka-python sends it.

    Kafka names it by the empty text, and any broker answers for it; the driver takes
    `int()` of a broker resource's name for the id of the broker to ask.
    """

    _broker: BrokerId

    def __new__(cls, broker: BrokerId) -> Self:
        """Return the empty name, to be resolved by `broker`."""
        name = super().__new__(cls, "")
        name._broker = broker
        return name

    def __int__(self) -> int:
        return self._broker


def send_request(
    admin: "KafkaAdminClient", request: object, broker: int | None, timeout_s: float | None = None
) -> Any:
    """Send a request of the driver's protocol classes and return the response.

    `broker` None sends it to any broker. Raises the driver's errors.
    """
    asking = partial(exchange, admin, request, broker, timeout_s)
    return admin._manager.run(asking)  # noqa: SLF001 - there is no public way to one broker


async def exchange(
    admin: "KafkaAdminClient", request: object, broker: int | None, timeout_s: float | None = None
) -> Any:
    """Do as `send_request` does, in the driver's own thread."""
    posted = post_request(admin, request, broker, timeout_s)
    return await response_to(admin, posted, timeout_s)


def post_request(
    admin: "KafkaAdminClient", request: object, broker: int | None, timeout_s: float | None = None
) -> Any:
    """Send a request without waiting; `response_to` awaits the returned future.

    To be called in the driver's own thread. The driver allows five requests in flight
    to one broker.
    """
    manager = admin._manager  # noqa: SLF001 - as in `send_request`
    timeout_ms = None if timeout_s is None else int(1000 * timeout_s)
    return manager.send(request, node_id=broker, request_timeout_ms=timeout_ms)


async def response_to(
    admin: "KafkaAdminClient", posted: Any, timeout_s: float | None = None
) -> Any:
    """Await the response to a request sent by `post_request`; raises driver errors."""
    timeout_ms = None if timeout_s is None else int(1000 * timeout_s)
    # Requests of a connection that is still being opened have no time-out of their own.
    return await admin._manager.wait_for(posted, timeout_ms)  # noqa: SLF001 - as above


def run_in_driver(
    admin: "KafkaAdminClient", work: Callable[[], Coroutine[Any, Any, T]]
) -> Future[T]:
    """Start a coroutine in the driver's own thread; return its future at once."""
    future: Future[T] = Future()
    task = admin._manager.call_soon(work)  # noqa: SLF001 - as in `send_request`
    task.add_callback(future.set_result)
    task.add_errback(future.set_exception)
    return future
