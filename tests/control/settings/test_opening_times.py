"""When the schedule of `--auto` lets a run start, over changes of clocks and freezes."""

import math
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from control.settings.opening_times import closed_text, opens_in_s
from control.settings.schedule_table import Freeze, MaintenanceWindow, ScheduleTable

HOUR_S = 3600.0
BERLIN = "Europe/Berlin"


def window(start: str, hours: float, zone: str = BERLIN) -> ScheduleTable:
    one = MaintenanceWindow(start=start, duration=hours * HOUR_S, zone=zone)
    return ScheduleTable(windows=(one,))


def berlin(year: int, month: int, day: int, hour: int = 0, minute: int = 0, fold: int = 0) -> float:
    zone = ZoneInfo(BERLIN)
    return datetime(year, month, day, hour, minute, fold=fold, tzinfo=zone).timestamp()


def closed_at(schedule: ScheduleTable, now_s: float) -> str:
    return closed_text(schedule, now_s, opens_in_s(schedule, now_s))


def frozen(first: str, last: str) -> Freeze:
    begin, end = date.fromisoformat(first), date.fromisoformat(last)
    return Freeze(first=begin, last=end, zone=BERLIN)


def test_without_windows_runs_may_start_at_any_time() -> None:
    assert opens_in_s(ScheduleTable(), berlin(2026, 7, 1)) == 0.0


def test_a_window_opens_and_closes() -> None:
    saturday = window("0 2 * * SAT", 4)
    opening = berlin(2026, 11, 28, 2)
    assert opens_in_s(saturday, opening - 1) == 1.0
    assert opens_in_s(saturday, opening) == 0.0
    assert opens_in_s(saturday, opening + 4 * HOUR_S - 1) == 0.0
    assert opens_in_s(saturday, opening + 4 * HOUR_S) == 7 * 24 * HOUR_S - 4 * HOUR_S


def test_a_window_opens_on_a_day_of_23_hours() -> None:
    """At 02:30 on 2026-03-29 there is no 02:30; cron takes the time after the gap."""
    night = window("30 2 * * *", 1)
    assert opens_in_s(night, berlin(2026, 3, 29, 1, 59)) == 60.0
    assert opens_in_s(night, berlin(2026, 3, 29, 3, 59)) == 0.0
    assert opens_in_s(night, berlin(2026, 3, 29, 4, 0)) > 0.0


def test_a_window_opens_once_on_a_day_of_25_hours() -> None:
    """On 2026-10-25 there are two 02:30; the window opens at the first, for its duration."""
    night = window("30 2 * * *", 1)
    first = berlin(2026, 10, 25, 2, 30)
    assert berlin(2026, 10, 25, 2, 30, fold=1) == first + HOUR_S
    assert opens_in_s(night, first - 1) == 1.0
    for minutes in range(60):
        assert opens_in_s(night, first + 60 * minutes) == 0.0
    assert opens_in_s(night, first + HOUR_S) == pytest.approx(24 * HOUR_S)


@pytest.mark.parametrize("zone", [BERLIN, "America/New_York", "America/St_Johns", "UTC"])
@pytest.mark.parametrize("start", ["30 2 * * *", "0 */6 * * *", "15 1 * * SUN", "*/20 1-3 * * *"])
def test_a_wait_ends_when_the_window_opens(start: str, zone: str) -> None:
    """Every 90 minutes around both changes of clocks; nothing opens in between."""
    schedule = window(start, 0.4, zone)
    for month, day in ((3, 7), (3, 28), (4, 4), (10, 3), (10, 24), (10, 31)):
        begin = datetime(2026, month, day, 12, tzinfo=UTC)
        for half in range(0, 72, 3):
            now_s = (begin + timedelta(minutes=30 * half, seconds=7)).timestamp()
            wait_s = opens_in_s(schedule, now_s)
            assert opens_in_s(schedule, now_s + wait_s) == 0.0
            for step in range(1, 4):
                between_s = wait_s * step / 4
                assert opens_in_s(schedule, now_s + between_s) == pytest.approx(wait_s - between_s)


def test_a_clock_set_back_within_a_window_leaves_it_open() -> None:
    night = window("0 1 * * *", 4)
    assert opens_in_s(night, berlin(2026, 7, 1, 4)) == 0.0
    assert opens_in_s(night, berlin(2026, 7, 1, 3)) == 0.0


def test_freezes_close_windows() -> None:
    daily = ScheduleTable(
        windows=window("0 22 * * *", 4).windows,
        freezes=(frozen("2026-12-20", "2027-01-03"), frozen("2027-01-05", "2027-01-05")),
    )
    evening = berlin(2026, 12, 19, 23)
    assert opens_in_s(daily, evening) == 0.0
    assert closed_at(daily, evening) == ""
    midnight = berlin(2026, 12, 20)
    # The window of the last frozen day is still open when the freeze ends.
    assert opens_in_s(daily, midnight) == berlin(2027, 1, 4) - midnight
    text = "runs are frozen; the next run may start Mon 2027-01-04 00:00 Europe/Berlin"
    assert closed_at(daily, midnight) == text
    assert opens_in_s(daily, berlin(2027, 1, 4, 12)) == 10 * HOUR_S


def test_freezes_alone_close_too() -> None:
    only = ScheduleTable(freezes=(frozen("2026-12-24", "2026-12-26"),))
    assert opens_in_s(only, berlin(2026, 12, 23, 23)) == 0.0
    assert opens_in_s(only, berlin(2026, 12, 24)) == 3 * 24 * HOUR_S


def test_a_schedule_may_never_open_again() -> None:
    frozen_for_long = ScheduleTable(
        windows=window("0 2 * * *", 1).windows, freezes=(frozen("2026-01-01", "2099-12-31"),)
    )
    now_s = berlin(2026, 11, 1)
    assert opens_in_s(frozen_for_long, now_s) == math.inf
    text = "runs are frozen; none may start within ten years"
    assert closed_at(frozen_for_long, now_s) == text
    leap = window("0 2 29 2 *", 1)
    assert opens_in_s(leap, berlin(2026, 11, 1)) == berlin(2028, 2, 29, 2) - berlin(2026, 11, 1)


def test_words_say_when_the_next_run_may_start() -> None:
    text = "outside the maintenance windows; the next run may start Sat 2026-11-28 02:00 "
    assert closed_at(window("0 2 * * SAT", 4), berlin(2026, 11, 26)) == text + BERLIN


def test_the_next_opening_has_the_zone_of_the_window_that_opens() -> None:
    late = MaintenanceWindow(start="0 22 * * *", duration=HOUR_S, zone=BERLIN)
    first = MaintenanceWindow(start="0 3 * * *", duration=HOUR_S, zone="Asia/Tokyo")
    text = closed_at(ScheduleTable(windows=(late, first)), berlin(2026, 7, 1, 12))
    assert text.endswith("may start Thu 2026-07-02 03:00 Asia/Tokyo")
