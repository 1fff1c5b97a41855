"""Limits per day: a rolling day of runs, from the journals."""

import pytest

from control.loop.day_limits import (
    bytes_left,
    bytes_wait_s,
    runs_left,
    runs_of_the_day,
    runs_wait_s,
)
from control.settings.auto_limits import EAGER, AutoLimits
from executor.journal.run_history import RunUsage

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
TB = 10**12


def limits(**changes: int) -> AutoLimits:
    return EAGER.model_copy(update=changes)


def ago(*hours: float, size: int = TB) -> tuple[RunUsage, ...]:
    return tuple(
        RunUsage(started_at_ms=NOW_MS - int(h * HOUR_MS), bytes_copied=size) for h in hours
    )


@pytest.mark.parametrize(
    ("hours", "expected"),
    [
        ((), 0.0),
        ((20, 3), 0.0),
        ((20, 3, 1), 4.0),
        ((23, 20, 3, 1), 4.0),
        ((24, 3, 1), 0.0),
        # After the clock was set back by an hour, a run may lie ahead.
        ((20, 3, -1), 4.0),
        ((-0.5, -0.6, -1), 24.5),
        # A clock that was wrong by years does not end all runs.
        ((-9000, -9000, -9000), 0.0),
    ],
)
def test_a_run_waits_until_an_earlier_one_is_a_day_old(
    hours: tuple[float, ...], expected: float
) -> None:
    found = runs_wait_s(limits(runs_per_day=3), ago(*hours), NOW_MS)
    assert found / 3600 == pytest.approx(expected)


@pytest.mark.parametrize(
    ("hours", "needed", "expected"),
    [
        ((), 2 * TB, 0.0),
        ((20, 3), TB, 0.0),
        ((20, 3), TB + 1, 4.0),
        ((20, 3), 3 * TB, 21.0),
        ((20, 3, 1), TB, 4.0),
        ((20, 3, 1), 0, 0.0),
        ((20, 3), 9 * TB, 21.0),
    ],
)
def test_a_plan_waits_until_its_bytes_fit_the_day(
    hours: tuple[float, ...], needed: int, expected: float
) -> None:
    found = bytes_wait_s(limits(bytes_per_day=3 * TB), ago(*hours), NOW_MS, needed)
    assert found / 3600 == pytest.approx(expected)


def test_without_limits_per_day_nothing_waits() -> None:
    runs = ago(1, 1, 1)
    assert runs_wait_s(EAGER, runs, NOW_MS) == 0.0
    assert bytes_wait_s(EAGER, runs, NOW_MS, 9 * TB) == 0.0
    assert runs_of_the_day(ago(3, 1, 30), NOW_MS) == ago(3, 1)


def test_limits_per_day_leave_runs_and_bytes() -> None:
    runs, most = ago(25, 20, 3), limits(runs_per_day=3, bytes_per_day=5 * TB)
    assert (runs_left(most, runs, NOW_MS), bytes_left(most, runs, NOW_MS)) == (1, 3 * TB)
    most = limits(runs_per_day=1, bytes_per_day=TB)
    assert (runs_left(most, runs, NOW_MS), bytes_left(most, runs, NOW_MS)) == (0, 0)
    unlimited = EAGER.model_copy(update={"runs_per_day": None, "bytes_per_day": None})
    assert (runs_left(unlimited, runs, NOW_MS), bytes_left(unlimited, runs, NOW_MS)) == (None, None)
