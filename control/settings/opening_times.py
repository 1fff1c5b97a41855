"""Whether the schedule of `--auto` lets a run start now, and when it does next."""

import math
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim

from control.settings.schedule_table import MaintenanceWindow, ScheduleTable

FOLD_S: Final = 3 * 3600.0
"""More than clocks are ever set back by: ticks of an hour that comes twice are in the order of
local times, so they are looked for from before or after it."""

MOST_S: Final = 10 * 366 * 86_400.0
"""Longer waits count as for ever."""


def opens_in_s(schedule: ScheduleTable, now_s: float) -> float:
    """Seconds until a run may start; 0 where it may now, inf where none may within ten years.

    now_s: seconds since the epoch. Windows follow the wall clock, so the time may change when
    that is set.
    """
    at_s = now_s
    # A start of a window is open, and each freeze is left only once.
    for _ in range(2 * len(schedule.freezes) + 2):
        frozen = [end for begin, end in _spans(schedule) if begin <= at_s < end]
        if frozen:
            at_s = max(frozen)
        elif not schedule.windows or any(_is_open(w, at_s) for w in schedule.windows):
            return at_s - now_s
        else:
            at_s = min(_next_start_s(w, at_s) for w in schedule.windows)
        if at_s - now_s > MOST_S:
            break
    return math.inf


def closed_text(schedule: ScheduleTable, now_s: float, wait_s: float) -> str:
    """Why no run may start now, and until when; empty where one may.

    wait_s: `opens_in_s` at that time.
    """
    if wait_s <= 0:
        return ""
    frozen = any(begin <= now_s < end for begin, end in _spans(schedule))
    why = "runs are frozen" if frozen else "outside the maintenance windows"
    if wait_s == math.inf:
        return f"{why}; none may start within ten years"
    opens_s = now_s + wait_s
    zones = [w.zone for w in schedule.windows if _is_open(w, opens_s)]
    zone = (zones or [f.zone for f in schedule.freezes])[0]
    opening = datetime.fromtimestamp(opens_s, ZoneInfo(zone))
    return f"{why}; the next run may start {opening:%a %Y-%m-%d %H:%M} {zone}"


def _spans(schedule: ScheduleTable) -> tuple[tuple[float, float], ...]:
    return tuple(freeze.span_s for freeze in schedule.freezes)


def _is_open(window: MaintenanceWindow, at_s: float) -> bool:
    ticks = CronSim(window.start, _local(window, at_s + FOLD_S), reverse=True)
    last_s = next((t.timestamp() for t in ticks if t.timestamp() <= at_s), -math.inf)
    return at_s < last_s + window.duration


def _next_start_s(window: MaintenanceWindow, at_s: float) -> float:
    ticks = CronSim(window.start, _local(window, at_s - FOLD_S))
    return next((t.timestamp() for t in ticks if t.timestamp() > at_s), math.inf)


def _local(window: MaintenanceWindow, at_s: float) -> datetime:
    return datetime.fromtimestamp(math.floor(at_s), ZoneInfo(window.zone))
