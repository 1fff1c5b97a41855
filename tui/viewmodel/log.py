"""The decisions of the loop, one line each."""

from datetime import UTC, datetime

from control.view import LogLine
from tui.viewmodel.cells import Cell, Role, Span

LEVEL_ROLES = {"warning": Role.UNDER, "error": Role.OVER}


def clock_text(at_ms: int) -> str:
    """The time of the day: `20:15:03Z`."""
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%H:%M:%S}Z"


def log_line(line: LogLine) -> Cell:
    """`20:15:03Z warning cannot connect: ...`; the level shows where it matters."""
    role = LEVEL_ROLES.get(line.level, Role.PLAIN)
    words = line.text if role is Role.PLAIN else f"{line.level} {line.text}"
    return (Span(f"{clock_text(line.at_ms)} ", Role.MUTED), Span(words, role))
