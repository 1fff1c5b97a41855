"""When moves may start, and how severe a rule is."""

import math
from datetime import UTC, datetime, timedelta

import pytest

from model.stop_rules import Reaction, StopRule, StopRules


def local(text: str) -> float:
    """A time of 2 March 2026 by the local clock, in seconds since the epoch."""
    return datetime.fromisoformat(f"2026-03-02T{text}").astimezone().timestamp()


@pytest.mark.parametrize(
    ("hours", "at", "is_open"),
    [
        ("", "12:00", True),
        ("08:00-18:00", "08:00", True),
        ("08:00-18:00", "17:59:59", True),
        ("08:00-18:00", "18:00", False),
        ("08:00-18:00", "07:59:59", False),
        ("22:00-06:00", "23:30", True),
        ("22:00-06:00", "05:59", True),
        ("22:00-06:00", "06:00", False),
        ("22:00-06:00", "21:59", False),
    ],
)
def test_a_window_follows_the_local_clock_across_midnight(
    hours: str, at: str, is_open: bool
) -> None:
    assert StopRules(window_hours=hours).is_open(local(at)) == is_open


def test_a_window_with_an_end_date_ends_for_good() -> None:
    end = datetime(2026, 3, 1, 6, tzinfo=UTC)
    rules = StopRules(window_end=end, window_hours="00:00-23:59")
    assert rules.is_open((end - timedelta(seconds=1)).timestamp())
    assert not rules.is_open(end.timestamp())
    assert not rules.is_open((end + timedelta(days=30)).timestamp())


@pytest.mark.parametrize(
    ("hours", "end", "at", "changes"),
    [
        ("", "", "12:00", ""),
        ("", "18:30:30", "12:00", "18:30:30"),
        ("", "11:00", "12:00", ""),
        ("22:00-23:30", "", "12:00:01", "22:00"),
        ("22:00-23:30", "", "22:00", "23:30"),
        ("22:00-23:30", "22:10:05", "22:05", "22:10:05"),
        ("22:00-23:30", "21:00", "12:00", ""),
    ],
)
def test_the_next_change_of_a_window_is_known(hours: str, end: str, at: str, changes: str) -> None:
    until = datetime.fromtimestamp(local(end), UTC) if end else None
    rules = StopRules(window_hours=hours, window_end=until)
    assert rules.next_change_s(local(at)) == (local(changes) if changes else math.inf)


def test_an_end_without_a_zone_is_local() -> None:
    rules = StopRules.model_validate_json('{"window_end":"2026-03-02T06:00:00"}')
    assert rules.is_open(local("05:59"))
    assert not rules.is_open(local("06:00"))


def test_a_rollback_is_not_rolled_back_itself_and_has_no_window() -> None:
    rules = StopRules(
        offline=Reaction.ROLL_BACK, disk=Reaction.PAUSE, window=Reaction.ROLL_BACK
    ).for_rollback()
    assert rules.reaction(StopRule.OFFLINE) is Reaction.STOP
    assert rules.reaction(StopRule.DISK) is Reaction.PAUSE
    assert rules.reaction(StopRule.WINDOW) is Reaction.OFF


def test_moves_of_someone_else_always_stop_a_run() -> None:
    assert StopRules().reaction(StopRule.FOREIGN) is Reaction.STOP
