"""`plimsoll simulate`: tables, pictures, JSON, and orders that make no sense."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from control.cli.exit_codes import Exit
from control.cli.main import app
from control.settings.trigger_table import Trigger

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
        (("--days", "0"), "greater than or equal to 1"),
        (("--step", "1s"), "give 15s to 1h"),
        (("--policy", "gentle"), "there are no limits named 'gentle'"),
        (("--policy", "a="), "name limits, or a configuration file"),
        (("--policy", "eager", "--policy", "eager"), "two policies are named 'eager'"),
        (("--fault", "dead:1@2d"), "begins after the 1 simulated days"),
        (("--fault", "dead:8@1h"), "there is no broker 8"),
        (("--shape", "wave"), "there are step"),
        (("--load-csv", "absent.csv"), "absent.csv"),
        (("--snapshot", "absent.json"), "absent.json"),
    ],
)
def test_orders_without_sense_are_refused(arguments: tuple[str, ...], words: str) -> None:
    code, message = called(*arguments)
    assert code == Exit.USAGE
    assert words in message


def test_a_policy_that_can_never_act_is_refused(mine: Path) -> None:
    off = "\n".join(f"{trigger} = 'off'" for trigger in Trigger)
    mine.write_text(f"[triggers]\n{off}\n{MINE}")
    code, message = called("--policy", str(mine))
    assert code == Exit.USAGE
    assert "policy mine: it can never act: every trigger is off" in message


def test_a_table_shorter_than_the_days_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text("time,topic,rate\n2026-02-02T00:00:00Z,topic-000000,5e6\n")
    code, message = called("--load-csv", str(path), "--days", "3")
    assert code == Exit.USAGE
    assert "covers 1 day, fewer than --days 3" in message
