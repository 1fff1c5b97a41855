"""The six screens by name, in the order of their keys."""

from typing import NamedTuple


class Mode(NamedTuple):
    """One of the screens that a key leads to."""

    name: str
    """Textual's name of the mode."""
    title: str
    purpose: str

    @property
    def binding(self) -> str:
        """The id of the binding that opens it."""
        return f"screen.{self.name}"


MODES = (
    Mode("overview", "Overview", "Which broker is over what, and why"),
    Mode("plan", "Plan", "What plimsoll wants to do, why, and what it costs"),
    Mode("run", "Run", "How far the moves are, and what would stop them"),
    Mode("topics", "Topics", "Load and skew of each topic, and what is left alone"),
    Mode("history", "History", "Earlier runs: what was planned and what came of it"),
    Mode("log", "Log", "What plimsoll decided, line by line"),
)
