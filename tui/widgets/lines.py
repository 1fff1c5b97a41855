"""Lines of text that repaint only when they change."""

from collections.abc import Sequence

from rich.text import Text
from textual.widgets import Static

from tui.viewmodel.cells import Cell
from tui.widgets.paint import painted, palette_of


class Lines(Static):
    """Some lines; none is broken at the end of the widget."""

    shown: tuple[Cell, ...] | None = None

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._paint())

    def show(self, lines: Sequence[Cell]) -> None:
        """Show these lines instead."""
        lines = tuple(lines)
        if lines != self.shown:
            self.shown = lines
            self._paint()

    def _paint(self) -> None:
        colours = palette_of(self.app)
        lines = [painted(line, colours) for line in self.shown or ()]
        self.update(Text("\n", no_wrap=True).join(lines))
