"""The proxy, between a client and a server that echoes."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

import pytest

from lab.local_cluster.tcp_ports import HOST, answers, free_ports
from tests.support.lab.proxy import Api, Fault, Proxy

SILENCE_S = 0.3
"""Long enough for any answer that is sent on this machine."""


@dataclass
class Echo:
    """A server that answers each message with its correlation id and its body."""

    port: int
    heard: list[bytes] = field(default_factory=list)
    peers: list[str] = field(default_factory=list)

    def serve(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, (host, _) = listener.accept()
                self.peers.append(host)
                threading.Thread(target=self._answer, args=(connection,)).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while message := receive(connection):
                self.heard.append(message[8:])
                connection.sendall(sized(message[4:]))


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def receive(connection: socket.socket) -> bytes:
    """The next message; empty at the end of the connection."""
    return exactly(connection, int.from_bytes(exactly(connection, 4), "big"))


def exactly(connection: socket.socket, size: int) -> bytes:
    """So many bytes; fewer at the end of the connection."""
    result = b""
    while len(result) < size and (more := connection.recv(size - len(result))):
        result += more
    return result


class Client:
    """Sends requests to the proxy and returns the answers."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection((HOST, port), timeout=300.0)
        self._number = 0

    def ask(self, api: Api, body: bytes) -> None:
        self._number += 1
        head = api.to_bytes(2, "big") + bytes(2) + self._number.to_bytes(4, "big")
        self._socket.sendall(sized(head + body))

    def answer(self, within_s: float = 300.0) -> bytes | None:
        """The body of the next answer; None without an answer, b"" at the end."""
        self._socket.settimeout(within_s)
        try:
            return receive(self._socket)[4:]
        except TimeoutError:
            return None
        except OSError:
            return b""

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    with socket.create_server((HOST, 0)) as listener:
        echo = Echo(listener.getsockname()[1])
        threading.Thread(target=echo.serve, args=(listener,), daemon=True).start()
        yield echo
        listener.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    (port,) = free_ports(1)
    with Proxy({port: echo.port}, source="127.0.0.2") as started:
        yield started


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    with closing(Client(proxy.ports[0])) as connected:
        yield connected


def test_messages_pass_and_come_from_its_own_address(echo: Echo, client: Client) -> None:
    for body in (b"one", b"", b"x" * 200_000):
        client.ask(Api.METADATA, body)
        assert client.answer() == body
    assert echo.peers == ["127.0.0.2"]


def test_a_lost_request_does_not_arrive_and_the_next_one_does(
    echo: Echo, proxy: Proxy, client: Client
) -> None:
    proxy.order(Api.ELECT_LEADERS, Fault.LOSE_REQUEST)
    client.ask(Api.ELECT_LEADERS, b"first")
    client.ask(Api.METADATA, b"second")
    client.ask(Api.ELECT_LEADERS, b"third")
    assert [client.answer(), client.answer()] == [b"second", b"third"]
    assert echo.heard == [b"second", b"third"]
    assert proxy.faults_left(Api.ELECT_LEADERS) == 0


def test_a_request_whose_answer_is_lost_arrives(echo: Echo, proxy: Proxy, client: Client) -> None:
    proxy.order(Api.ELECT_LEADERS, Fault.LOSE_ANSWER)
    client.ask(Api.ELECT_LEADERS, b"first")
    client.ask(Api.ELECT_LEADERS, b"second")
    assert client.answer() == b"second"
    assert echo.heard == [b"first", b"second"]


@pytest.mark.parametrize(("harm", "heard"), [(Fault.CUT_BEFORE, []), (Fault.CUT_AFTER, [b"first"])])
def test_a_connection_ends_before_or_after_its_request_arrives(
    echo: Echo, proxy: Proxy, client: Client, harm: Fault, heard: list[bytes]
) -> None:
    proxy.order(Api.METADATA, harm)
    client.ask(Api.METADATA, b"first")
    assert client.answer() == b""
    assert echo.heard == heard


def test_a_delayed_answer_comes_late(proxy: Proxy, client: Client) -> None:
    proxy.order(Api.METADATA, Fault.DELAY, delay_s=2 * SILENCE_S)
    client.ask(Api.METADATA, b"first")
    assert client.answer(SILENCE_S) is None
    assert client.answer() == b"first"


def test_faults_can_be_cleared(proxy: Proxy, client: Client) -> None:
    proxy.order(Api.METADATA, Fault.LOSE_REQUEST, times=9)
    proxy.heal()
    client.ask(Api.METADATA, b"first")
    assert client.answer() == b"first"


def test_a_proxy_can_disappear_and_return(proxy: Proxy, client: Client) -> None:
    client.ask(Api.METADATA, b"first")
    assert client.answer() == b"first"
    proxy.cut()
    assert client.answer() == b""
    with closing(Client(proxy.ports[0])) as again:
        again.ask(Api.METADATA, b"second")
        assert again.answer() == b"second"
        proxy.go_away()
        assert again.answer() == b""
    assert not answers(proxy.ports[0])
    proxy.come_back()
    with closing(Client(proxy.ports[0])) as again:
        again.ask(Api.METADATA, b"third")
        assert again.answer() == b"third"


def test_one_broker_can_disappear(echo: Echo) -> None:
    away, kept = free_ports(2)
    with (
        Proxy({away: echo.port, kept: echo.port}) as proxy,
        closing(Client(away)) as cut,
        closing(Client(kept)) as client,
    ):
        for each in (cut, client):
            each.ask(Api.METADATA, b"first")
            assert each.answer() == b"first"
        proxy.go_away(away)
        assert cut.answer() == b""
        assert not answers(away)
        client.ask(Api.METADATA, b"second")
        assert client.answer() == b"second"
        proxy.come_back()
        assert answers(away)


def test_an_unreachable_broker_ends_the_connection() -> None:
    listening, away = free_ports(2)
    with Proxy({listening: away}) as proxy, closing(Client(proxy.ports[0])) as refused:
        assert refused.answer() == b""


def test_nothing_listens_after_its_end(echo: Echo) -> None:
    (port,) = free_ports(1)
    with Proxy({port: echo.port}) as proxy:
        assert answers(proxy.ports[0])
    assert not answers(port)
