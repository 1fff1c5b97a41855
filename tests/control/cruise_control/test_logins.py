"""TLS, logins and roles of Cruise Control's API, as Strimzi's operator uses them."""

import base64
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.requests import ENDPOINTS
from control.loop.questions import check_name
from control.service.credentials_file import logins_of
from control.service.http_access import HttpAccess
from control.service.logins import Role
from control.service.operator_actions import client_name
from control.service.server_tls import ServerTls
from control.service.service_state import ServiceState
from tests.control.cruise_control.test_reads import UNEVEN, seen
from tests.support.control.cruise_bench import CruiseClient, served
from tests.support.tls_certificates import Authority
from tests.support.tui.terminals import LONG_S

CCCLI = Path(sys.executable).with_name("cccli")
needs_cccli = pytest.mark.skipif(
    not CCCLI.exists(), reason="cruise-control-client is not installed"
)
USERS = """rebalance-operator: lYvM1cUDpWmK,ADMIN
healthcheck: 9bXfGzqL0aTe, USER
auditor: ZtR8kQw1, VIEWER
"""


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


OPERATOR = basic("rebalance-operator:lYvM1cUDpWmK")
HEALTHCHECK = basic("healthcheck:9bXfGzqL0aTe")
AUDITOR = basic("auditor:ZtR8kQw1")


@pytest.fixture
def client(parts: CruiseControl, tmp_path: Path) -> Iterator[CruiseClient]:
    authority = Authority.make("ca")
    certificate = authority.issue(tmp_path / "server.pem", "server")
    users = tmp_path / "cruise-control.authFile"
    users.write_text(USERS)
    users.chmod(0o600)
    access = HttpAccess(ServerTls(certificate, None), logins_of(users))
    trusted = ssl.create_default_context(cafile=authority.write(tmp_path / "ca.pem"))
    with served(parts, access, trusted) as found:
        yield found


@pytest.mark.parametrize(
    "login", ["", basic("rebalance-operator:wrong"), basic("nobody:x"), "Bearer x", "Basic ?"]
)
def test_without_a_login_nothing_is_answered(client: CruiseClient, login: str) -> None:
    headers = {"Authorization": login} if login else {}
    for path in ("state?json=true", "nothing"):
        reply = client.get(path, **headers)
        assert reply.status == 401
        assert reply.headers["www-authenticate"].startswith("Basic realm=")
    assert client.post("rebalance?json=true&dryrun=false", **headers).status == 401


def test_roles_are_named_as_in_the_file_of_the_logins(client: CruiseClient) -> None:
    refused = client.post("rebalance?dryrun=false", Authorization=AUDITOR)
    assert (refused.status, refused.text) == (
        403,
        "auditor has the role VIEWER; this needs the role ADMIN\n",
    )


def test_each_role_has_the_endpoints_that_it_has_in_cruise_control(client: CruiseClient) -> None:
    logins = {Role.VIEWER: AUDITOR, Role.OPERATOR: HEALTHCHECK, Role.ADMIN: OPERATOR}
    for endpoint in ENDPOINTS.values():
        for role, login in logins.items():
            reply = client.ask(
                endpoint.method,
                f"/kafkacruisecontrol/{endpoint.name}?json=true&nothing=1",
                Authorization=login,
            )
            # What is let through fails by its unknown parameter.
            assert reply.status == (400 if role.includes(endpoint.role) else 403), endpoint.name
            shouted = client.ask(
                endpoint.method,
                f"/kafkacruisecontrol/{endpoint.name.upper()}?json=true&nothing=1",
                Authorization=login,
            )
            assert shouted.status == reply.status, endpoint.name
    by_role = {
        role: {name for name, endpoint in ENDPOINTS.items() if endpoint.role is role}
        for role in Role
    }
    assert by_role[Role.VIEWER] == {"kafka_cluster_state", "user_tasks", "review_board"}
    assert {"state", "load", "partition_load", "proposals"} <= by_role[Role.OPERATOR]
    assert {"rebalance", "stop_proposal_execution", "review"} <= by_role[Role.ADMIN]


