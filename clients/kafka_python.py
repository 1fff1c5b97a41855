"""kafka-python's client for a `Connection`, which says why it was not let in.

The one place outside of collector, executor and lab that knows a Kafka client: two of
those need it, and may not import each other.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clients.auth_errors import _raise_refusals
from clients.connection import Connection, Login, TokenSource
from clients.reachability import knock
from clients.tokens import Tokens

if TYPE_CHECKING:
    from kafka import KafkaAdminClient

_TRIES: Final = 3
"""Servers that a client is looked up at, one after the other, if they hang."""


def open_client(connection: Connection) -> "KafkaAdminClient":
    """A client that has seen the cluster.

    Raises AccessRefused or ClusterUnreachable, or the driver's own errors.
    """
    from kafka import KafkaAdminClient  # 0.2 s
    from kafka.net.compat import KafkaNetClient

    # The driver would leave a thread behind for each server that is not there.
    knock(connection)
    opened = []

    def net_client(**configs: Any) -> Any:
        made = KafkaNetClient(**configs)
        opened.append(made)
        manager = made._manager  # noqa: SLF001 - there is no public way
        _raise_refusals(manager, connection)
        if len(connection.servers) > 1:
            _limit_connecting(manager, timeout_ms // _TRIES)
        return made

    timeout_ms = int(1000 * connection.timeout_s)
    try:
        client = KafkaAdminClient(
            bootstrap_servers=connection.servers,
            client_id=connection.client.client_id,
            request_timeout_ms=timeout_ms,
            bootstrap_timeout_ms=timeout_ms,
            reconnect_backoff_max_ms=1000,
            kafka_client=net_client,
            **_security(connection),
        )
    except BaseException:
        for failed in opened:
            failed.close()
            failed._net.stop()  # noqa: SLF001 - its thread would go on
        raise
    # By itself it looks for a controller for 30 s, whatever the time-out.
    look = client._refresh_controller_id  # noqa: SLF001 - there is no setting
    client._refresh_controller_id = partial(look, timeout_ms)  # noqa: SLF001 - as above
    return client


def _limit_connecting(manager: Any, most_ms: int) -> None:
    """Have it leave a server that hangs, while there is time for another one."""
    connect = manager.get_connection

    def get_connection(
        node: Any, *, timeout_ms: float | None = None, **others: Any
    ) -> Any:
        # The driver gives all of its time to the first bootstrap server.
        if timeout_ms is not None:
            timeout_ms = min(timeout_ms, most_ms)
        return connect(node, timeout_ms=timeout_ms, **others)

    manager.get_connection = get_connection


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
    return settings


def _provider(tokens: Tokens) -> Any:
    from kafka.net.sasl.oauth import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]  # it has no types
        def token(self) -> str:
            return tokens.current().text

    return Provider()
