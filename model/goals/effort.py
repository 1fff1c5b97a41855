"""How much a plan may take to find and to make: `quick`, `good` or `best`."""

from enum import StrEnum


class Effort(StrEnum):
    """How far the planner goes."""

    QUICK = "quick"
    """Leader changes alone, in about a second of search; they copy nothing."""
    GOOD = "good"
    """Leader changes and replica moves, within the usual search budget."""
    BEST = "best"
    """The same, searched until proved optimal or for ten times as long."""
