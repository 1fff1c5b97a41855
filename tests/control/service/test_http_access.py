"""TLS, logins, roles and limits of the HTTP listener, and what its clients may do."""

import base64
import contextlib
import http.client
import json
import os
import socket
import ssl
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from control.cli.serving import CertificateWatch
from control.service import http_access
from control.service.audit_log import AuditLog
from control.service.control_api import MOST_BODY
from control.service.control_socket import ControlSocket
from control.service.http_access import HttpAccess, Rates
from control.service.http_listener import ControlSite, HttpListener, bound
from control.service.logins import Logins, new_token, password_hash, token_hash
from control.service.open_api import description
from control.service.operator_actions import Action
from control.service.server_tls import MOST_HANDSHAKES, ServerTls
from control.service.service_state import ServiceState
from control.settings.service_table import ListenAddress
from model.errors import ConfigError, GuardrailRefused
from model.goals.goals import Goals
from tests.control.service.test_audit_log import record
from tests.control.service.test_control_socket import FakeActions
from tests.support.control.open_api_schema import check_answer
from tests.support.tls_certificates import Authority

WAIT_S = 300.0
FOREVER_S = 3600.0
ANY = ListenAddress("127.0.0.1", 0)
PASSWORD = "correct horse"
HASH = password_hash(PASSWORD)
TOKEN = new_token()
LOGINS = f"""
[vic]
role = "viewer"
password = "{HASH}"
[olga]
role = "operator"
password = "{HASH}"
[ada]
role = "admin"
password = "{HASH}"
[robot]
role = "operator"
token = "{token_hash(TOKEN)}"
"""


def basic(name: str, password: str = PASSWORD) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


@dataclass
class Site:
    """A listener with TLS and logins."""

    listener: HttpListener
    actions: FakeActions
    authority: Authority
    folder: Path

    def trusting(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority.write(self.folder / "ca.pem"))

    def ask(
        self, path: str, login: str = "", body: Any = None, **headers: str
    ) -> tuple[int, str, http.client.HTTPMessage]:
        connection = http.client.HTTPSConnection(
            *self.listener.address, timeout=WAIT_S, context=self.trusting()
        )
        sent = {"Authorization": login} if login else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        try:
            method = "GET" if body is None else "POST"
            connection.request(method, path, data, headers=sent | headers)
            response = connection.getresponse()
            return response.status, response.read().decode(), response.headers
        finally:
            connection.close()


Start = Callable[[], Site]


@pytest.fixture
def start() -> Iterator[Start]:
    with contextlib.ExitStack() as opened:

        def begin() -> Site:
            folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="http")))
            authority = Authority.make("ca")
            authority.issue(folder / "server.pem", "server")
            (folder / "logins.toml").write_text(LOGINS)
            (folder / "logins.toml").chmod(0o600)
            state = ServiceState()
            state.begin(Goals(), 0.5, decisions_dir=folder)
            actions = FakeActions(folder, state)
            site = ControlSite(opened.enter_context(ControlSocket(folder)), actions)
            access = HttpAccess(
                ServerTls(folder / "server.pem", None), Logins(folder / "logins.toml")
            )
            listener = HttpListener(
                bound(ANY), state, api=True, control=site, access=access, idle_s=FOREVER_S
            )
            return Site(opened.enter_context(listener), actions, authority, folder)

        yield begin


def test_probes_need_no_login_and_metrics_do(start: Start) -> None:
    site = start()
    assert site.listener.url.startswith("https://127.0.0.1:")
    assert site.ask("/livez")[:2] == (200, "ok\n")
    status, _, headers = site.ask("/metrics")
    assert (status, headers["WWW-Authenticate"].split()[0]) == (401, "Basic")
    for login in (basic("vic"), f"Bearer {TOKEN}"):
        status, text, _ = site.ask("/metrics", login)
        assert status == 200
        assert "plimsoll_build_info" in text


@pytest.mark.parametrize(
    "login",
    [
        basic("vic", PASSWORD + " "),
        basic("nobody"),
        basic("vic", ""),
        "Bearer wrong",
        "Bearer ",
        f"Bearer {HASH}",
        "Basic ***",
        "Digest x",
        basic("vic", "x" * 5000),
    ],
    ids=count(),  # Hashes are salted, and ids must be the same in all test processes.
)
def test_wrong_logins_are_refused(start: Start, login: str) -> None:
    site = start()
    for path in ("/metrics", "/api/v1/status", "/api/v1/service", "/nothing"):
        assert site.ask(path, login)[0] == 401
    assert site.ask("/api/v1/actions/abort", login, {})[0] == 401
    assert site.actions.seen == []


