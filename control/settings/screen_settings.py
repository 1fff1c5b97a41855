"""Appearance of the screen: theme, characters and keys."""

from difflib import get_close_matches
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator

from model.files import FileModel

THEMES: Final = (
    "textual-dark",
    "textual-light",
    "plimsoll-colour-blind",
    "ansi-dark",
    "ansi-light",
    "atom-one-dark",
    "atom-one-light",
    "catppuccin-frappe",
    "catppuccin-latte",
    "catppuccin-macchiato",
    "catppuccin-mocha",
    "dracula",
    "flexoki",
    "gruvbox",
    "monokai",
    "nord",
    "rose-pine",
    "rose-pine-dawn",
    "rose-pine-moon",
    "solarized-dark",
    "solarized-light",
    "tokyo-night",
)
"""Textual's themes and plimsoll's; listed here since most commands load no Textual."""


def _flat(table: Any, trail: str = "") -> Any:
    """`plan.approve = "Y"` is a table in TOML, unless the name is in quotes."""
    if not isinstance(table, dict):
        return table
    found: dict[str, Any] = {}
    for name, value in table.items():
        inner = isinstance(value, dict)
        found |= _flat(value, f"{trail}{name}.") if inner else {trail + name: value}
    return found


Keys = Annotated[dict[str, str], BeforeValidator(_flat)]
"""Keys of the screen, by action id."""


def theme_of(name: str) -> str:
    """The name of a theme. Raises ValueError for an unknown theme."""
    if name not in THEMES:
        near = get_close_matches(name.lower(), THEMES, 1)
        guess = f"did you mean {near[0]!r}? The" if near else "the"
        known = f"themes are {', '.join(THEMES)}"
        raise ValueError(f"unknown theme {name!r}; {guess} {known}")
    return name


class ScreenSettings(FileModel):
    """`[screen]`: theme and characters."""

    theme: Annotated[str, AfterValidator(theme_of)] | None = None
    """Name of a theme; by default the screen's own."""
    ascii: bool = False
    """Draw with ASCII only, even if the terminal supports Unicode."""
