"""Meanings become colours of the theme."""

from collections.abc import Iterable, Mapping

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color

from model.printable import masked
from tui.viewmodel.cells import Role, Span

Palette = Mapping[Role, Style]


def palette(variables: Mapping[str, str]) -> Palette:
    """The style of each meaning, from a theme's variables.

    What is well is blue, not green: red and green look alike to many people.
    """

    def color(name: str) -> Style:
        return Style(color=Color.parse(variables[name]).rich_color)

    error = color("text-error")
    return {
        Role.PLAIN: Style(),
        Role.MUTED: Style(dim=True),
        Role.STRONG: Style(bold=True),
        Role.GOOD: color("text-primary"),
        Role.OVER: error + Style(bold=True),
        Role.UNDER: color("text-warning"),
        Role.MARK: Style(bold=True),
        Role.ALARM: error + Style(bold=True, reverse=True),
    }


def palette_of(app: App[object]) -> Palette:
    """The palette of the theme that the app shows."""
    return palette(app.theme_variables)


def painted(line: Iterable[Span], colours: Palette) -> Text:
    """One line of text; it is never wrapped."""
    parts = ((masked(span.text), colours[span.role]) for span in line)
    return Text.assemble(*parts, no_wrap=True, end="")
