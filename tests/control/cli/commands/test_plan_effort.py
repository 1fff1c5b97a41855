"""`plimsoll plan --effort` and `--stages` as a user runs them."""

import json
from pathlib import Path

import pytest

from control.cli.exit_codes import Exit
from control.cli.output_types import StagesAnswer
from model.plan.plan import read_plan
from model.snapshot.file import write_snapshot
from model.snapshot.snapshot import BrokerState
from tests.support.cli_offline import enter, in_process, refused
from tests.support.control.loop_parts import MB, one_of_twelve_dead, with_state
from tests.support.model.clusters import brokers, snapshot
from tests.support.paths import FIXTURES

TUTORIAL = str(FIXTURES / "tutorial.json")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    enter(monkeypatch, tmp_path)


def test_the_plan_states_effort_gain_and_duration() -> None:
    run = in_process("plan", "--snapshot", TUTORIAL)
    assert run.returncode == Exit.DONE
    (line,) = [text for text in run.stdout.splitlines() if text.startswith("effort ")]
    assert line.startswith("effort good: gain ")
    assert "; a run takes about " in line


def test_json_has_effort_and_gain(tmp_path: Path) -> None:
    state = snapshot(brokers(2), [(1, 2)] * 6, [(MB, 9 * MB)] * 6)
    write_snapshot(tmp_path / "s.json", state)
    run = in_process("plan", "--snapshot", "s.json", "--effort", "quick", "-o", "json")
    answer = json.loads(run.stdout)
    assert answer["effort"] == "quick"
    gain = answer["gain"]
    assert gain["gain"] == gain["free"] > 0
    assert (gain["bytes_to_copy"], gain["per_byte"]) == (0, None)
    assert gain["duration_s"] > 0


def test_quick_leaves_a_dead_broker_alone_and_says_so(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s.json", one_of_twelve_dead())
    run = in_process("plan", "--snapshot", "s.json", "--effort", "quick")
    assert run.returncode == Exit.DONE
    assert "22 partitions that would have to leave broker 11 (dead) stay" in run.stdout


def test_explicit_limits_win_over_the_effort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "3")
    in_process("plan", "--snapshot", TUTORIAL, "--effort", "best", "--out", "p.json")
    limits = read_plan(tmp_path / "p.json").limits
    assert (limits.work, limits.gap_share) == (3.0, 0.0)


def test_the_option_wins_over_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__EFFORT", "quick")
    of_setting = json.loads(in_process("plan", "--snapshot", TUTORIAL, "-o", "json").stdout)
    assert of_setting["effort"] == "quick"
    run = in_process("plan", "--snapshot", TUTORIAL, "-o", "json", "--effort", "good")
    assert json.loads(run.stdout)["effort"] == "good"


def test_stages_are_a_table_with_a_row_per_effort() -> None:
    run = in_process("plan", "--snapshot", TUTORIAL, "--stages")
    assert run.returncode == Exit.DONE
    header, *rows = run.stdout.splitlines()[:4]
    assert header.split()[0] == "effort"
    assert [row.split()[0] for row in rows] == ["quick", "good", "best"]


def test_stages_as_json_name_the_plans(tmp_path: Path) -> None:
    run = in_process("plan", "--snapshot", TUTORIAL, "--stages", "-o", "json")
    answer = StagesAnswer.model_validate_json(run.stdout)
    in_process("plan", "--snapshot", TUTORIAL, "--out", "p.json")
    assert answer.stages[1].plan == read_plan(tmp_path / "p.json").hash


@pytest.mark.parametrize(
    "option",
    [
        ("--effort", "best"),
        ("--out", "p.json"),
        ("--leaders-only",),
        ("--seeds", "2"),
        ("--detailed-exitcode",),
        ("--from-plan", "p.json"),
        ("--reassignment-json", "there"),
    ],
)
def test_stages_refuse_options_of_a_single_plan(option: tuple[str, ...]) -> None:
    run = in_process("plan", "--snapshot", TUTORIAL, "--stages", *option)
    refused(run, Exit.USAGE, f"{option[0]} is for a single one")


def test_stages_without_any_plan_are_infeasible(tmp_path: Path) -> None:
    """No broker is left for the replicas of the draining ones."""
    state = snapshot(brokers(2), [(1, 2)] * 2)
    draining = with_state(with_state(state, 1, BrokerState.DRAINING), 2, BrokerState.DRAINING)
    write_snapshot(tmp_path / "s.json", draining)
    run = in_process("plan", "--snapshot", "s.json", "--stages", "-o", "json")
    good = StagesAnswer.model_validate_json(run.stdout).stages[1]
    assert good.status == "infeasible"
    assert good.gain is None
    assert good.notes


@pytest.mark.parametrize("option", [("--grid", "add-broker=1,2"), ("--fewest-brokers",)])
def test_quick_is_refused_by_scenarios_that_need_moves(option: tuple[str, ...]) -> None:
    run = in_process("what-if", "--snapshot", TUTORIAL, "--effort", "quick", *option)
    refused(run, Exit.USAGE, f"{option[0]} needs replica moves")


def test_a_quick_what_if_says_what_it_leaves() -> None:
    run = in_process("what-if", "--snapshot", TUTORIAL, "--remove-broker", "2", "--effort", "quick")
    assert run.returncode == Exit.DONE
    assert "stay, since quick copies nothing" in run.stdout
