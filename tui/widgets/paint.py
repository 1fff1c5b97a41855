"""Roles as colours of the theme."""

from collections.abc import Iterable, Mapping
from typing import Final

from rich.style import Style
from rich.text import Text
from textual.app import App
from textual.color import Color

from model.printable import masked
from tui.viewmodel.cells import Role, Span

LIGHT: Final = 0.5
"""Brightness from which a background is light."""
DARKER: Final = 0.12
"""Share by which yellow is darker there."""

Palette = Mapping[Role, Style]


def palette(variables: Mapping[str, str]) -> Palette:
    """Return the style of each role, from a theme's variables.

    GOOD is blue, not green: many people cannot tell red from green.
    """

    def color(name: str) -> Style:
        return Style(color=Color.parse(variables[name]).rich_color)

    error = color("text-error")
    under = Color.parse(variables["text-warning"])
    if Color.parse(variables["background"]).brightness > LIGHT:
        # Yellow on white is too pale to be read, most of all in the cursor's row.
        under = under.darken(DARKER)
    return {
        Role.PLAIN: Style(),
        Role.MUTED: Style(dim=True),
        Role.STRONG: Style(bold=True),
        Role.GOOD: color("text-primary"),
        Role.OVER: error + Style(bold=True),
        Role.UNDER: Style(color=under.rich_color),
        Role.MARK: Style(bold=True),
        Role.ALARM: error + Style(bold=True, reverse=True),
    }


WITHOUT_COLOUR: Final[Palette] = {
    Role.PLAIN: Style(),
    Role.MUTED: Style(dim=True),
    Role.STRONG: Style(bold=True),
    Role.GOOD: Style(),
    Role.OVER: Style(bold=True),
    Role.UNDER: Style(bold=True),
    Role.MARK: Style(bold=True),
    Role.ALARM: Style(bold=True, reverse=True),
}
"""With NO_COLOR; colours turned to grey would dim what is bad."""


def palette_of(app: App[object]) -> Palette:
    """Return the palette of the app's theme."""
    return WITHOUT_COLOUR if app.no_color else palette(app.theme_variables)


def painted(line: Iterable[Span], colours: Palette) -> Text:
    """Return one line of text, which is never wrapped."""
    parts = ((masked(span.text), colours[span.role]) for span in line)
    return Text.assemble(*parts, no_wrap=True, end="")
