"""Limits per day of `--auto`: how long the next run must wait, from the journals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from control.settings.auto_limits import AutoLimits

if TYPE_CHECKING:
    from executor.journal.run_history import RunUsage

DAY_S: Final = 24 * 3600.0


def runs_of_the_day(runs: "Sequence[RunUsage]", now_ms: int) -> "tuple[RunUsage, ...]":
    """Runs that started within 24 hours of now, oldest first.

    Those after now count, too, since the clock may have been set back.
    """
    near = (run for run in runs if abs(now_ms - run.started_at_ms) < 1000 * DAY_S)
    return tuple(sorted(near, key=lambda run: run.started_at_ms))


def runs_wait_s(limits: AutoLimits, runs: "Sequence[RunUsage]", now_ms: int) -> float:
    """Seconds until `runs_per_day` allows another run; 0 where it does now."""
    most, found = limits.runs_per_day, runs_of_the_day(runs, now_ms)
    if most is None or len(found) < most:
        return 0.0
    return _expires_s(found[-most], now_ms)


def bytes_wait_s(limits: AutoLimits, runs: "Sequence[RunUsage]", now_ms: int, needed: int) -> float:
    """Seconds until `bytes_per_day` allows a run that copies `needed` bytes; 0 where it does now.

    A run of more than the whole limit waits until none counts.
    """
    if limits.bytes_per_day is None or needed == 0:
        return 0.0
    found = runs_of_the_day(runs, now_ms)
    over = needed + sum(run.bytes_copied for run in found) - limits.bytes_per_day
    wait_s = 0.0
    for run in found:
        if over <= 0:
            break
        over, wait_s = over - run.bytes_copied, _expires_s(run, now_ms)
    return wait_s


def runs_left(limits: AutoLimits, runs: "Sequence[RunUsage]", now_ms: int) -> int | None:
    """Runs that `runs_per_day` allows now; None without that limit."""
    if limits.runs_per_day is None:
        return None
    return max(0, limits.runs_per_day - len(runs_of_the_day(runs, now_ms)))


def bytes_left(limits: AutoLimits, runs: "Sequence[RunUsage]", now_ms: int) -> int | None:
    """Bytes that `bytes_per_day` allows now; None without that limit."""
    if limits.bytes_per_day is None:
        return None
    copied = sum(run.bytes_copied for run in runs_of_the_day(runs, now_ms))
    return max(0, limits.bytes_per_day - copied)


def _expires_s(run: "RunUsage", now_ms: int) -> float:
    return max(1.0, DAY_S - (now_ms - run.started_at_ms) / 1000)
