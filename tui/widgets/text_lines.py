"""Lines of text that repaint only when they change."""

from collections.abc import Sequence

from rich.text import Text
from textual.events import Resize
from textual.widgets import Static

from tui.viewmodel.cells import Cell, shorten_line
from tui.widgets.paint import painted, palette_of


class Lines(Static):
    """Some lines, truncated at the edge instead of wrapped."""

    shown: tuple[Cell, ...] | None = None

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _theme: self._paint())

    def show(self, lines: Sequence[Cell]) -> None:
        """Show these lines."""
        lines, before = tuple(lines), self.shown
        if lines != before:
            self.shown = lines
            # A layout costs more than everything else on the screen.
            self._paint(layout=before is None or len(lines) != len(before))
        if before is None:
            # A layout requested before the first one has finished may be lost.
            self.call_after_refresh(self.refresh, layout=True)

    def on_resize(self, _event: Resize) -> None:
        if self.shown is not None:
            self._paint()

    def _paint(self, *, layout: bool = False) -> None:
        colours = palette_of(self.app)
        width = self.content_size.width
        shown = self.shown or ()
        # Before the first layout there is no width yet.
        cut = [shorten_line(line, width) for line in shown] if width else shown
        lines = [painted(line, colours) for line in cut]
        self.update(Text("\n", no_wrap=True).join(lines), layout=layout)
