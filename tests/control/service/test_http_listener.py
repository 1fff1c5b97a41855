"""The HTTP server of the service, and clients that are slow, many or hostile."""

import contextlib
import http.client
import select
import socket
import time
from collections.abc import Callable, Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from control.service import http_access
from control.service.http_listener import MOST_CONNECTIONS, HttpListener, bound
from control.service.service_state import MISSED_BEATS, ServiceState
from control.settings.service_table import ListenAddress, listen_address
from model.errors import ConfigError, PortTaken
from model.goals.goals import Goals

WAIT_S = 300.0
"""Limit for what takes a second on an idle machine."""
ANY = ListenAddress("127.0.0.1", 0)
FOREVER_S = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


Start = Callable[..., HttpListener]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a listener on a port of the system's choice."""
    with contextlib.ExitStack() as opened:

        def begin(state: ServiceState | None = None, idle_s: float = FOREVER_S) -> HttpListener:
            found = HttpListener(bound(ANY), state or ServiceState(), idle_s=idle_s)
            return opened.enter_context(found)

        yield begin


def got(listener: HttpListener, path: str, method: str = "GET", **headers: str) -> tuple[int, str]:
    """Status and text of a response."""
    connection = http.client.HTTPConnection(*listener.address, timeout=WAIT_S)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def test_a_port_for_metrics_serves_nothing_else_under_any_name() -> None:
    listening = bound(ANY)
    host, port = listening.getsockname()
    refused = [("/livez", 404), ("/api/v1/status", 404), ("/metrics/../livez", 404)]
    with HttpListener(None, ServiceState(), api=True, metrics=listening):

        def ask(path: str, method: str = "GET", body: bytes = b"", name: str = host) -> int:
            connection = http.client.HTTPConnection(host, port, timeout=WAIT_S)
            with contextlib.closing(connection):
                connection.request(method, path, body or None, {"Host": f"{name}:{port}"})
                return connection.getresponse().status

        assert ask("/metrics") == ask("/metrics", name="plimsoll.kafka.svc") == 200
        for path, status in refused:
            assert ask(path) == status
        assert ask("/metrics", "POST") == 405
        assert ask("/metrics", body=b"x" * 10_000) == 413
    with socket.socket() as after:
        assert after.connect_ex((host, port)) != 0


def test_a_port_for_metrics_limits_the_rate_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_access, "BURST", 3.0)
    monkeypatch.setattr(http_access, "RATE", 0.001)
    listening = bound(ANY)
    host, port = listening.getsockname()
    with HttpListener(None, ServiceState(), metrics=listening):
        statuses = []
        for _ in range(4):
            connection = http.client.HTTPConnection(host, port, timeout=WAIT_S)
            with contextlib.closing(connection):
                connection.request("GET", "/metrics")
                statuses.append(connection.getresponse().status)
    assert statuses == [200, 200, 200, 429]


def test_a_port_for_metrics_closes_the_oldest_of_too_many_connections() -> None:
    listening = bound(ANY)
    host, port = listening.getsockname()
    with (
        HttpListener(None, ServiceState(), metrics=listening, idle_s=FOREVER_S),
        contextlib.ExitStack() as opened,
    ):
        clients = [
            opened.enter_context(socket.create_connection((host, port), WAIT_S))
            for _ in range(MOST_CONNECTIONS + 5)
        ]
        deadline = time.monotonic() + WAIT_S
        while not any(map(is_closed, clients)):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        connection = http.client.HTTPConnection(host, port, timeout=WAIT_S)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            assert connection.getresponse().status == 200


def connected(listener: HttpListener) -> socket.socket:
    return socket.create_connection(listener.address, timeout=WAIT_S)


def is_closed(client: socket.socket) -> bool:
    """Whether the server has closed the connection; reads what is there."""
    while select.select([client], [], [], 0)[0]:
        try:
            if not client.recv(65536):
                return True
        except ConnectionError:
            return True
    return False


