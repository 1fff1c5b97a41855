"""Questions are covered on a terminal that is too small to read them."""

from typing import Final, TypeVar

from textual.screen import ModalScreen
from textual.widgets import Static

T = TypeVar("T")
LEAST: Final = (60, 16)
"""Columns and lines, as of the screens below."""


class Covered(ModalScreen[T]):
    """Takes no yes while it is covered; escape says no on any terminal."""

    def __init__(self) -> None:
        super().__init__()
        words = "Too small: make this terminal 60 columns by 16 lines; escape says no."
        self._small = Static(words, id="too-small")

    def on_resize(self) -> None:
        if self.is_covered and self._small.parent is None:
            self.mount(self._small)
        self._small.display = self.is_covered

    @property
    def is_covered(self) -> bool:
        """Whether nobody can read what is asked."""
        return self.app.size.width < LEAST[0] or self.app.size.height < LEAST[1]
