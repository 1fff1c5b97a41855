"""Tasks and simulations over HTTP, of a service on a simulated cluster."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from control.service.logins import new_token, token_hash
from tests.control.cli.test_serving import ADDRESS, NOWHERE, WAIT_S, Service
from tests.control.cli.test_simulated_service import AUTO, SETTINGS, SIMULATED, ctl, until
from tests.support.cli_offline import plimsoll
from tests.support.control.open_api_schema import check_answer
from tests.support.paths import ROOT

API = "/api/v1"
TOKENS = {role: new_token() for role in ("viewer", "operator", "admin")}


@dataclass
class Site:
    """A service whose clients log in."""

    service: Service
    folder: Path

    def ask(self, path: str, body: Any = None, role: str = "operator") -> tuple[int, str]:
        """Status and text of a response."""
        found = ADDRESS.search(self.service.wait_for("/metrics\n"))
        assert found is not None
        headers = {"Authorization": f"Bearer {TOKENS[role]}"}
        headers |= {} if body is None else {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{found[1]}{API}/{path}", data, headers)
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as exc:
            with exc:
                return exc.code, exc.read().decode()

    def until(self, path: str, accepts: Callable[[int, str], bool]) -> str:
        """The answer, once it is accepted."""
        deadline = time.monotonic() + WAIT_S
        while not accepts(*(found := self.ask(path))):
            assert time.monotonic() < deadline, found
            time.sleep(0.2)
        return found[1]


def logins() -> str:
    return "".join(
        f'[{role}]\nrole = "{role}"\ntoken = "{token_hash(token)}"\n'
        for role, token in TOKENS.items()
    )


@pytest.fixture(scope="module", params=[AUTO, ("-b", NOWHERE)], ids=["auto", "read-only"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, bool]]:
    """A service, and whether it may change the cluster."""
    folder = tmp_path_factory.mktemp("requests")
    file = folder / "logins.toml"
    file.write_text(logins())
    file.chmod(0o600)
    service = f'[service]\napi = true\nlogins = "{file}"\n'
    (folder / "own.toml").write_text(SETTINGS.format(trigger="off") + service)
    environment = {"PLIMSOLL_CONFIG": str(folder / "own.toml"), "PYTHONPATH": str(ROOT)}
    with Service(folder, request.param, environment, SIMULATED) as running:
        site = Site(running, folder)
        site.until("status", lambda status, _: status == 200)
        yield site, request.param is AUTO


def checked(path: str, text: str, method: str = "get") -> Any:
    return check_answer(f"{API}/{path}", text, method)


@pytest.mark.slow
def test_operators_request_show_and_cancel_tasks(served: tuple[Site, bool]) -> None:
    site, acts = served
    assert checked("tasks", site.ask("tasks", role="viewer")[1]) == {"tasks": []}
    brokers = json.loads(site.ask("status?partitions=false")[1])["brokers"]
    racks = [broker["rack"] for broker in brokers]
    # The rack of this one has another broker.
    gone = next(broker["id"] for broker in brokers if racks.count(broker["rack"]) > 1)
    status, text = site.ask("tasks", {"operation": "remove", "brokers": [gone]})
    if not acts:
        assert status == 409
        assert "the service is read-only" in text
        assert site.ask("tasks/x/cancel", {})[0] == 404
        assert ctl(site.folder, "tasks") == {"tasks": []}
        return
    assert status == 200, text
    task = checked("tasks", text, "post")
    assert (task["operation"], task["brokers"], task["by"]) == ("remove", [gone], "operator")
    name = task["task_id"]
    # A run of it is what the service does now.
    until(site.folder, lambda s: s["run"] is not None)
    # Nothing else begins meanwhile, and no other task is left.
    assert site.ask("tasks", {"operation": "demote", "brokers": [2]})[0] == 409
    # What is wrong with a request is said at once.
    status, text = site.ask("tasks", {"operation": "demote", "brokers": [77]})
    assert (status, "there is no broker 77" in text) == (400, True)
    status, text = site.ask("tasks", role="viewer")
    assert [found["task_id"] for found in checked("tasks", text)["tasks"]] == [name]
    # The socket has the same, except for the progress meanwhile.
    (there,), (here,) = ctl(site.folder, "tasks")["tasks"], json.loads(text)["tasks"]
    assert (there.keys(), there["task_id"], there["by"]) == (here.keys(), name, "operator")
    shown = checked("tasks/{task}", site.ask(f"tasks/{name[:-1]}", role="viewer")[1])
    assert shown["plans"][0]["approved_by"] == "operator"
    status, text = site.ask(f"tasks/{name}/cancel", {"reason": "wrong broker"})
    assert status == 200, text
    cancelled = checked("tasks/{task}/cancel", text, "post")
    assert (cancelled["phase"], cancelled["note"]) == ("cancelled", "by operator: wrong broker")
    # The moves in flight end, which takes minutes at the rate of its limits; there may be none.
    plimsoll(site.folder, "ctl", "throttle", "10GB")
    until(site.folder, lambda s: s["run"] is None)
    assert site.ask(f"tasks/{name}/cancel", {})[0] == 409
    assert checked("tasks", site.ask("tasks")[1]) == {"tasks": []}
    assert len(checked("tasks", site.ask("tasks?all=true")[1])["tasks"]) == 1
    assert ctl(site.folder, "tasks") == {"tasks": []}
    assert [found["task_id"] for found in ctl(site.folder, "tasks", "--all")["tasks"]] == [name]
    damaged = site.folder / "state" / "tasks" / "remove-99.json"
    damaged.write_text("{}")
    run = plimsoll(site.folder, "ctl", "tasks")
    damaged.unlink()
    assert (run.returncode, run.stdout) == (0, "")
    assert "plimsoll: warning: 1 task cannot be read; see plimsoll task list" in run.stderr
    found = ctl(site.folder, "audit", "--last", "50")["actions"]
    # Its plan was not known yet as it was requested.
    plan = shown["plans"][0]["plan_hash"]
    rows = [(a["action"], a["by"], a["detail"], a["outcome"], a["plan_hash"]) for a in found]
    assert rows[:5] == [
        ("request task", "operator", f"remove {gone}", "done", ""),
        ("approve", "operator", f"task {name}", "done", plan),
        ("request task", "operator", "demote 2", "refused", ""),
        ("request task", "operator", "demote 77", "refused", ""),
        ("cancel task", "operator", f"{name} wrong broker", "done", plan),
    ]


@pytest.mark.parametrize(
    ("body", "expected", "words"),
    [
        ({"operation": "remove"}, 400, "remove needs brokers or racks"),
        ({"operation": "remove", "brokers": [77]}, 400, "there is no broker 77"),
        ({"operation": "remove", "brokers": [0, 1, 2, 3]}, 409, "cannot remove"),
        ({"operation": "remove", "brokers": [1], "topics": ["x"]}, 400, "remove takes no topics"),
        ({"operation": "replace", "brokers": [1]}, 400, "replace needs onto"),
        ({"operation": "set-replicas", "topics": ["x*"]}, 400, "set-replicas needs replicas"),
        ({"operation": "set-replicas", "topics": ["no"], "replicas": 2}, 400, "no topic 'no'"),
        (
            {"operation": "set-replicas", "topics": ["a{0,1000}" * 200], "replicas": 2},
            400,
            "the regular expression is too large",
        ),
        ({"operation": "disk-remove", "brokers": [1, 2], "paths": ["/a"]}, 400, "of one broker"),
        ({"operation": "undemote", "brokers": [1]}, 409, ""),
        ({"operation": "repair"}, 409, "nothing to do"),
    ],
)
def test_impossible_tasks_are_refused_and_none_is_left(
    served: tuple[Site, bool], body: Any, expected: int, words: str
) -> None:
    site, acts = served
    before = site.ask("tasks?all=true")[1]
    status, text = site.ask("tasks", body)
    # A service that may not act says no more.
    assert (status, "read-only" in text) == (expected if acts else 409, not acts), text
    assert not acts or words in text
    assert site.ask("tasks?all=true")[1] == before


@pytest.mark.parametrize(
    ("path", "body", "role", "status"),
    [
        ("tasks", {"operation": "remove", "brokers": [1]}, "viewer", 403),
        ("tasks/x/cancel", {}, "viewer", 403),
        ("tasks/a%0ab/cancel", {}, "viewer", 403),
        ("actions/a%0ab", {}, "viewer", 403),
        ("simulate", {}, "viewer", 403),
        ("actions/reload", {}, "operator", 404),
        ("tasks", {"operation": "fly"}, "operator", 400),
        ("tasks", {"operation": "remove", "brokers": ["one"]}, "operator", 400),
        ("tasks", {"operation": "remove", "brokers": [1] * 1001}, "operator", 400),
        ("tasks", {"operation": "set-replicas", "topics": [""], "replicas": 1}, "operator", 400),
        ("tasks", {"operation": "remove", "by": "eve"}, "operator", 400),
        ("tasks/x/cancel", {"reason": "x" * 201}, "operator", 400),
        ("tasks/x/cancel", {"reason": "\x1b[31mred\nnew"}, "operator", 400),
        ("tasks?every=true", None, "viewer", 400),
        ("tasks?all=maybe", None, "viewer", 400),
        ("tasks/nothing", None, "viewer", 404),
        ("tasks/nothing?x=1", None, "viewer", 400),
        ("tasks/..%2f..%2fetc", None, "viewer", 404),
        ("simulate", {"days": 32}, "operator", 400),
        ("simulate", {"days": 0}, "operator", 400),
        ("simulate", {"policies": []}, "operator", 400),
        ("simulate", {"policies": ["../own.toml"]}, "operator", 400),
        ("simulate", {"policies": ["own.toml"]}, "operator", 400),
        ("simulate", {"policies": ["test", "test"]}, "operator", 400),
        ("actions/throttle", {}, "operator", 400),
        ("actions/throttle", {"rate": "fast"}, "operator", 400),
        ("actions/pause?why=1", {}, "operator", 400),
        ("tasks/nothing/cancel", {}, "operator", 404),
        ("service?x=1", None, "viewer", 400),
        ("audit?last=x", None, "admin", 400),
        ("simulate", {"search_budget": 1e9}, "operator", 400),
        ("simulate?x=1", None, "viewer", 400),
    ],
)
def test_requests_that_cannot_be_used_are_refused(
    served: tuple[Site, bool], path: str, body: Any, role: str, status: int
) -> None:
    site, _ = served
    found = site.ask(path, body, role)
    assert found[0] == status, found
    assert str(site.folder) not in found[1]


@pytest.mark.slow
def test_policies_are_simulated_beside_the_loop(served: tuple[Site, bool]) -> None:
    site, _ = served
    assert site.ask("simulate", role="viewer")[0] == 404
    asked = {"policies": ["test", "eager"], "days": 1, "steady": True, "search_budget": 0.01}
    status, text = site.ask("simulate", asked)
    assert status == 202, text
    assert json.loads(text)["action"] == "simulate"
    text = site.until("simulate", lambda status, _: status != 202)
    found = checked("simulate", text)
    assert (found["days"], [p["policy"] for p in found["policies"]]) == (1, ["test", "eager"])
    entry = ctl(site.folder, "audit", "--last", "50")["actions"][-1]
    assert (entry["action"], entry["by"]) == ("simulate", "operator")
