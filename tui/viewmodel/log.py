"""The loop's decisions as log lines."""

from collections.abc import Sequence
from datetime import UTC, datetime

from control.loop.view import LogLine
from tui.screen_state import Moment
from tui.viewmodel.cells import Cell, Role, Span
from tui.viewmodel.sort_filter import Filter

LEVELS = ("info", "warning", "error")
"""From least to most severe; each includes the more severe ones."""

BEFORE_MS = 2000
"""Time between the approval and the first step of a run, milliseconds."""

LEVEL_ROLES = {"warning": Role.UNDER, "error": Role.OVER}


def clock_text(at_ms: int) -> str:
    """The time of day in UTC: `20:15:03Z`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}Z"


def log_line(line: LogLine) -> Cell:
    """`20:15:03Z warning cannot connect: ...`; the level `info` is omitted."""
    role = LEVEL_ROLES.get(line.level, Role.PLAIN)
    words = line.text if role is Role.PLAIN else f"{line.level} {line.text}"
    return (Span(f"{clock_text(line.at_ms)} ", Role.MUTED), Span(words, role))


def lines_of_run(moment: Moment) -> tuple[LogLine, ...]:
    """What was done and what happened since the run on the run screen began.

    The approval comes just before the run.
    """
    run = moment.view.run
    if run is None:
        return ()
    since_ms = run.started_at_ms - BEFORE_MS
    return tuple(line for line in moment.view.log if line.at_ms >= since_ms)


def kept_lines(log: Sequence[LogLine], least: str, by: Filter) -> tuple[LogLine, ...]:
    """The lines of this level and above that match the filter."""
    levels = LEVELS[LEVELS.index(least) :]
    return tuple(
        line for line in log if line.level in levels and by.keeps(f"{line.level} {line.text}")
    )


def next_level(level: str) -> str:
    """The next level; after the last, the first."""
    return LEVELS[(LEVELS.index(level) + 1) % len(LEVELS)]


def lines_since(log: Sequence[LogLine], last: LogLine | None) -> int:
    """The number of lines after this one; all if it is no longer there."""
    for count, line in enumerate(reversed(log)):
        if line is last:
            return count
    return len(log)


def why_no_lines(log: Sequence[LogLine]) -> str:
    """Explain why no line is shown."""
    if log:
        return "No line of this level matches the filter; escape clears it."
    return "No decisions yet. They appear here with their time."
