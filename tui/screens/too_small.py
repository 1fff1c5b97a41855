"""What is shown on a terminal too small to read; dialogs are covered there."""

from typing import Final, TypeVar

from textual.widgets import Static

from tui.screens.backdrop import Over

T = TypeVar("T")
LEAST_COLUMNS: Final = 60
LEAST_LINES: Final = 16
TOO_SMALL: Final = (
    f"Terminal too small: enlarge it to {LEAST_COLUMNS} columns by {LEAST_LINES} lines"
)


def is_too_small(columns: int, lines: int) -> bool:
    """Whether a terminal of this size is too small to read."""
    return columns < LEAST_COLUMNS or lines < LEAST_LINES


class Covered(Over[T]):
    """A dialog that accepts no yes while covered; escape always answers no."""

    def __init__(self) -> None:
        super().__init__()
        self._small = Static(f"{TOO_SMALL}; escape answers no.", id="too-small")

    def on_resize(self) -> None:
        if self.is_covered and self._small.parent is None:
            self.mount(self._small)
        self._small.display = self.is_covered
        self.show_focus()

    def show_focus(self) -> None:
        """Scroll to the focused widget once the change has been laid out."""
        self.call_after_refresh(self._scroll_to_focus)

    def _scroll_to_focus(self) -> None:
        if self.focused is not None:
            self.focused.scroll_visible(animate=False)

    @property
    def is_covered(self) -> bool:
        """Whether the terminal is too small to read the dialog."""
        return is_too_small(*self.app.size)
