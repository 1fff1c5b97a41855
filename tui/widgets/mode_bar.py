"""The names of the screens; the open one is reversed, a click opens another."""

from textual.content import Content
from textual.widgets import Static

from tui.viewmodel.log import clock_text
from tui.viewmodel.modes import MODES


class ModeBar(Static):
    """One line at the top of every screen, which also shows when it was frozen."""

    def __init__(self, open_mode: str) -> None:
        super().__init__(id="modes")
        self._shown = open_mode

    def on_mount(self) -> None:
        self.show()

    def show(self, *, frozen_ms: int | None = None) -> None:
        """Show the names, and the time at which the screen was frozen, if it is."""
        bound = [found.binding for found in self.screen.active_bindings.values()]
        keys = {b.id: self.app.get_key_display(b) for b in bound}
        parts = [
            self._entry(mode.name, f"{keys.get(mode.binding, '')} {mode.title}") for mode in MODES
        ]
        if frozen_ms is not None:
            words = f" FROZEN at {clock_text(frozen_ms)} "
            parts.insert(0, Content(words).stylize("bold reverse"))
        self.set_class(frozen_ms is not None, "-frozen")
        self.update(Content(" ").join(parts))

    def _entry(self, mode: str, words: str) -> Content:
        name = Content(f" {words.strip()} ").stylize(f"@click=app.show_mode('{mode}')")
        return name.stylize("bold reverse") if mode == self._shown else name
