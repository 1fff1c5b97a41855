"""`plimsoll what-if` as a function: options in, text or JSON out."""

import json
from pathlib import Path
from typing import Any

import pytest

from control.cli.commands.what_if import what_if
from control.cli.exit_codes import Exit
from control.cli.invocation import Origin
from control.cli.output import Form
from control.settings.settings import Settings
from control.settings.solve_table import SolveTable
from model.errors import ConfigError
from model.snapshot.what_if import WhatIf
from model.snapshot.what_if_grid import WhatIfGrid
from tests.support.paths import FIXTURES

TUTORIAL = Origin(snapshot=FIXTURES / "tutorial.json")
SETTINGS = Settings(solve=SolveTable(work=2.0))


def ask(output: Form = Form.TABLE, out: Path | None = None, **question: Any) -> int:
    return what_if(settings=SETTINGS, origin=TUTORIAL, out=out, output=output, **question)


def test_the_table_is_marked_as_hypothetical(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(add_broker=["1"]) == Exit.DONE
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "what if: 1 broker added; hypothetical, so this plan cannot be applied"


def test_the_json_is_marked_and_holds_the_plan(capsys: pytest.CaptureFixture[str]) -> None:
    ask(Form.JSON, remove_broker=[2], traffic=["1.5"])
    document = json.loads(capsys.readouterr().out)
    assert document["hypothetical"] is True
    assert document["words"] == "broker 2 removed, traffic x 1.5"
    assert len(document["plan"]["moves"]) == 8


def test_the_file_matches_the_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "w.json"
    ask(Form.JSON, out, lose_rack=["c"])
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == printed
    assert WhatIf.model_validate_json(out.read_text()).words == "rack c lost"


def test_several_assumptions_hold_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    ask(Form.JSON, add_broker=["2:d", "1"], remove_broker=[2], traffic=["2:orders", "1.5"])
    document = json.loads(capsys.readouterr().out)
    brokers = {b["id"]: b for b in document["plan"]["brokers"]}
    assert [brokers[b]["rack"] for b in (3, 4)] == ["d", "d"]
    assert brokers[2]["replicas_after"] == 0
    assert sum(b["after"]["net_in"] for b in brokers.values()) == pytest.approx(24e6)


def test_the_fewest_brokers_are_shown_with_their_proof(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(fewest_brokers=True) == Exit.DONE
    output = capsys.readouterr().out
    assert "1 broker can carry it; there are 3; fewer cannot" in output


def test_an_infeasible_scenario_has_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert ask(remove_broker=[0, 1, 2]) == Exit.INFEASIBLE
    assert "infeasible" in capsys.readouterr().out


@pytest.mark.parametrize(
    "question",
    [
        {},
        {"add_broker": ["0"]},
        {"add_broker": ["x"]},
        {"add_broker": ["1:"]},
        {"add_broker": ["9" * 5000]},
        {"traffic": ["x"]},
        {"traffic": ["-1"]},
        {"traffic": ["nan"]},
        {"traffic": ["1.5:("]},
        {"traffic": ["1.5:nothing"]},
        {"remove_broker": [99]},
        {"lose_rack": ["z"]},
    ],
)
def test_an_unusable_flag_is_named(question: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        ask(**question)


def test_a_grid_has_a_row_for_each_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "g.json"
    assert ask(Form.TABLE, out, grid=["add-broker=none,1", "traffic=none,2"]) == Exit.DONE
    text = capsys.readouterr().out
    assert text.startswith("4 scenarios, each with the whole search budget; hypothetical\n")
    grid = WhatIfGrid.model_validate_json(out.read_text())
    assert [cell.words for cell in grid.cells] == [
        "nothing changes",
        "traffic x 2",
        "1 broker added",
        "1 broker added, traffic x 2",
    ]
    assert all(cell.words in text for cell in grid.cells)


def test_a_grid_and_the_fewest_brokers_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="--grid and --fewest-brokers exclude each other"):
        ask(grid=["traffic=2"], fewest_brokers=True)
