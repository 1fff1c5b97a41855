"""The read-only API: the documents of the commands, from the loop's own state."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.cli.output_types import PlanAnswer, StatusAnswer, WhyAnswer
from control.loop.loop import Loop
from control.loop.view import Mode
from control.service import read_api
from control.service.http_listener import HttpListener, bound
from control.service.service_state import ServiceState
from model.goals.goals import Goals
from tests.control.service.test_http_listener import ANY, got
from tests.control.service.test_service_state import UNEVEN, watched
from tests.support.control.loop_parts import (
    CannedObserver,
    RecordingExecutor,
    loop_parts,
    loop_settings,
)
from tests.support.control.open_api_schema import check_answer
from tests.support.tui.terminals import LONG_S


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "plimsoll")


@pytest.fixture
def state() -> ServiceState:
    return ServiceState()


@pytest.fixture
def served(state: ServiceState) -> Iterator[HttpListener]:
    with HttpListener(bound(ANY), state, api=True) as found:
        yield found


def test_before_anything_is_known_the_reason_is_the_answer(served: HttpListener) -> None:
    for document in ("status", "plan", "why"):
        status, text = got(served, f"/api/v1/{document}")
        assert status == 503
        assert text.endswith((" yet\n", " none\n"))


def test_documents_are_those_of_the_commands(
    tmp_path: Path, state: ServiceState, served: HttpListener
) -> None:
    observer = CannedObserver([UNEVEN])
    loop = watched(tmp_path, state, loop_parts(observer, None), Mode.READ_ONLY)
    state.begin(loop.settings.goals, loop.settings.tick_s, decisions_dir=tmp_path)
    with loop:
        assert loop.wait(lambda _view: state.decision == ("offer", ""), LONG_S)
        plan = loop.view.plan
    assert plan is not None
    texts = {}
    for name, model in (("status", StatusAnswer), ("plan", PlanAnswer), ("why", WhyAnswer)):
        status, texts[name] = got(served, f"/api/v1/{name}")
        assert status == 200, texts[name]
        assert {*check_answer(f"/api/v1/{name}", texts[name])} <= {*model.model_fields}
    found = json.loads(texts["plan"])
    assert found["plan"]["hash"] == plan.hash
    assert found["gain"] is not None
    assert json.loads(texts["status"])["cluster_id"] == "cluster-one"
    assert json.loads(texts["why"]) == {"decisions": [], "clusters": []}
    # The same without partitions, for clients that show brokers alone.
    whole = json.loads(texts["status"])
    status, text = got(served, "/api/v1/status?partitions=false")
    brokers = check_answer("/api/v1/status", text)
    assert (status, brokers["partitions"], len(whole["partitions"])) == (200, [], 9)
    assert brokers["brokers"] == whole["brokers"]
    assert got(served, "/api/v1/status?partitions=no")[0] == 400
    assert got(served, "/api/v1/plan?partitions=false")[0] == 400


def test_recorded_decisions_are_listed(
    tmp_path: Path, state: ServiceState, served: HttpListener
) -> None:
    settings = loop_settings(tmp_path, mode=Mode.AUTO, decisions_dir=tmp_path)
    parts = loop_parts(CannedObserver([UNEVEN]), RecordingExecutor())
    with Loop(settings, parts) as loop:
        assert loop.wait(lambda _view: bool(loop.reports), LONG_S)
    state.begin(settings.goals, settings.tick_s, decisions_dir=tmp_path)
    decisions = check_answer("/api/v1/why", got(served, "/api/v1/why?last=9")[1])["decisions"]
    assert [d["decision"] for d in decisions][:2] == ["confirm", "plan"]
    assert len(json.loads(got(served, "/api/v1/why?last=1")[1])["decisions"]) == 1


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/api/v1/status?x=1", 400, "unknown parameter 'x'"),
        ("/api/v1/plan?last=1", 400, "unknown parameter 'last'"),
        ("/api/v1/why?last=0", 400, "from 1"),
        ("/api/v1/why?last=-1", 400, "from 1"),
        ("/api/v1/why?last=99999", 400, "from 1"),
        ("/api/v1/why?last=", 400, "from 1"),
        ("/api/v1/nothing", 404, "there are status, plan, why"),
        ("/api/v1/why/x", 404, ""),
    ],
)
def test_other_requests_are_refused(
    served: HttpListener, path: str, status: int, message: str
) -> None:
    found, text = got(served, path)
    assert (found, message in text) == (status, True)


def test_the_api_is_off_by_default(state: ServiceState) -> None:
    with HttpListener(bound(ANY), state) as listener:
        status, text = got(listener, "/api/v1/status")
        assert (status, text) == (404, "the API is off; set api = true in [service]\n")
        assert got(listener, "/api/v1/status", "POST")[0] == 405


def test_documents_are_computed_once_for_many_requests(
    tmp_path: Path, state: ServiceState, served: HttpListener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are kept for a while; other documents are not affected."""
    computed: list[int] = []

    def counted(_folder: Path, last: int, _now_ms: int) -> WhyAnswer:
        computed.append(last)
        return WhyAnswer(decisions=())

    monkeypatch.setattr(read_api, "why_answer", counted)
    monkeypatch.setattr(read_api, "FRESH_S", LONG_S)
    state.begin(Goals(), 0.5, decisions_dir=tmp_path)
    for last in (1, 1, 1, 2, 2):
        assert got(served, f"/api/v1/why?last={last}")[0] == 200
    assert computed == [1, 2]