@needs_cccli
@pytest.mark.parametrize(
    ("password", "shown"),
    [("lYvM1cUDpWmK", "ExecutorState"), ("wrong", "wrong name, password"), ("", "log in with")],
)
def test_cccli_logs_in_with_what_netrc_has(
    parts: CruiseControl, tmp_path: Path, password: str, shown: str
) -> None:
    users = tmp_path / "cruise-control.authFile"
    users.write_text(USERS)
    netrc = tmp_path / ".netrc"
    line = f"machine 127.0.0.1 login rebalance-operator password {password}\n"
    netrc.write_text(line if password else "")
    for file in (users, netrc):
        file.chmod(0o600)
    with served(parts, HttpAccess(None, logins_of(users))) as client:
        run = subprocess.run(
            [CCCLI, "-a", f"127.0.0.1:{client.address.port}", "state", "--json", "true"],
            capture_output=True,
            text=True,
            timeout=LONG_S,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )
    assert shown in run.stdout + run.stderr


@pytest.mark.parametrize("path", ["rebalance", "rebal%61nce", "rebal%2561nce", "./rebalance"])
def test_no_spelling_of_a_path_needs_less(client: CruiseClient, path: str) -> None:
    reply = client.post(f"{path}?json=true", Authorization=HEALTHCHECK)
    assert reply.status in (403, 404)


def test_the_address_of_a_client_is_shown_without_its_name(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    assert client.get("load?json=true", Authorization=HEALTHCHECK).status == 200
    query = "user_tasks?json=true&client_ids=127.0.0.1&endpoints=LOAD"
    (row,) = client.get(query, Authorization=AUDITOR).json["userTasks"]
    assert row["ClientIdentity"] == "127.0.0.1"
    (task,) = (task for task in parts.tasks.all() if task.endpoint == "load")
    assert task.client == "healthcheck@127.0.0.1"


@pytest.mark.parametrize(
    ("login", "status", "roles"),
    [(AUDITOR, 403, None), (HEALTHCHECK, 200, ["USER"]), (OPERATOR, 200, ["ADMIN"])],
    ids=["viewer", "user", "admin"],
)
def test_a_client_may_ask_for_its_role(
    client: CruiseClient, login: str, status: int, roles: list[str] | None
) -> None:
    reply = client.get("permissions?json=true", Authorization=login)
    assert reply.status == status
    assert roles is None or reply.json["roles"] == roles


def test_pages_of_the_same_origin_are_served(client: CruiseClient) -> None:
    host, port = client.address
    own = {"Authorization": HEALTHCHECK, "Origin": f"https://{host}:{port}"}
    assert client.get("state?json=true", **own).status == 200
    other = {"Authorization": HEALTHCHECK, "Origin": f"http://{host}:{port}"}
    assert client.get("state?json=true", **other).status == 403


def test_with_tls_any_name_of_the_host_is_served(client: CruiseClient) -> None:
    headers = {"Authorization": HEALTHCHECK, "Host": "kafka-cruise-control.kafka.svc:9090"}
    assert client.get("state?json=true", **headers).status == 200


def test_bodies_without_a_login_are_not_read(client: CruiseClient) -> None:
    reply = client.ask(
        "POST", "/kafkacruisecontrol/topic_configuration?json=true", body=b" " * 10_000
    )
    assert reply.status == 401
    assert reply.headers["connection"] == "close"


@pytest.mark.parametrize("client", ["127.0.0.1", f"{'n' * 64}@{'f' * 39}"])
def test_a_client_acts_under_a_name_that_the_audit_log_accepts(client: str) -> None:
    name = client_name(client)
    check_name(name)
    assert name.startswith("cruise-control:")
    assert name.endswith(client.rpartition("@")[2])
