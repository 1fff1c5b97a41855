"""The table of a fleet, its probes and metrics, and who may ask for what."""

import contextlib
import http.client
import json
import logging
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from control.render.fleet_text import MOST_WORDS, fleet_text
from control.service.control_api import ControlApi
from control.service.control_socket import ControlSocket
from control.service.fleet import FleetMember, fleet_answer
from control.service.fleet_listener import FleetListener, alive, ready
from control.service.http_access import HttpAccess
from control.service.http_listener import bound
from control.service.logins import Logins
from control.service.member_state import MemberState
from control.service.open_api import description
from control.service.scrape import exposition, fleet_registry, registry_of
from control.service.service_state import ServiceState
from model.goals.goals import Goals
from tests.control.service.test_control_socket import FakeActions
from tests.control.service.test_http_access import ANY, LOGINS, WAIT_S, basic
from tests.control.service.test_scrape import planned
from tests.control.service.test_service_state import Clock

__all__ = ["planned"]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


def test_a_row_has_the_worst_broker_the_decision_and_the_age_of_loads(
    planned: ServiceState,
) -> None:
    east, west = FleetMember("east", planned), FleetMember("west")
    west.trouble = "west.toml is not valid TOML " + "x" * 100
    first, second = fleet_answer([east, west]).clusters
    assert (first.service, first.decision) == (MemberState.RUNNING, "offer")
    assert first.worst_broker is not None
    # All load is on one of three brokers.
    assert first.worst_broker.deviation == pytest.approx(2.0)
    assert first.worst_broker.broker == 2
    assert first.data_age_s is not None
    assert (second.service, second.worst_broker, second.run) == (MemberState.FAILED, None, None)
    text = fleet_text(fleet_answer([east, west]))
    assert "broker 2" in text
    assert "+200 %" in text
    assert max(map(len, text.splitlines())) < 100 + MOST_WORDS
    assert "west.toml is not valid TOML" in text


def test_a_fleet_is_alive_while_a_loop_turns_and_ready_while_one_cluster_is_observed(
    planned: ServiceState,
) -> None:
    clock = Clock()
    state = ServiceState(clock=clock, steady=clock)
    state.begin(Goals(), 0.5)
    hangs, works = FleetMember("hangs", state), FleetMember("works", planned)
    assert str(hangs.service) == "starting"
    clock.now_s += 3600.0
    assert str(hangs.service) == "hanging"
    assert hangs.answer().message == "the loop has not turned for 1 h 00 min"
    assert alive([hangs, works]) == (200, "ok; these hang: hangs")
    assert alive([hangs]) == (503, "no loop turns")
    assert ready([hangs, works]) == (200, "ok; hangs: hanging")
    assert ready([hangs])[0] == 503
    hangs.stopping = True
    assert str(hangs.service) == "stopping"


def test_metrics_of_a_fleet_are_those_of_each_cluster_with_its_name(planned: ServiceState) -> None:
    def samples(text: bytes) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        return {
            (sample.name, frozenset(sample.labels.items()))
            for family in parsed(text.decode())
            for sample in family.samples
            if sample.name.startswith("plimsoll_")
        }

    alone = samples(exposition(registry_of(planned), "")[0])
    fleet = fleet_registry({"east": planned, "west": planned})
    found = samples(exposition(fleet, "")[0])
    expected = {
        (name, labels | {("cluster", cluster)})
        for name, labels in alone
        for cluster in ("east", "west")
    }
    assert found == expected
    assert len(found) == 2 * len(alone)


class Site:
    """A fleet with logins, without TLS."""

    def __init__(self, listener: FleetListener, actions: FakeActions) -> None:
        self.listener, self.actions = listener, actions

    def ask(self, path: str, login: str = "", body: Any = None) -> tuple[int, str]:
        host = self.listener.url.removeprefix("http://")
        connection = http.client.HTTPConnection(host, timeout=WAIT_S)
        sent = {"Authorization": login} if login else {}
        sent |= {"Content-Type": "application/json"} if body is not None else {}
        data = None if body is None else json.dumps(body).encode()
        with contextlib.closing(connection):
            connection.request("GET" if body is None else "POST", path, data, headers=sent)
            response = connection.getresponse()
            return response.status, response.read().decode()


@pytest.fixture
def site() -> Iterator[Site]:
    with contextlib.ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="fleet")))
        (folder / "logins.toml").write_text(LOGINS)
        (folder / "logins.toml").chmod(0o600)
        east, west = FleetMember("east"), FleetMember("west")
        actions = FakeActions(folder, east.state)
        east.control = opened.enter_context(contextlib.closing(ControlApi(east.state, actions)))
        west.trouble = "its settings are broken"
        control = opened.enter_context(ControlSocket(folder))
        access = HttpAccess(None, Logins(folder / "logins.toml"))
        listener = FleetListener(bound(ANY), [east, west], control, api=True, access=access)
        yield Site(opened.enter_context(listener), actions)


def test_roles_hold_for_each_cluster_of_a_fleet(site: Site) -> None:
    pause = "/clusters/east/api/v1/actions/pause"
    for path in ("/api/v1/fleet", "/metrics", "/clusters/east/metrics"):
        assert site.ask(path)[0] == 401
        assert site.ask(path, basic("vic"))[0] == 200
    assert site.ask("/livez")[0] == 200
    assert site.ask(pause, "", {})[0] == 401
    assert site.ask(pause, basic("vic"), {})[0] == 403
    assert site.actions.seen == []
    assert site.ask(pause, basic("olga"), {})[0] == 200
    assert len(site.actions.seen) == 1
    status, words = site.ask("/clusters/west/api/v1/actions/pause", basic("olga"), {})
    assert (status, words) == (503, "the service of west does not run: its settings are broken\n")
    assert site.ask("/clusters/east/api/v1/audit", basic("olga"))[0] == 403
    assert site.ask("/clusters/east/api/v1/audit", basic("ada"))[0] == 200
    # Neither is a way round the roles.
    assert site.ask("/clusters//api/v1/audit", basic("vic"))[0] in (403, 404)
    assert site.ask("/clusters/%65ast/api/v1/audit", basic("vic"))[0] == 403
    assert site.ask("/clusters/%65ast/api/v1/actions/pause", basic("vic"), {})[0] == 403
    assert site.ask("/clusters/nobody/api/v1/actions/pause", basic("olga"), {})[0] == 404
    assert len(site.actions.seen) == 1


def test_every_path_of_a_fleet_is_described(site: Site) -> None:
    status, text = site.ask("/openapi.json", basic("vic"))
    document = json.loads(text)
    assert (status, document) == (200, description(fleet=True))
    for path, methods in document["paths"].items():
        for method in methods:
            asked = path.format(cluster="east", task="none")
            _, text = site.ask(asked, basic("ada"), None if method == "get" else {})
            # What the server answers to paths and methods that it does not know.
            assert text.strip() not in ("404: Not Found", "405: Method Not Allowed"), asked
    assert site.ask("/clusters/east/nothing", basic("ada"))[1] == "404: Not Found"
