"""The control socket: whom it serves, and clients that are slow, huge, many or hostile."""

import contextlib
import http.client
import json
import os
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from control.cli.control_client import ControlClient
from control.cli.output_types import ActionAnswer, CtlStatusAnswer, WhyAnswer
from control.service import control_socket
from control.service.audit_log import AuditVia, read_audit
from control.service.control_api import MOST_BODY
from control.service.control_socket import FILE, LOCK, ControlSocket, Peer, peer_of
from control.service.http_listener import MOST_CONNECTIONS, ControlSite, HttpListener, bound
from control.service.operator_actions import Action, ActionRequest, ActionResult, OperatorActions
from control.service.service_state import ServiceState
from control.settings.service_table import ListenAddress
from model.errors import ConfigError, GuardrailRefused, PlanOutdated, ServiceUnreachable
from model.goals.goals import Goals

WAIT_S = 300.0
FOREVER_S = 3600.0
ANY = ListenAddress("127.0.0.1", 0)


class FakeActions(OperatorActions):
    """Records what is requested; `fail` is raised."""

    def __init__(self, folder: Path, state: ServiceState) -> None:
        super().__init__(folder, state)
        self.seen: list[tuple[Action, ActionRequest, Peer]] = []
        self.clients: list[str] = []
        """Addresses of clients over HTTP."""
        self.fail: Exception | None = None

    def perform(
        self,
        action: Action,
        request: ActionRequest,
        peer: Peer,
        via: AuditVia = AuditVia.SOCKET,
        client: str = "",
    ) -> ActionResult:
        assert (via is AuditVia.HTTP) == bool(client)
        self.seen.append((action, request, peer))
        self.clients += [client] if client else []
        if self.fail is not None:
            raise self.fail
        return ActionResult(message=f"{action} done")


@dataclass
class Served:
    folder: Path
    actions: FakeActions
    listener: HttpListener

    @property
    def client(self) -> ControlClient:
        return ControlClient(self.folder)

    def connected(self) -> socket.socket:
        found = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Without a timeout, it waits for room in a full queue.
        found.connect(str(self.folder / FILE))
        found.settimeout(WAIT_S)
        return found

    def sent(self, data: bytes) -> bytes:
        """All that the server answers to these bytes until it closes the connection."""
        with self.connected() as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(data)
            found = b""
            with contextlib.suppress(ConnectionError):
                while part := client.recv(65536):
                    found += part
        return found

    def works(self) -> None:
        assert self.client.act("pause", {"by": "eve"}, ActionAnswer).message == "pause done"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A state folder with a short name."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="ctl") as found:
        yield Path(found)


Serve = Callable[..., Served]


@pytest.fixture
def serve(folder: Path) -> Iterator[Serve]:
    with contextlib.ExitStack() as opened:

        def begin(idle_s: float = FOREVER_S) -> Served:
            state = ServiceState()
            state.begin(Goals(), 0.5, decisions_dir=folder)
            found = opened.enter_context(ControlSocket(folder))
            actions = FakeActions(folder, state)
            site = ControlSite(found, actions)
            listener = HttpListener(bound(ANY), state, control=site, idle_s=idle_s)
            return Served(folder, actions, opened.enter_context(listener))

        yield begin


# ---- one service for each folder


def test_the_socket_is_the_users_alone(folder: Path) -> None:
    with ControlSocket(folder) as found:
        assert found.path.stat().st_mode & 0o777 == 0o600
    assert not found.path.exists()


def test_a_second_service_is_refused_and_leaves_the_first_alone(serve: Serve) -> None:
    served = serve()
    with pytest.raises(ConfigError, match="another plimsoll service runs with the state folder"):
        ControlSocket(served.folder)
    served.works()


def test_the_socket_of_a_killed_service_is_replaced(folder: Path) -> None:
    killed = ControlSocket(folder)
    killed.listening.close()
    assert killed._lock is not None
    killed._lock.close()
    with pytest.raises(ServiceUnreachable, match="has been killed; start it again"):
        ControlClient(folder).get("/control/v1/status", CtlStatusAnswer)
    with ControlSocket(folder) as found:
        assert found.path.is_socket()


def test_a_file_in_place_of_the_socket_is_not_removed(folder: Path) -> None:
    (folder / FILE).write_text("precious")
    with pytest.raises(ConfigError, match=r"is not a socket; remove it"):
        ControlSocket(folder)
    assert (folder / FILE).read_text() == "precious"
    (folder / FILE).unlink()
    # The folder is free again.
    ControlSocket(folder).close()


def test_a_link_is_not_followed(folder: Path) -> None:
    (folder / "other").write_text("precious")
    (folder / FILE).symlink_to(folder / "other")
    with pytest.raises(ConfigError, match="is not a socket"):
        ControlSocket(folder)


def test_the_end_of_a_service_leaves_the_socket_of_another_alone(folder: Path) -> None:
    """Someone may have removed the folder while a service ran."""
    first = ControlSocket(folder)
    (folder / LOCK).unlink()
    with ControlSocket(folder) as second:
        first.close()
        assert second.path.is_socket()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda p: p.symlink_to("/dev/zero")])
