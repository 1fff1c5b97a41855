"""`plimsoll simulate`: tables, pictures, JSON, and orders that make no sense."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from collector.history.past_loads import PastLoads
from control import compose
from control.cli.commands.simulate import BEGIN_MS
from control.cli.exit_codes import Exit
from control.cli.main import app
from control.settings.settings import Settings
from control.settings.trigger_table import Trigger
from lab.synthetic.shape import ClusterShape
from lab.time_lapse.varying_loads import synthetic_start
from model.snapshot.file import write_snapshot
from tests.support.collector.seasonal_loads import MONDAY, hours_of

SMALL = ["simulate", "--brokers", "3", "--partitions", "12", "--days", "1", "--step", "1h"]
MINE = """
[limits.mine]
replica_moves = 5
bytes = "1TB"
leader_changes = 5
partitions_per_topic = 10
moves_in_flight = 4
min_gain = 0.1
pause = "1h"
confirm = "5m"
"""


def called(*arguments: str) -> tuple[int, str]:
    """Exit code, and the output or the message of the error."""
    result = CliRunner().invoke(app, [*SMALL, *arguments])
    return result.exit_code, result.output


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


def test_policies_are_compared_in_a_table_and_a_picture(tmp_path: Path, mine: Path) -> None:
    picture = tmp_path / "days.svg"
    order = ("--policy", "eager", "--policy", f"lazy={mine}", "--svg", str(picture))
    code, out = called(*order)
    assert code == Exit.DONE
    assert "synthetic-3x12-1: 3 brokers, 12 partitions, 1 day from 2026-01-05T00:00:00Z" in out
    rows = [line.split()[0] for line in out.splitlines() if " 2026-" in line and "%" in line]
    assert rows == ["eager", "lazy"]
    drawn = picture.read_text()
    assert drawn.startswith("<svg ")
    assert drawn.count("<polyline") == 2
    again = called(*order)
    assert (code, out) == again
    assert picture.read_text() == drawn


def test_json_has_every_hour_and_day() -> None:
    code, out = called("--policy", "eager", "-o", "json")
    answer = json.loads(out)
    (policy,) = answer["policies"]
    assert (code, policy["policy"], len(policy["days"])) == (Exit.DONE, "eager", 1)
    assert len(policy["hours"]) == 24


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--days", "0"), "0 is less than 1"),
        (("--step", "1s"), "give 15s to 1h"),
        (("--policy", "gentle"), "there are no limits named 'gentle'"),
        (("--policy", "a="), "name limits, or a configuration file"),
        (
            ("--policy", "eager", "--policy", "eager"),
            "two policies are named 'eager'; give one another label, as in --policy other=eager",
        ),
        (("--svg", "days.png"), "is the name of something else; name it days.svg"),
        (("--step", "999999d"), "'999999d' is too long; give at most 11574d"),
        (("--step", "0s"), "'0s' is too short; give at least 0.001s"),
        (("--fault", "dead:1@2d"), "begins after the 1 simulated day; give"),
        (("--growth", "nan"), "'nan' is not a number"),
        (("--svg", "-"), "cannot write -: it does not stand for stdout here"),
        (("--fault", "dead:8@1h"), "there is no broker 8"),
        (("--shape", "wave"), "there are step"),
        (("--load-csv", "absent.csv"), "absent.csv"),
    ],
)
def test_orders_without_sense_are_refused(arguments: tuple[str, ...], words: str) -> None:
    code, message = called(*arguments)
    assert code == Exit.USAGE
    assert words in message


def test_labels_of_files_are_advised_as_they_work(tmp_path: Path, mine: Path) -> None:
    code, message = called("--policy", f"n={mine}", "--policy", f"n={mine}")
    assert (code, f"as in --policy other={mine}" in message) == (Exit.USAGE, True)
    several = tmp_path / "several.toml"
    several.write_text(MINE + MINE.replace("mine", "yours"))
    code, message = called("--policy", str(several))
    assert code == Exit.USAGE
    assert f"has the limits mine, yours; name one of them, as in --policy mine={several}" in message
    twice = ("--policy", f"mine={several}", "--policy", f"mine={several}")
    assert "their names are the labels; rename them there" in called(*twice)[1]


def test_limits_are_not_labelled_as_others(tmp_path: Path, mine: Path) -> None:
    """A table showed the limits of a file as the built-in ones."""
    code, message = called("--policy", f"conservative={mine}")
    assert code == Exit.USAGE
    assert (
        "conservative is the name of other limits than mine; give another label, as in "
        f"--policy my-conservative={mine}"
    ) in message
    assert called("--policy", "eager=conservative")[0] == Exit.USAGE
    # Where the file has limits of that name, they are meant.
    mine.write_text(MINE.replace("mine", "conservative"))
    code, out = called("--policy", f"conservative={mine}", "-o", "json")
    (policy,) = json.loads(out)["policies"]
    assert (code, policy["policy"]) == (Exit.DONE, "conservative")


def test_a_file_without_limits_may_take_built_in_ones(tmp_path: Path) -> None:
    path = tmp_path / "triggers.toml"
    path.write_text("[triggers]\nrule_violated = 'act'\n")
    code, message = called("--policy", str(path))
    assert code == Exit.USAGE
    assert (
        "has no [limits.NAME]; add one, or give built-in limits, as in --policy conserv" in message
    )
    code, out = called("--policy", f"eager={path}", "--policy", "conservative", "-o", "json")
    assert code == Exit.DONE
    assert [p["policy"] for p in json.loads(out)["policies"]] == ["eager", "conservative"]


def test_a_policy_that_can_never_act_is_refused(mine: Path) -> None:
    off = "\n".join(f"{trigger} = 'off'" for trigger in Trigger)
    mine.write_text(f"[triggers]\n{off}\n{MINE}")
    code, message = called("--policy", str(mine))
    assert code == Exit.USAGE
    assert "policy mine: it can never act: every trigger is off" in message


def test_the_stop_rules_of_a_policy_file_act(tmp_path: Path, mine: Path) -> None:
    """Those of the file, as in the loop; not those of the settings outside."""
    late = tmp_path / "late.toml"
    late.write_text(f"[stop_rules]\nwindow_end = 2026-01-05T00:00:00.5Z\n{MINE}")
    code, out = called("--policy", f"free={mine}", "--policy", f"late={late}", "-o", "json")
    free, held = json.loads(out)["policies"]
    assert code == Exit.DONE
    assert free["moves"] > 0
    assert held["moves"] == 0
    assert held["held"]["stop_rules.window"]["seconds"] > 3600
    late.write_text(f"[stop_rules]\nwindow_end = 2026-01-04T00:00:00Z\n{MINE}")
    code, message = called("--policy", f"late={late}")
    assert code == Exit.USAGE
    assert "policy late: it can never act" in message


def test_a_table_shorter_than_the_days_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("time,topic,rate\n2026-02-02T00:00:00Z,topic-000000,5e6\n")
    code, message = called("--load-csv", str(path), "--days", "3")
    assert code == Exit.USAGE
    assert "covers 1 day, fewer than --days 3" in message


def test_a_table_longer_than_a_year_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    rows = (f"{year}-02-02T00:00:00Z,topic-000000,5e6\n" for year in (2024, 2026))
    path.write_text("time,topic,rate\n" + "".join(rows))
    without_days = [argument for argument in SMALL if argument not in ("--days", "1")]
    result = CliRunner().invoke(app, [*without_days, "--load-csv", str(path)])
    assert result.exit_code == Exit.USAGE
    assert "covers 731 days, more than the 366 that can be simulated" in result.output


def test_sigterm_leaves_no_folder(tmp_path: Path) -> None:
    order = [str(Path(sys.executable).with_name("plimsoll")), "simulate", "--days", "366"]
    there = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(order, env=there, stderr=subprocess.PIPE, text=True) as process:
        try:
            while not list(tmp_path.glob("plimsoll-simulate-*")):
                assert process.poll() is None
                time.sleep(0.05)
            process.terminate()
            assert process.wait(60) == Exit.INTERRUPTED
        finally:
            process.kill()
    assert list(tmp_path.glob("plimsoll-*")) == []


ENDLESS = """
import sys, time
from ortools.sat.python import cp_model
from control.cli.main import main
from control.simulation import trials

