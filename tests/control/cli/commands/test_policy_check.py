"""`plimsoll policy check`: policies in words, and policies without sense."""

import json
from pathlib import Path

import pytest

from control.cli.commands.policy import check
from control.cli.exit_codes import Exit
from control.cli.output import Form
from model.errors import ConfigError

LIMITS = """
[limits.night]
replica_moves = 50
bytes = "100GB"
leader_changes = 1
partitions_per_topic = 10
moves_in_flight = 4
min_gain = 0.1
pause = "{pause}"
confirm = "5m"
"""


def policy(folder: Path, more: str = "", pause: str = "15m") -> Path:
    path = folder / "mine.toml"
    path.write_text(more + LIMITS.format(pause=pause))
    return path


def test_a_policy_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[triggers]\nmode = "empty-broker"\n[stop_rules]\nwindow_hours = "22:00-06:00"\n'
    assert check(policy(tmp_path, more)) == Exit.DONE
    assert capsys.readouterr().out == (
        "limits night:\n"
        "  Acts on partitions below min.insync.replicas, dead brokers, failed log directories, "
        "exceeded capacity and "
        "empty brokers.\n"
        "  Asks a person about broken rules and slow brokers.\n"
        "  Ignores uneven load.\n"
        "  Waits 1 h 00 min for a dead broker to return.\n"
        "  A run adds at most 50 replicas, changes 1 leader, copies 100 GB and changes "
        "10 partitions of a topic, with 4 moves at once.\n"
        "  Balancing needs a gain of 10 % and 5 min 00 s out of tolerance; "
        "repairs need neither.\n"
        "  Between two runs are at least 15 min 00 s.\n"
        "  Moves start only in the hours 22:00-06:00, local time.\n"
    )


def test_a_schedule_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more = """
[[schedule.windows]]
start = "0 2 * * SAT"
duration = "4h"
zone = "Europe/Berlin"
[[schedule.freezes]]
first = 2026-12-20
last = 2027-01-03
"""
    assert check(policy(tmp_path, more)) == Exit.DONE
    assert (
        "  Runs may start for 4 h 00 min from each `0 2 * * SAT` on, Europe/Berlin.\n"
        "  No run starts from 2026-12-20 to the end of 2027-01-03, UTC.\n"
        "  Partitions below min.insync.replicas, dead brokers and failed log directories do not "
        "wait for that.\n"
    ) in capsys.readouterr().out


def test_triggers_that_can_never_act_are_explained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check(policy(tmp_path, "[solve]\neffort = 'quick'\n[schedule]\n" + FROZEN)) == Exit.DONE
    assert (
        "  Nothing is ever done about partitions below min.insync.replicas, dead brokers, failed "
        "log directories and empty brokers: replicas would have to be copied, but effort is quick, "
        "which changes leaders only.\n"
        "  Nothing is ever done about exceeded capacity and uneven load: no run may start within "
        "ten years by its schedule.\n"
    ) in capsys.readouterr().out


OTHERS = (
    "under_min_isr",
    "dead_log_dir",
    "over_capacity",
    "rule_violated",
    "slow_broker",
    "empty_broker",
    "uneven_load",
)
OFF = "".join(f"{trigger} = 'off'\n" for trigger in OTHERS)


FROZEN = "[[schedule.freezes]]\nfirst = 2000-01-01\nlast = 2999-12-31\n"
ACTING = "[triggers]\nrule_violated = 'act'\nslow_broker = 'act'\n"


@pytest.mark.parametrize(
    ("more", "pause", "fault"),
    [
        (f"[triggers]\ndead_broker = 'off'\n{OFF}", "1m", "can never act: every trigger is off"),
        (f"dead_broker_after = 'off'\n[triggers]\n{OFF}", "1m", "and dead_broker_after is off"),
        ("[stop_rules]\nwindow_end = 2001-01-01T00:00:00\n", "1m", "window_end, 2001-01-01"),
        ("", "0s", "has no bounds: pause is 0"),
        (f"{ACTING}[schedule]\nexempt = []\n{FROZEN}", "1m", "ten years"),
    ],
)
def test_a_policy_that_never_acts_or_has_no_bounds_is_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, pause: str, fault: str
) -> None:
    path = policy(tmp_path, more, pause)
    assert check(path, output=Form.JSON) == Exit.USAGE
    shown = capsys.readouterr()
    (found,) = json.loads(shown.out)["policies"]
    assert fault in found["faults"][0]
    assert f"{path}: limits.night: it " in shown.err


@pytest.mark.parametrize(
    ("more", "pause"),
    [
        (f"[triggers]\n{OFF}", "1m"),
        ("[stop_rules]\nwindow = 'off'\nwindow_end = 2001-01-01T00:00:00\n", "1m"),
        (FROZEN, "1m"),
    ],
)
def test_a_policy_that_seldom_acts_is_accepted(tmp_path: Path, more: str, pause: str) -> None:
    assert check(policy(tmp_path, more, pause)) == Exit.DONE


def test_a_file_without_limits_bounds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("dead_broker_after = '1h'\n")
    with pytest.raises(ConfigError, match="nothing bounds --auto"):
        check(path)
    assert check(path, limits="conservative") == Exit.DONE
    with pytest.raises(ConfigError, match="there are no limits named 'brave'"):
        check(path, limits="brave")