def test_a_pipe_folder_or_link_in_place_of_the_lock_is_named(
    folder: Path, make: Callable[[Path], None]
) -> None:
    make(folder / LOCK)
    with pytest.raises(ConfigError, match=r"service\.lock is not a regular file; move it away"):
        ControlSocket(folder)


def test_long_paths_work(folder: Path) -> None:
    deep = folder / ("d" * 100) / ("e" * 100)
    with ControlSocket(deep) as found:
        client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with client, control_socket.short_path(found.path) as short:
            client.connect(short)


def test_an_unwritable_folder_is_named(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(ConfigError, match="set state_dir to a writable folder"):
        ControlSocket(folder / "file" / "state")


def test_without_a_service_the_client_says_what_to_do(folder: Path) -> None:
    with pytest.raises(ServiceUnreachable, match="start it with plimsoll service"):
        ControlClient(folder).get("/control/v1/status", CtlStatusAnswer)


# ---- who may ask


def test_the_peer_is_the_one_that_the_system_names(serve: Serve) -> None:
    served = serve()
    served.works()
    ((action, request, peer),) = served.actions.seen
    assert (action, request.by) == (Action.PAUSE, "eve")
    assert (peer.uid, peer.pid) == (os.geteuid(), os.getpid())


@pytest.mark.parametrize("path", ["/control/v1/actions/abort", "/control/v1/status", "/livez"])
def test_other_users_are_refused_whatever_the_mode_of_the_socket(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    served = serve()
    other = os.geteuid() + 1
    monkeypatch.setattr("control.service.control_api.peer_of", lambda _: Peer(uid=other, pid=1))
    with pytest.raises(GuardrailRefused, match="for the service's user"):
        served.client.act("abort", {"by": "eve"}, ActionAnswer) if "actions" in path else (
            served.client.get(path, CtlStatusAnswer)
        )
    assert served.actions.seen == []


def test_the_client_says_nothing_to_the_socket_of_another_user(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, other = serve(), os.geteuid() + 12_345
    monkeypatch.setattr("control.cli.control_client.peer_of", lambda _: Peer(uid=other, pid=1))
    with pytest.raises(GuardrailRefused, match=rf"belongs to the user {other}: nothing was sent"):
        served.client.act("abort", {"by": "eve"}, ActionAnswer)
    assert served.actions.seen == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_root_asks_the_service_of_the_folders_owner_alone(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = serve()
    monkeypatch.setattr("control.cli.control_client.peer_of", lambda _: Peer(uid=12_345, pid=1))
    with pytest.raises(GuardrailRefused, match="belongs to the user 12345"):
        served.works()
    os.chown(served.folder, 12_345, -1)
    served.works()


def test_root_may_ask() -> None:
    assert Peer(uid=0, pid=1).is_allowed
    assert Peer(uid=os.geteuid(), pid=1).is_allowed
    assert not Peer(uid=os.geteuid() + 1, pid=1).is_allowed


def test_without_peer_credentials_the_mode_of_the_socket_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    left, right = socket.socketpair()
    with left, right:
        found = peer_of(left)
    assert (found.uid, found.pid, found.user, found.is_allowed) == (None, None, "", True)


def test_a_user_without_a_name_has_none() -> None:
    assert Peer(uid=2**31, pid=1).user == ""


# ---- requests


def test_the_listener_on_a_port_has_no_actions(serve: Serve) -> None:
    served = serve()
    for method, path in [("POST", "/control/v1/actions/pause"), ("GET", "/control/v1/status")]:
        connection = http.client.HTTPConnection(*served.listener.address, timeout=WAIT_S)
        connection.request(method, path, json.dumps({"by": "eve"}) if method == "POST" else None)
        assert connection.getresponse().status in (404, 413)
        connection.close()
    assert served.actions.seen == []


def test_status_is_served_before_the_loop_begins(serve: Serve) -> None:
    found = serve().client.get("/control/v1/status", CtlStatusAnswer)
    assert (found.phase, found.mode, found.run, found.paused) == (None, None, None, None)
    assert found.pid == os.getpid()
    assert "first observation" in found.not_ready


def test_the_read_only_api_is_served_here_though_it_is_off_on_the_port(serve: Serve) -> None:
    found = serve().client.get("/api/v1/why?last=3", WhyAnswer)
    assert found.decisions == ()


@pytest.mark.parametrize(
    "error", [GuardrailRefused("no"), PlanOutdated("no"), ConfigError("no \x1b[2J")]
)
def test_the_client_raises_what_the_service_does(serve: Serve, error: Exception) -> None:
    served = serve()
    served.actions.fail = error
    with pytest.raises(type(error), match="no") as caught:
        served.client.act("pause", {"by": "eve"}, ActionAnswer)
    assert str(caught.value).isprintable()


def test_an_internal_error_ends_neither_server_nor_client(serve: Serve) -> None:
    served = serve()
    served.actions.fail = RuntimeError("secret")
    with pytest.raises((GuardrailRefused, ConfigError)) as caught:
        served.client.act("pause", {"by": "eve"}, ActionAnswer)
    assert "secret" not in str(caught.value)
    served.actions.fail = None
    served.works()


@pytest.mark.parametrize("action", ["", "explode", "../status", "PAUSE", "pause/x", "%00"])
def test_unknown_actions_are_refused(serve: Serve, action: str) -> None:
    served = serve()
    with pytest.raises((ConfigError, GuardrailRefused)):
        served.client.act(action, {"by": "eve"}, ActionAnswer)
    assert served.actions.seen == []


@pytest.mark.parametrize(
    "request_fields",
    [
        {},
        {"by": None},
        {"by": 7},
        {"by": ["eve"]},
        {"by": "eve", "colour": "red"},
        {"by": "eve", "plan_hash": 1.5},
        {"by": "eve", "rate": {"nested": {}}},
    ],
)
def test_requests_that_are_not_as_declared_are_refused(
    serve: Serve, request_fields: dict[str, Any]
) -> None:
    served = serve()
    with pytest.raises(ConfigError):
        served.client.act("pause", request_fields, ActionAnswer)
    assert served.actions.seen == []


def post(body: bytes, *, length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    head = (
        "POST /control/v1/actions/pause HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        f"Content-Length: {size}\r\n\r\n"
    )
    return head.encode() + body


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\x00\xff\xfe" * 100,
        b"null",
        b'"text"',
        b"[" * 10_000,
        b'{"by": "eve"',
        b'{"by": "\xff"}',
        b'{"by": "e\\ud800"}',
        b'{"by": NaN}',
    ],
)
def test_bodies_that_are_no_requests_are_refused(serve: Serve, body: bytes) -> None:
    served = serve()
    assert served.sent(post(body)).startswith(b"HTTP/1.1 400 ")
    assert served.actions.seen == []
    served.works()


def test_a_huge_body_is_refused_without_being_kept(serve: Serve) -> None:
    served = serve()
    whole = b'{"by": "' + b"x" * 2 * MOST_BODY + b'"}'
    assert served.sent(post(whole)).startswith(b"HTTP/1.1 413 ")
    # Announced, but never sent: the answer does not wait for it.
    with served.connected() as client:
        client.sendall(post(b"x" * 2 * MOST_BODY, length=10**12))
        assert client.recv(12) == b"HTTP/1.1 413"
    assert served.actions.seen == []
    served.works()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        bytes(range(256)) * 1000,
        b"GET /control/v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000,
        b"GET /control/v1/status HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        struct.pack(">I", 2**31) * 1000,
    ],
)
def test_garbage_gets_no_state_and_ends_the_connection(serve: Serve, data: bytes) -> None:
    served = serve(idle_s=2.0)
    assert b'"phase"' not in served.sent(data)
    served.works()


def test_a_client_that_sends_slowly_is_disconnected_and_nothing_is_done(serve: Serve) -> None:
    served = serve(idle_s=0.5)
    with served.connected() as client:
        client.sendall(post(b'{"by": ', length=1000))
        client.settimeout(0.02)
        deadline, ended = time.monotonic() + WAIT_S, False
        while not ended:
            assert time.monotonic() < deadline
            try:
                client.send(b" ")
                ended = not client.recv(65536)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
    assert served.actions.seen == []
    served.works()


def test_hundreds_of_connections_do_not_shut_others_out_of_the_socket(serve: Serve) -> None:
    served = serve()
    with contextlib.ExitStack() as opened:
        for _ in range(3 * MOST_CONNECTIONS):
            opened.enter_context(served.connected())
        served.works()
        connection = http.client.HTTPConnection(*served.listener.address, timeout=WAIT_S)
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
        connection.close()
    served.works()


def test_connections_on_the_port_do_not_use_up_those_of_the_socket(serve: Serve) -> None:
    served = serve()
    with contextlib.ExitStack() as opened:
        mine = opened.enter_context(served.connected())
        for _ in range(2 * MOST_CONNECTIONS):
            found = socket.create_connection(served.listener.address, timeout=WAIT_S)
            opened.enter_context(found)
        mine.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert mine.recv(12) == b"HTTP/1.1 200"


def test_a_client_that_leaves_does_not_undo_its_action(serve: Serve) -> None:
    served = serve()
    with served.connected() as client:
        client.sendall(post(b'{"by": "eve"}'))
    deadline = time.monotonic() + WAIT_S
    while not served.actions.seen:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_service_that_answers_garbage_is_reported(folder: Path) -> None:
    import threading

    with ControlSocket(folder) as found:
        found.listening.setblocking(True)

        def answer() -> None:
            connection, _ = found.listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x00\xff{}")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(ServiceUnreachable, match="a form that this version does not know"):
            ControlClient(folder).get("/control/v1/status", CtlStatusAnswer)
        thread.join()


def test_requests_before_the_loop_begins_are_refused(folder: Path) -> None:
    actions = OperatorActions(folder, ServiceState())
    with pytest.raises(GuardrailRefused, match="the service is starting; try again"):
        actions.perform(Action.PAUSE, ActionRequest(by="eve"), Peer(0, 1))
    assert read_audit(folder) == []