class Found(cp_model.CpSolverSolutionCallback):
    def on_solution_callback(self):
        print("solving", flush=True)
        while {calls_back}:
            time.sleep(0.001)

def endless(*given, **others):
    model = cp_model.CpModel()
    holes = [[model.new_bool_var("") for _ in range(14)] for _ in range(13)]
    worse = model.new_bool_var("")
    for hole in holes:
        model.add(sum(hole) <= 1 + 13 * worse)
    for pigeon in zip(*holes):
        model.add(sum(pigeon) >= 1)
    model.minimize(worse)
    for variable in (worse, *(taken for hole in holes for taken in hole)):
        model.add_hint(variable, 1)
    solver = cp_model.CpSolver()
    wanted = dict(num_workers=1, linearization_level=0, symmetry_level=0, cp_model_presolve=False)
    for name, value in (wanted | {"catch_sigint_signal": False}).items():
        setattr(solver.parameters, name, value)
    solver.solve(model, Found())
    print("solved", flush=True)

trials.try_policy = endless
sys.argv = ["plimsoll", "simulate", "--days", "1", "--brokers", "3", "--partitions", "12"]
main()
"""
"""`plimsoll simulate` with a planner that stays in CP-SAT for hours, or in what CP-SAT calls."""


@pytest.mark.parametrize("calls_back", [False, True])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_a_simulation_within_compiled_code(
    tmp_path: Path, number: int, calls_back: bool
) -> None:
    order = [sys.executable, "-c", ENDLESS.replace("{calls_back}", str(calls_back))]
    there = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(order, env=there, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "solving\n"
            process.send_signal(number)
            assert process.wait(60) == Exit.INTERRUPTED
            assert process.stdout.read() == ""
        finally:
            process.kill()
    assert list(tmp_path.glob("plimsoll-*")) == []


def test_loads_of_a_history_are_replayed_from_its_first_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant history of other loads than the snapshot's; the days are its days."""
    shape = ClusterShape(brokers=3, partitions=12, racks=1, rf=1, young=False)
    start = synthetic_start(shape, BEGIN_MS, 1)
    path = tmp_path / "cluster.json"
    write_snapshot(path, start)
    asked = list[tuple[str, int | None]]()

    def past_loads(_settings: Settings, cluster_id: str, days: int | None) -> PastLoads:
        asked.append((cluster_id, days))
        ids = [(str(topic), number) for topic, number in start.ids]
        loads = np.full((len(ids), 48), 1e6)
        loads[0] = 50e6
        return PastLoads(("2026-03-02", "2026-03-03"), hours_of(ids, loads))

    monkeypatch.setattr(compose, "past_loads", past_loads)
    code, out = called_on(path, "--history", "--policy", "eager", "-o", "json")
    answer = json.loads(out)
    assert (code, answer["days"], answer["begin_ms"]) == (
        Exit.DONE,
        2,
        int(1000 * MONDAY.timestamp()),
    )
    (policy,) = answer["policies"]
    assert len(policy["days"]) == 2
    # One partition carries nearly all of the load, which nothing balances.
    assert all(hour["outside"] == 1 for hour in policy["hours"])
    called_on(path, "--history", "--days", "2")
    assert asked == [(start.header.cluster_id, None), (start.header.cluster_id, 2)]


