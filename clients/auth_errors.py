"""Why a cluster did not let a client in, which kafka-python does not tell by itself.

The driver is handed in: both packages that use it need this, and neither it nor they
can be imported here.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from clients.connection import Connection
from model.errors import AccessRefused, PlimsollError

_SASL_FAILED: Final = 58
"""SASL_AUTHENTICATION_FAILED among Kafka's error codes."""


def _raise_refusals(manager: Any, connection: Connection) -> None:
    """Let kafka-python's connection manager end with a refusal.

    It would try again until its time is over, and then say no more than that.
    """
    connect, build = manager.get_connection, manager._build_transport  # noqa: SLF001 - there is no public way
    refusals: dict[Any, PlimsollError] = {}

    def note(node: Any, error: Exception) -> None:
        if refusal := _refusal_of(error, connection):
            refusals[node] = refusal

    def get_connection(node: Any, *args: Any, **kwargs: Any) -> Any:
        if node in refusals:
            raise refusals.pop(node)
        made = connect(node, *args, **kwargs)
        made.init_future.add_errback(partial(note, node))
        return made

    async def build_transport(*args: Any, **kwargs: Any) -> Any:
        made = await build(*args, **kwargs)
        made._sock_recv = _data_first(made._sock_recv)  # noqa: SLF001 - as above
        return made

    manager.get_connection = get_connection
    manager._build_transport = build_transport  # noqa: SLF001 - as above


def _data_first(receive: Callable[[], Any]) -> Callable[[], Any]:
    """Brokers refuse and close at once; the driver would take the end and drop why."""
    held: list[Exception] = []

    def received() -> tuple[bytes, Exception | None]:
        if held:
            return b"", held.pop()
        data, error = receive()
        if data and error is not None:
            held.append(error)
            error = None
        return data, error

    return received


def _refusal_of(error: Exception, connection: Connection) -> PlimsollError | None:
    """What a connection failed of, if to try again is no use; else None."""
    if isinstance(error, PlimsollError):
        return error
    where = f"The cluster at {connection.bootstrap}"
    if getattr(error, "errno", None) == _SASL_FAILED:
        return AccessRefused(
            f"{where} refused the login of {connection.client.login_name}; check name, "
            "password and sasl.mechanism."
        )
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return AccessRefused(
            f"{where} has a broker whose certificate is not trusted, or not for the "
            f"address that the broker advertises ({error})."
        )
    return None
