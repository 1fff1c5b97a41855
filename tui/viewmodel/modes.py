"""The seven screens by name, in the order of their keys."""

from typing import NamedTuple


class ScreenMode(NamedTuple):
    """One of the screens that a key opens."""

    name: str
    """Textual's name of the mode."""
    title: str
    purpose: str

    @property
    def binding(self) -> str:
        """The id of the key binding that opens it."""
        return f"screen.{self.name}"


MODES = (
    ScreenMode("overview", "Overview", "Load and balance of each broker"),
    ScreenMode("plan", "Plan", "The proposed moves, their reasons and their cost"),
    ScreenMode("run", "Run", "Progress of the moves, and what would stop them"),
    ScreenMode("topics", "Topics", "Load and skew of each topic, and what is excluded"),
    ScreenMode("history", "History", "Previous runs: what was planned and achieved"),
    ScreenMode("log", "Log", "plimsoll's decisions, line by line"),
    ScreenMode("tasks", "Tasks", "What was requested for brokers, and how far it is"),
)