def called_on(path: Path, *arguments: str) -> tuple[int, str]:
    order = ["simulate", "--snapshot", str(path), "--step", "1h", *arguments]
    result = CliRunner().invoke(app, order)
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--history", "give a snapshot of it by --snapshot FILE"),
        ("--snapshot absent.json", "absent.json"),
        ("--history --snapshot a.json --steady", "--history and --steady both say what the loads"),
        (
            "--history --snapshot a.json --load-csv a.csv",
            "--history and --load-csv both say what the loads are; leave one out",
        ),
        ("--history --snapshot a.json --growth 0.02", "--history and --growth both say"),
        ("--snapshot a.json --brokers 9", "--snapshot and --brokers both say what the cluster is"),
        ("--snapshot a.json --partitions 24", "--snapshot and --partitions both say"),
        ("--steady --growth 0.5", "--steady and --growth both say what the loads are"),
        ("--steady --bursts 7", "--steady and --bursts both say"),
        ("--load-csv a.csv --steady", "--load-csv and --steady both say"),
        ("--load-csv a.csv --growth 0", "--load-csv and --growth both say"),
        ("--load-csv a.csv --bursts 0", "--load-csv and --bursts both say"),
    ],
)
def test_an_option_that_another_one_leaves_without_effect_is_refused(
    arguments: str, words: str
) -> None:
    result = CliRunner().invoke(app, ["simulate", *arguments.split()])
    assert result.exit_code == Exit.USAGE
    assert words in result.output