def test_without_tls_the_port_answers_nothing(start: Start) -> None:
    site = start()
    with socket.create_connection(site.listener.address, WAIT_S) as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        found = b""
        with contextlib.suppress(ConnectionError):
            while part := client.recv(65536):
                found += part
    assert b"HTTP" not in found


def test_viewers_read_and_operators_act_under_their_own_name(start: Start) -> None:
    site = start()
    status, text, _ = site.ask("/api/v1/actions/pause", basic("vic"), {})
    assert (status, text) == (403, "vic has the role viewer; this needs the role operator\n")
    assert site.ask("/api/v1/service", basic("vic"))[0] == 200
    assert site.actions.seen == []
    status, text, _ = site.ask("/api/v1/actions/throttle", basic("olga"), {"rate": "1MB"})
    assert (status, json.loads(text)["message"]) == (200, "throttle done")
    assert site.ask("/api/v1/actions/abort", f"Bearer {TOKEN}", {})[0] == 200
    assert [(a, r.by, r.rate) for a, r, _ in site.actions.seen] == [
        (Action.THROTTLE, "olga", "1MB"),
        (Action.ABORT, "robot", None),
    ]
    assert site.actions.clients == ["127.0.0.1", "127.0.0.1"]


def test_unknown_documents_are_answered_with_those_that_there_are(start: Start) -> None:
    status, text, _ = start().ask("/api/v1/nothing", basic("vic"))
    known = "status, plan, why, tasks, simulate, service, audit"
    assert (status, text) == (404, f"there is no such document; there are {known}\n")


def test_admins_read_who_did_what(start: Start) -> None:
    site = start()
    AuditLog(site.folder).append(record(1))
    status, text, _ = site.ask("/api/v1/audit", basic("olga"))
    assert (status, text) == (403, "olga has the role operator; this needs the role admin\n")
    status, text, _ = site.ask("/api/v1/audit", basic("ada"))
    assert status == 200
    assert [action["by"] for action in json.loads(text)["actions"]] == ["eve"]


def test_answers_are_what_the_description_says(start: Start) -> None:
    site = start()
    AuditLog(site.folder).append(record(1))
    assert site.ask("/openapi.json")[0] == 401
    status, text, _ = site.ask("/openapi.json", basic("vic"))
    assert status == 200
    assert check_answer("/openapi.json", text) == description()
    for path in ("/api/v1/service", "/api/v1/audit"):
        status, text, _ = site.ask(path, basic("ada"))
        assert status == 200
        check_answer(path, text)
    for action in Action:
        status, text, _ = site.ask(f"/api/v1/actions/{action}", basic("ada"), {})
        assert status == 200
        check_answer(f"/api/v1/actions/{action}", text, "post")


def test_a_client_cannot_act_under_another_name(start: Start) -> None:
    site = start()
    assert site.ask("/api/v1/actions/pause", basic("olga"), {"by": "vic"})[0] == 400
    assert site.actions.seen == []


def test_refusals_of_the_service_reach_the_client(start: Start) -> None:
    site = start()
    site.actions.fail = GuardrailRefused("not now")
    status, text, headers = site.ask("/api/v1/actions/pause", basic("olga"), {})
    assert (status, text, headers["Plimsoll-Error"]) == (409, "not now\n", "GuardrailRefused")


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"", {}, 400),
        (b"\x00", {}, 400),
        (b"[" * 10_000, {}, 400),
        (b'{"plan_hash": 1}', {}, 400),
        (b"{}", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b" " * (MOST_BODY + 1), {}, 413),
    ],
)
def test_bodies_that_cannot_be_used_are_refused(
    start: Start, body: bytes, headers: dict[str, str], status: int
) -> None:
    site = start()
    assert site.ask("/api/v1/actions/pause", basic("olga"), body, **headers)[0] == status
    assert site.actions.seen == []
    assert site.ask("/api/v1/actions/fly", basic("olga"), {})[0] == 404


