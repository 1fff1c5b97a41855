"""How the screen is to look; the front end knows what the names mean."""

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
"""Textual's themes and ours. Most commands load no Textual, but all check the name."""


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
"""Keys of the screen, by the ids of what they do."""


def theme_of(name: str) -> str:
    """The name of a theme; ValueError where there is no such theme."""
    if name not in THEMES:
        near = get_close_matches(name.lower(), THEMES, 1)
        guess = f"did you mean {near[0]!r}? The" if near else "the"
        known = f"themes are {', '.join(THEMES)}"
        raise ValueError(f"unknown theme {name!r}; {guess} {known}")
    return name


class ScreenSettings(FileModel):
    """Colours and letters of the screen."""

    theme: Annotated[str, AfterValidator(theme_of)] | None = None
    """The name of a theme; the front end's own where none is given."""
    ascii: bool = False
    """Draw with ASCII alone, also in a terminal that knows more."""
