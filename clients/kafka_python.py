"""Open kafka-python's client, patched so that it raises what it would retry or hide."""

import socket
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clients.connection import Connection, Login, MskIam, TokenSource
from clients.driver_errors import access_refusal, raise_unauthorized
from clients.msk_tokens import MskTokens
from clients.reachability import check_reachable
from clients.tokens import Tokens
from model.errors import PlimsollError

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_TRIES: Final = 3
"""Bootstrap servers that share the time-out, in case the first ones hang."""


def open_client(connection: Connection) -> "KafkaAdminClient":
    """Return a client that has read the cluster's metadata.

    Raises AccessRefused or ClusterUnreachable, or the driver's own errors.
    """
    from kafka import KafkaAdminClient  # 0.2 s
    from kafka.net.compat import KafkaNetClient

    # The driver would leave a thread behind for each server that is down.
    check_reachable(connection)
    opened = []
    timeout_ms = int(1000 * connection.timeout_s)

    def net_client(**configs: Any) -> Any:
        created = KafkaNetClient(**configs)
        opened.append(created)
        manager = created._manager  # noqa: SLF001 - there is no public way
        _raise_refusals(manager, connection)
        if len(connection.servers) > 1:
            _limit_connecting(manager, timeout_ms // _TRIES)
        return created

    try:
        client = KafkaAdminClient(
            bootstrap_servers=connection.servers,
            client_id=connection.client.client_id,
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=1000,
            socket_options=_socket_options(timeout_ms),
            kafka_client=net_client,
            **_security(connection),
        )
    except BaseException:
        for failed in opened:
            failed.close()
            failed._net.stop()  # noqa: SLF001 - its thread would keep running
        raise
    # By default it searches for a controller for 30 s, whatever the time-out.
    refresh = client._refresh_controller_id  # noqa: SLF001 - there is no setting
    client._refresh_controller_id = partial(refresh, timeout_ms)  # noqa: SLF001 - as above
    _raise_hidden_settings(client)
    return client


def guard_requests(client: "KafkaAdminClient", before_sending: Callable[[str], None]) -> None:
    """Have it call a function before it sends a request, in its own thread.

    The function gets the name of the request, such as ElectLeaders; if it raises, the request is
    not sent. From then on, the request has the client's time-out, whether or not its connection
    is open yet.
    """
    manager = client._manager  # noqa: SLF001 - there is no public way
    send = manager.send

    def guarded(request: Any, *args: Any, **kwargs: Any) -> Any:
        before_sending(type(request).__name__.removesuffix("Request"))
        return send(request, *args, **kwargs)

    manager.send = guarded


def _socket_options(timeout_ms: int) -> list[tuple[int, int, int | bytes]]:
    """Options that keep a request from arriving after it was given up, for `socket.setsockopt`.

    By default, the kernel goes on sending what a closed connection has not delivered, for minutes.
    """
    # With a lingering time of 0, closing resets the connection and drops what was not delivered.
    reset_on_close = struct.pack("ii", 1, 0)
    options: list[tuple[int, int, int | bytes]] = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_LINGER, reset_on_close),
    ]
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        # For a process that is frozen, and does not close it. 0 would be the kernel's default.
        options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, max(1, timeout_ms)))
    return options


def _raise_refusals(manager: Any, connection: Connection) -> None:
    """Have the connection manager raise refusals, which it would retry."""
    connect, build = manager.get_connection, manager._build_transport  # noqa: SLF001 - there is no public way
    refusals: dict[Any, PlimsollError] = {}

    def note(node: Any, error: Exception) -> None:
        if refusal := access_refusal(error, connection):
            refusals[node] = refusal

    def get_connection(node: Any, *args: Any, **kwargs: Any) -> Any:
        if node in refusals:
            raise refusals.pop(node)
        opening = connect(node, *args, **kwargs)
        opening.init_future.add_errback(partial(note, node))
        return opening

    async def build_transport(*args: Any, **kwargs: Any) -> Any:
        transport = await build(*args, **kwargs)
        transport._sock_recv = _data_first(transport._sock_recv)  # noqa: SLF001 - as above
        return transport

    manager.get_connection = get_connection
    manager._build_transport = build_transport  # noqa: SLF001 - as above


def _data_first(receive: Callable[[], Any]) -> Callable[[], Any]:
    """Return data before the error that came with it.

    A broker sends its refusal and closes at once; the driver would drop the refusal.
    """
    pending: list[Exception] = []

    def received() -> tuple[bytes, Exception | None]:
        if pending:
            return b"", pending.pop()
        data, error = receive()
        if data and error is not None:
            pending.append(error)
            error = None
        return data, error

    return received


def _limit_connecting(manager: Any, most_ms: int) -> None:
    """Leave time for another server where one hangs while the client connects."""
    connect = manager.get_connection

    def get_connection(node: Any, *, timeout_ms: float | None = None, **others: Any) -> Any:
        # The driver gives all of its time to the first bootstrap server.
        if timeout_ms is not None:
            timeout_ms = min(timeout_ms, most_ms)
        return connect(node, timeout_ms=timeout_ms, **others)

    manager.get_connection = get_connection


def _raise_hidden_settings(client: "KafkaAdminClient") -> None:
    """Have it raise missing rights, which it returns as text or as empty settings."""
    altered = client._alter_configs_process_responses  # noqa: SLF001 - no other way
    described = client._describe_configs_process_responses  # noqa: SLF001 - as above

    def alter(rows: Sequence[Any]) -> Any:
        raise_unauthorized(row.error_code for row in rows)
        return altered(rows)

    def describe(responses: Sequence[Any], which: str) -> Any:
        raise_unauthorized(row.error_code for r in responses for row in r.results)
        return described(responses, which)

    client._alter_configs_process_responses = alter  # noqa: SLF001 - as above
    client._describe_configs_process_responses = describe  # noqa: SLF001 - as above


def _security(connection: Connection) -> dict[str, Any]:
    """Settings of kafka-python for TLS and SASL."""
    client = connection.client
    settings: dict[str, Any] = {"security_protocol": client.protocol}
    if client.tls is not None:
        settings["ssl_context"] = client.tls.context()
    match client.sasl:
        case Login(mechanism=mechanism, username=name, password=password):
            settings["sasl_mechanism"] = mechanism
            settings["sasl_plain_username"] = name
            settings["sasl_plain_password"] = password
        case TokenSource() as source:
            settings["sasl_mechanism"] = source.mechanism
            tokens = Tokens(source, client, connection.timeout_s)
            settings["sasl_oauth_token_provider"] = _provider(tokens)
        case MskIam() as credentials:
            settings["sasl_oauth_token_provider"] = _provider(MskTokens(credentials, connection))
    return settings


def _provider(tokens: Tokens | MskTokens) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        def token(self) -> str:
            return tokens.current().text

    return Provider()
