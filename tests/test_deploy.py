"""The files in `deploy`: what they start and query exists, and systemd accepts the unit."""

import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from control.demo.simulated_demo import SimulatedDemoOptions, simulated
from control.loop.view import Mode
from control.service.scrape import exposition, registry_of
from control.service.service_state import ServiceState
from control.settings.settings import Settings
from tests.control.loop.test_policy import CALM
from tests.support.alert_rules import (
    OF_RUNS,
    alerts,
    dashboard,
    expressions,
    matchers,
    used_metrics,
)
from tests.support.cli_shapes import commands
from tests.support.paths import ROOT
from tests.support.tui.terminals import LONG_S

UNIT = ROOT / "deploy" / "plimsoll.service"


def started() -> list[str]:
    """The command of the unit."""
    (line,) = [x for x in UNIT.read_text().splitlines() if x.startswith("ExecStart=")]
    return shlex.split(line.partition("=")[2])


def test_the_unit_starts_the_service_with_options_that_exist() -> None:
    program, command, *rest = started()
    assert Path(program).name == "plimsoll"
    known = commands()[f"plimsoll {command}"]
    named = [word for word in rest if word.startswith("--")]
    assert named == ["--config", "--log-format", "--auto", "--limits", "--allow-changes"]
    assert rest[rest.index("--log-format") + 1] == "json"
    assert {*named} <= {*known}


def test_a_simulation_that_runs_out_of_memory_does_not_stop_the_unit() -> None:
    assert "OOMPolicy=continue" in UNIT.read_text().splitlines()


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(started()[0], sys.executable))
    run = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    about = [line for line in run.stderr.splitlines() if UNIT.name in line]
    # Versions before 253 know no notify-reload.
    assert [line for line in about if "notify-reload" not in line] == []


@pytest.fixture(scope="module")
def samples() -> dict[str, list[dict[str, str]]]:
    """Labels of the samples of a scrape after a run on the simulated cluster, by name."""
    order = SimulatedDemoOptions(
        mode=Mode.AUTO, brokers=4, seed=7, now_s=1_700_000_000.0, speed=60.0
    )
    state = ServiceState()
    # As with TLS, which this service does not have.
    state.certificate_until_s = order.now_s
    with simulated(Settings(), order) as loop:
        state.begin(loop.settings.goals, loop.settings.tick_s)
        loop.subscribe(state.see)
        assert loop.wait(lambda view: view.run is not None and view.plan is not None, LONG_S)
        # The demo's loop is not watched for decisions, and has no limits per day.
        state.decision = ("rest", "")
        state.inputs = replace(CALM, runs_left=1, bytes_left=1)
        state.tallies.decisions["rest", ""] += 1
        text = exposition(registry_of(state), "")[0].decode()
    found: dict[str, list[dict[str, str]]] = {}
    for family in parsed(text):
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample.labels)
    return found


def test_every_metric_of_the_dashboard_and_the_alerts_is_scraped(
    samples: dict[str, list[dict[str, str]]],
) -> None:
    used = used_metrics()
    assert len(used) > 20
    assert used - {"up"} <= {*samples}
    assert {*OF_RUNS} <= used


def test_every_value_of_a_label_that_they_select_exists(
    samples: dict[str, list[dict[str, str]]],
) -> None:
    selected = [m for m in matchers() if m[1] != "job" and "$" not in m[2]]
    assert len(selected) > 4
    for name, label, value in selected:
        assert value in {labels[label] for labels in samples[name]}, (name, label, value)


def test_alerts_are_complete_and_have_names_of_their_own() -> None:
    names = [rule["alert"] for rule in alerts()]
    assert len({*names}) == len(names)
    for rule in alerts():
        assert {"alert", "expr", "labels", "annotations"} <= {*rule}
        assert rule["labels"]["severity"] in ("info", "warning", "critical")
        assert rule["annotations"]["summary"].endswith(".")


def test_parentheses_of_expressions_are_balanced() -> None:
    for text in expressions():
        for opening, closing in ("()", "[]", "{}"):
            assert text.count(opening) == text.count(closing), text


def test_panels_neither_overlap_nor_share_an_id() -> None:
    panels = dashboard()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len({*cells}) == len(cells)
    assert max(x for x, _ in cells) < 24
