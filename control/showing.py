"""How the screen is to look; the front end knows what the names mean."""

from typing import Annotated, Any

from pydantic import BeforeValidator

from model.files import FileModel


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


class ScreenSettings(FileModel):
    """Colours and letters of the screen."""

    theme: str | None = None
    """The name of a theme; the front end's own where none is given."""
    ascii: bool = False
    """Draw with ASCII alone, also in a terminal that knows more."""
