"""`[schedule]`: what is read from a file, and messages about wrong values."""

from pathlib import Path

import pytest

from control.settings.schedule_table import ScheduleTable
from control.settings.settings import Settings, load
from control.settings.trigger_table import Trigger
from model.errors import ConfigError

WINDOW = '[[schedule.windows]]\nstart = "0 2 * * SAT"\nduration = "4h"\n'
FREEZE = "[[schedule.freezes]]\nfirst = {}\nlast = {}\n"


def schedule(folder: Path, text: str) -> ScheduleTable:
    path = folder / "mine.toml"
    path.write_text(text)
    return load({}, config=path).schedule


def test_by_default_runs_may_start_at_any_time() -> None:
    assert Settings().schedule == ScheduleTable()
    repairs = (Trigger.UNDER_MIN_ISR, Trigger.DEAD_BROKER, Trigger.DEAD_LOG_DIR)
    assert Settings().schedule.exempt == repairs


def test_a_schedule_is_read(tmp_path: Path) -> None:
    text = '[schedule]\nexempt = ["over_capacity"]\n' + WINDOW + 'zone = "Asia/Kolkata"\n'
    found = schedule(tmp_path, text + FREEZE.format("2026-12-20", '"2027-01-03"'))
    assert found.exempt == (Trigger.OVER_CAPACITY,)
    assert found.windows[0].duration == 4 * 3600.0
    assert found.windows[0].zone == "Asia/Kolkata"
    assert found.freezes[0].last.isoformat() == "2027-01-03"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WINDOW.replace("0 2", "0 0 2"), "is an expression of Quartz; leave out seconds"),
        (WINDOW.replace("* * SAT", "? * SAT"), "is an expression of Quartz"),
        (WINDOW.replace("0 2 *", "2 *"), "is not a cron expression: give minute, hour"),
        (WINDOW.replace("0 2 *", "0 25 *"), "is not a cron expression: Bad hour"),
        (WINDOW.replace("* * SAT", "31 2 *"), "is not a cron expression: Bad day-of-month"),
        (WINDOW + 'zone = "Berlin"', "'Berlin' is not a time zone"),
        (WINDOW + 'zone = "../../etc/passwd"', "is not a time zone"),
        (WINDOW.replace("4h", "0"), "greater than 0"),
        (WINDOW.replace("4h", "soon"), "schedule.windows"),
        (FREEZE.format("2026-12-20", "2026-12-19"), "is before the first"),
        (FREEZE.format("2026-12-20", '"tomorrow"'), "schedule.freezes"),
        (
            FREEZE.format("2026-12-20", "2027-01-03") + FREEZE.format("2027-01-03", "2027-01-09"),
            "from 2026-12-20 to 2027-01-03 and from 2027-01-03 to 2027-01-09 overlap",
        ),
        ('[schedule]\nexempt = ["dead"]', "schedule.exempt"),
        ("[schedule]\nwindow = []", "unknown key 'schedule.window'; did you mean 'windows'"),
    ],
)
def test_a_wrong_schedule_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        schedule(tmp_path, text)
    assert message in str(caught.value)