def wait_closed(client: socket.socket) -> None:
    """Read until the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        while client.recv(65536):
            pass


def test_probes_answer_in_plain_text(start: Start) -> None:
    clock = Clock()
    state = ServiceState(clock=clock, steady=clock)
    state.begin(Goals(), 0.5)
    listener = start(state)
    assert got(listener, "/livez") == (200, "ok\n")
    reason = "the first observation of the cluster is not complete yet\n"
    assert got(listener, "/readyz") == (503, reason)
    clock.now_s += MISSED_BEATS * 0.5 + 1
    assert got(listener, "/livez") == (503, "the loop has not turned for 61.0 s\n")
    assert got(listener, "/livez", "HEAD")[0] == 503


def test_metrics_are_served_with_their_content_type(start: Start) -> None:
    listener = start()
    connection = http.client.HTTPConnection(*listener.address, timeout=WAIT_S)
    connection.request("GET", "/metrics")
    response = connection.getresponse()
    assert response.getheader("Content-Type", "").startswith("text/plain; version=")
    names = {family.name for family in parsed(response.read().decode())}
    assert "plimsoll_build_info" in names
    connection.close()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/metrics/../../etc/passwd", 404),
        ("POST", "/metrics", 405),
        ("DELETE", "/livez", 405),
    ],
)
def test_anything_else_is_refused(start: Start, method: str, path: str, status: int) -> None:
    assert got(start(), path, method)[0] == status


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9645", "127.0.0.1.evil.example"])
def test_other_host_names_are_refused(start: Start, host: str) -> None:
    """A web page could let its own name point to this machine."""
    assert got(start(), "/metrics", Host=host)[0] == 403


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:80", "[::1]:9", "[::1]"])
def test_names_of_this_machine_are_accepted_with_any_port(start: Start, host: str) -> None:
    """As through an SSH tunnel."""
    assert got(start(), "/livez", Host=host)[0] == 200


@pytest.mark.parametrize("length", [b"Content-Length: 1000000000", b"Transfer-Encoding: chunked"])
def test_a_body_is_refused_without_being_read(start: Start, length: bytes) -> None:
    listener = start()
    with connected(listener) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n" + length + b"\r\n\r\n")
        text = client.recv(65536)
        assert text.startswith(b"HTTP/1.1 413 ")
        wait_closed(client)
    assert got(listener, "/livez")[0] == 200


@pytest.mark.parametrize(
    "request_text",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"\r\n" * 1000 + b"\x00" * 1000,
    ],
)
def test_garbage_gets_no_metrics_and_ends_the_connection(start: Start, request_text: bytes) -> None:
    listener = start(idle_s=2.0)
    with connected(listener) as client:
        with contextlib.suppress(ConnectionError):
            client.sendall(request_text)
        text = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(65536):
                text += part
    assert b"plimsoll_build_info" not in text
    assert got(listener, "/livez")[0] == 200


def test_a_client_that_sends_slowly_is_disconnected(start: Start) -> None:
    listener = start(idle_s=0.5)
    with connected(listener) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        deadline = time.monotonic() + WAIT_S
        while not is_closed(client):
            assert time.monotonic() < deadline
            with contextlib.suppress(ConnectionError):
                client.send(b"x")
            time.sleep(0.02)
    assert got(listener, "/livez")[0] == 200


def test_a_client_that_does_not_read_is_disconnected(start: Start) -> None:
    listener = start(idle_s=0.5)
    with connected(listener) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        wanted = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
        client.settimeout(0.2)
        deadline = time.monotonic() + WAIT_S
        with contextlib.suppress(ConnectionError):
            while time.monotonic() < deadline:
                # Requests that are never answered fill the buffers in both directions.
                with contextlib.suppress(TimeoutError):
                    client.send(wanted * 100)
        assert time.monotonic() < deadline
    assert got(listener, "/livez")[0] == 200


def test_hundreds_of_connections_do_not_shut_others_out(start: Start) -> None:
    listener = start()
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(connected(listener)) for _ in range(500)]
        assert got(listener, "/livez")[0] == 200
        deadline = time.monotonic() + WAIT_S
        while sum(map(is_closed, clients)) < 500 - MOST_CONNECTIONS:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert got(listener, "/metrics")[0] == 200
    assert got(listener, "/livez")[0] == 200


def test_connections_without_a_request_are_closed_before_one_that_has_sent_one(
    start: Start,
) -> None:
    listener = start()
    asking = http.client.HTTPConnection(*listener.address, timeout=WAIT_S)
    asking.request("GET", "/livez")
    assert asking.getresponse().read() == b"ok\n"
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(connected(listener)) for _ in range(2 * MOST_CONNECTIONS)]
        deadline = time.monotonic() + WAIT_S
        while sum(map(is_closed, clients)) <= MOST_CONNECTIONS:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert asking.sock is not None
        assert not is_closed(asking.sock)
    asking.close()


def test_requests_on_one_connection_keep_it_open(start: Start) -> None:
    listener = start()
    connection = http.client.HTTPConnection(*listener.address, timeout=WAIT_S)
    for _ in range(3):
        connection.request("GET", "/livez")
        assert connection.getresponse().read() == b"ok\n"
        assert connection.sock is not None
    connection.close()


def test_closing_ends_open_connections_and_frees_the_port() -> None:
    listener = HttpListener(bound(ANY), ServiceState())
    with connected(listener) as client:
        # An answer first, so that the listener has the connection.
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
        client.sendall(b"GET /livez")
        listener.close()
        wait_closed(client)
    listener.close()
    bound(listener.address).close()


def test_a_port_in_use_is_named_with_what_to_do() -> None:
    with bound(ANY) as taken:
        host, port = taken.getsockname()
        with pytest.raises(
            PortTaken, match=rf"port {port} for the service is in use .*\[service\]"
        ):
            bound(ListenAddress(host, port))


def test_ipv6_loopback_is_served() -> None:
    try:
        listening = bound(listen_address("[::1]:0"))
    except ConfigError:
        pytest.skip("no IPv6 on this machine")
    with HttpListener(listening, ServiceState()) as listener:
        assert listener.address.url.startswith("http://[::1]:")
        assert got(listener, "/livez") == (200, "ok\n")
