"""On a terminal that is too small to be read; questions are covered there."""

from typing import Final, TypeVar

from textual.screen import ModalScreen
from textual.widgets import Static

T = TypeVar("T")
LEAST_COLUMNS: Final = 60
LEAST_LINES: Final = 16
TOO_SMALL: Final = (
    f"Terminal too small: enlarge it to {LEAST_COLUMNS} columns by {LEAST_LINES} lines"
)


def is_too_small(columns: int, lines: int) -> bool:
    """Whether nobody can read what a terminal of this size shows."""
    return columns < LEAST_COLUMNS or lines < LEAST_LINES


class Covered(ModalScreen[T]):
    """Takes no yes while it is covered; escape says no on any terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._small = Static(f"{TOO_SMALL}; escape answers no.", id="too-small")

    def on_resize(self) -> None:
        if self.is_covered and self._small.parent is None:
            self.mount(self._small)
        self._small.display = self.is_covered
        self.show_focus()

    def show_focus(self) -> None:
        """Scroll to what keys act on, once what has changed is laid out."""
        self.call_after_refresh(self._scroll_to_focus)

    def _scroll_to_focus(self) -> None:
        if self.focused is not None:
            self.focused.scroll_visible(animate=False)

    @property
    def is_covered(self) -> bool:
        """Whether nobody can read what is asked."""
        return is_too_small(*self.app.size)