def test_many_wrong_logins_are_slowed_down_and_a_known_client_is_not(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that none of them is forgotten while a busy machine takes its time.
    monkeypatch.setattr(http_access, "FAILURES_RATE", 0.0)
    site = start()
    assert site.ask("/metrics", basic("vic"))[0] == 200
    found = [site.ask("/metrics", basic("vic", "wrong"))[0] for _ in range(15)]
    assert found[0] == 401
    assert found[-1] == 429
    assert site.ask("/metrics", basic("vic"))[0] == 200
    assert site.ask("/metrics", f"Bearer {TOKEN}")[0] == 200


def test_requests_beyond_the_rate_are_refused(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_access, "BURST", 3.0)
    monkeypatch.setattr(http_access, "RATE", 0.001)
    site = start()
    assert [site.ask("/livez")[0] for _ in range(4)] == [200, 200, 200, 429]


def test_tokens_of_a_bucket_come_back_and_addresses_are_bounded() -> None:
    rates = Rates(rate=2.0, burst=3.0)
    assert [rates.takes("a", 0.0) for _ in range(4)] == [True, True, True, False]
    assert rates.takes("b", 0.0)
    assert [rates.takes("a", 1.0) for _ in range(3)] == [True, True, False]
    assert rates.has("a", 2.0)
    for number in range(3 * http_access.MOST_ADDRESSES):
        rates.takes(str(number), 2.0)
    assert len(rates._left) == http_access.MOST_ADDRESSES


def test_clients_that_begin_no_handshake_do_not_shut_others_out(start: Start) -> None:
    site = start()
    with contextlib.ExitStack() as opened:
        for _ in range(3 * MOST_HANDSHAKES):
            opened.enter_context(socket.create_connection(site.listener.address, WAIT_S))
        assert site.ask("/livez")[0] == 200
        # The oldest were closed.
        handles = len(os.listdir("/proc/self/fd"))
        assert handles < 3 * MOST_HANDSHAKES + MOST_HANDSHAKES + 100
    assert site.ask("/livez")[0] == 200


def test_a_new_certificate_is_used_after_a_reload_and_a_broken_one_is_not(start: Start) -> None:
    site = start()
    path, old = site.folder / "server.pem", site.authority
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(ConfigError, match=r"cannot use tls_certificate .*server\.pem"):
        site.listener.reload_access()
    assert site.ask("/livez")[0] == 200
    site.authority = Authority.make("another")
    site.authority.issue(path, "server")
    site.listener.reload_access()
    assert site.ask("/livez")[0] == 200
    site.authority = old
    with pytest.raises(ssl.SSLCertVerificationError):
        site.ask("/livez")


def test_files_that_do_not_fit_are_named(tmp_path: Path) -> None:
    authority = Authority.make("ca")
    one = authority.issue(tmp_path / "one.pem", "one")
    other = authority.issue(tmp_path / "other.pem", "other")
    locked = authority.issue(tmp_path / "locked.pem", "locked", password="x")
    with pytest.raises(ConfigError, match="the key is that of another certificate"):
        ServerTls(one, other)
    with pytest.raises(ConfigError, match="the key is encrypted; store it without a password"):
        ServerTls(locked, None)
    with pytest.raises(ConfigError, match="No such file"):
        ServerTls(tmp_path / "none.pem", None)
    (tmp_path / "text.pem").write_text("hello")
    with pytest.raises(ConfigError, match="it is damaged, or not PEM"):
        ServerTls(tmp_path / "text.pem", None)


def test_a_certificate_that_ends_soon_is_warned_of_once_a_day(start: Start) -> None:
    site = start()
    tls = ServerTls(site.folder / "server.pem", None)
    # The test's certificates are valid for a day.
    now_s = time.time()
    assert timedelta(hours=23).total_seconds() < tls.not_after_s - now_s < 86_401
    state = ServiceState()
    watch = CertificateWatch(site.listener, [tls, None], state)
    assert state.certificate_until_s == tls.not_after_s
    assert "ends within a day; replace the file, and send SIGHUP" in watch.warning(now_s)
    assert watch.warning(now_s + 3600) == ""
    assert "ended 1 day ago;" in watch.warning(now_s + 2.5 * 86_400)
    assert tls.warning(tls.not_after_s - 31 * 86_400) == ""
    assert "ends in 1 day;" in tls.warning(tls.not_after_s - 1.5 * 86_400)
    assert "server.pem has ended;" in tls.warning(tls.not_after_s + 3600)
    assert "ends in 29 days" in tls.warning(tls.not_after_s - 29.5 * 86_400)


def test_without_logins_the_port_has_no_actions() -> None:
    state = ServiceState()
    state.begin(Goals(), 0.5)
    with tempfile.TemporaryDirectory() as folder:
        actions = FakeActions(Path(folder), state)
        with (
            ControlSocket(Path(folder)) as found,
            HttpListener(bound(ANY), state, api=True, control=ControlSite(found, actions)) as port,
        ):
            connection = http.client.HTTPConnection(*port.address, timeout=WAIT_S)
            connection.request("POST", "/api/v1/actions/pause", b"{}")
            assert connection.getresponse().status == 404
            connection.close()
            assert actions.seen == []
