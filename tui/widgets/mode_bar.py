"""The names of the screens; the open one is reversed, a click opens another."""

from textual.content import Content
from textual.widgets import Static

from model.printable import printable
from tui.viewmodel.cells import shorten_middle
from tui.viewmodel.log import clock_text
from tui.viewmodel.modes import MODES

LEAST_PATH = 14
"""Columns below which there is no path."""
GAP = 3
SPACING = ((1, 1), (1, 0), (0, 1))
"""Blanks around and between names, from most to least."""


class ModeBar(Static):
    """One line at the top of every screen, which also shows when it was frozen."""

    def __init__(self, open_mode: str) -> None:
        super().__init__(id="modes")
        self._shown = open_mode
        self._crumbs: tuple[str, ...] = ()
        self._frozen_ms: int | None = None

    def on_mount(self) -> None:
        self._draw()

    def on_resize(self) -> None:
        self._draw()

    def show_crumbs(self, crumbs: tuple[str, ...]) -> None:
        """Show the path to what is open on the screen."""
        if crumbs != self._crumbs:
            self._crumbs = crumbs
            self._draw()

    def show(self, *, frozen_ms: int | None = None) -> None:
        """Show the time at which the screen was frozen, if it is."""
        self._frozen_ms = frozen_ms
        self.set_class(frozen_ms is not None, "-frozen")
        self._draw()

    def _draw(self) -> None:
        frozen_ms = self._frozen_ms
        bound = [found.binding for found in self.screen.active_bindings.values()]
        keys = {b.id: self.app.get_key_display(b) for b in bound}
        titles = [f"{keys.get(mode.binding, '')} {mode.title}".strip() for mode in MODES]
        frozen = f" FROZEN at {clock_text(frozen_ms)} " if frozen_ms is not None else ""
        path = LEAST_PATH if self._crumbs else 0
        room = self.size.width - len(frozen) - sum(map(len, titles)) - path
        # A blank around each name and one between them, or less where the path needs the room.
        pad, gap = next(
            (found for found in SPACING if room >= len(titles) * (2 * found[0] + found[1])),
            SPACING[-1],
        )
        parts = [
            self._entry(mode.name, f"{' ' * pad}{title}{' ' * pad}")
            for mode, title in zip(MODES, titles, strict=True)
        ]
        if frozen:
            parts.insert(0, Content(frozen).stylize("bold reverse"))
        names = Content(" " * gap).join(parts)
        self.update(Content.assemble(names, self._path(self.size.width - names.cell_length)))

    def _path(self, width: int) -> Content:
        """`Topics > orders > partitions` at the right end; its last part if space is short."""
        if width < LEAST_PATH or not self._crumbs:
            return Content("")
        title = next(mode.title for mode in MODES if mode.name == self._shown)
        whole = printable(" > ".join((title, *self._crumbs)))
        last = printable(f"> {self._crumbs[-1]}")
        words = whole if len(whole) <= width - GAP else shorten_middle(last, width - GAP)
        return Content(words.rjust(width - 1)).stylize("bold")

    def _entry(self, mode: str, words: str) -> Content:
        name = Content(words).stylize(f"@click=app.show_mode('{mode}')")
        return name.stylize("bold reverse") if mode == self._shown else name
