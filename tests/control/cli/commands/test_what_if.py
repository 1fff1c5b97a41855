"""`plimsoll what-if` as a function: flags in, words or JSON out."""

import json
from pathlib import Path

import pytest

from control.cli.commands.what_if import make
from control.cli.exit_codes import Exit
from control.cli.input_source import Origin
from control.cli.output_format import Form
from control.planning.scenario_flags import Question
from control.settings.settings import Settings
from model.errors import ConfigError
from model.goals.goals import SolveLimits
from model.snapshot.what_if import WhatIf

FIXTURES = Path(__file__).parents[4] / "fixtures"
TUTORIAL = Origin(snapshot=FIXTURES / "tutorial.json")
SETTINGS = Settings(solve=SolveLimits(work=2.0))


def ask(question: Question, output: Form = Form.TABLE, out: Path | None = None) -> int:
    return make(SETTINGS, TUTORIAL, question, goals_file=None, out=out, output=output)


def test_the_table_says_that_it_is_hypothetical(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(Question(add_broker=["1"])) == Exit.DONE
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "what if: 1 broker added; hypothetical, nothing here can be applied"


def test_the_json_is_marked_and_holds_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ask(Question(remove_broker=[2], traffic=["1.5"]), Form.JSON)
    document = json.loads(capsys.readouterr().out)
    assert document["hypothetical"] is True
    assert document["words"] == "broker 2 removed, traffic x 1.5"
    assert len(document["plan"]["moves"]) == 8


def test_the_file_is_what_was_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "w.json"
    ask(Question(lose_rack=["c"]), Form.JSON, out)
    printed = json.loads(capsys.readouterr().out)
    assert json.loads(out.read_text()) == printed
    assert WhatIf.model_validate_json(out.read_text()).words == "rack c lost"


def test_several_suppositions_hold_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    question = Question(
        add_broker=["2:d", "1"], remove_broker=[2], traffic=["2:orders", "1.5"]
    )
    ask(question, Form.JSON)
    document = json.loads(capsys.readouterr().out)
    brokers = {b["id"]: b for b in document["plan"]["brokers"]}
    assert [brokers[b]["rack"] for b in (3, 4)] == ["d", "d"]
    assert brokers[2]["replicas_after"] == 0
    assert sum(b["after"]["net_in"] for b in brokers.values()) == pytest.approx(24e6)


def test_the_fewest_brokers_are_told_with_their_proof(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(Question(fewest_brokers=True)) == Exit.DONE
    told = capsys.readouterr().out
    assert "1 broker can carry it; there are 3; fewer cannot" in told


def test_what_cannot_be_is_told_with_its_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert ask(Question(remove_broker=[0, 1, 2])) == Exit.INFEASIBLE
    assert "infeasible" in capsys.readouterr().out


@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question(add_broker=["0"]),
        Question(add_broker=["x"]),
        Question(add_broker=["1:"]),
        Question(add_broker=["9" * 5000]),
        Question(traffic=["x"]),
        Question(traffic=["-1"]),
        Question(traffic=["nan"]),
        Question(traffic=["1.5:("]),
        Question(traffic=["1.5:nothing"]),
        Question(remove_broker=[99]),
        Question(lose_rack=["z"]),
    ],
)
def test_a_flag_that_cannot_be_used_is_named(question: Question) -> None:
    with pytest.raises(ConfigError):
        ask(question)
