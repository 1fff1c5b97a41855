"""The keys that apply here, in one line at the bottom."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.segment import Segment
from rich.style import Style
from textual.binding import ActiveBinding
from textual.events import Leave, MouseDown, MouseMove
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget


@dataclass(frozen=True, slots=True)
class _Key:
    """One key as displayed."""

    key: str
    """The key that a click presses."""
    shown: str
    description: str
    enabled: bool
    tooltip: str

    @property
    def width(self) -> int:
        return len(self.shown) + 1 + len(self.description)


class KeyBar(Widget):
    """A click presses a key; the tooltip of a disabled one gives the reason.

    If not all keys fit, disabled ones are omitted, the last first.

    Textual's Footer, which looks the same, has a widget for each key and rebuilds all
    of them at each change of focus, which costs more than handling most keys.
    """

    ALLOW_SELECT = False
    COMPONENT_CLASSES = {
        "key-bar--key",
        "key-bar--description",
        "key-bar--hovered",
        "key-bar--edge",
    }

    def __init__(self) -> None:
        super().__init__()
        self._keys: tuple[_Key, ...] = ()
        self._palette: _Key | None = None
        self._hovered: _Key | None = None

    def on_mount(self) -> None:
        self.screen.bindings_updated_signal.subscribe(self, self._follow)

    def _follow(self, _screen: Screen[object]) -> None:
        # Deferred: the focus may not have arrived yet.
        self.call_after_refresh(self._renew)

    def _renew(self) -> None:
        active = self.screen.active_bindings
        at_palette = active.get(self.app.COMMAND_PALETTE_BINDING)
        palette = self._key(at_palette) if at_palette is not None else None
        firsts = {
            found.binding.action: found for found in reversed(active.values()) if found.binding.show
        }
        keys = tuple(self._key(found) for found in reversed(firsts.values()))
        if (keys, palette) != (self._keys, self._palette):
            self._keys, self._palette = keys, palette
            self.refresh()

    def _key(self, found: ActiveBinding) -> _Key:
        binding = found.binding
        return _Key(
            binding.key,
            self.app.get_key_display(binding),
            binding.description,
            found.enabled,
            found.tooltip,
        )

    # ---- rendering

    def render_line(self, y: int) -> Strip:
        base, width = self.rich_style, self.size.width
        blank = Segment(" ", base)
        segments = [s for key, _ in self._placed() for s in (blank, *self._drawn(key))]
        line = Strip(segments[1:]).adjust_cell_length(width, base)
        if self._palette is not None:
            edge = Segment("▏", self.get_component_rich_style("key-bar--edge"))
            own = Strip([edge, *self._drawn(self._palette), blank])
            line = Strip.join([line.crop(0, width - own.cell_length), own])
        return line

    def _placed(self) -> Iterator[tuple[_Key, int]]:
        """Each key and its start column, separated by one blank."""
        at = 0
        for key in self._fitting():
            yield key, at
            at += key.width + 1

    def _fitting(self) -> list[_Key]:
        keys = list(self._keys)
        edge = self._palette.width + 1 if self._palette is not None else 0
        over = sum(key.width + 1 for key in keys) + edge - self.size.width
        for key in reversed(self._keys):
            if over > 0 and not key.enabled:
                keys.remove(key)
                over -= key.width + 1
        return keys

    def _drawn(self, key: _Key) -> Iterator[Segment]:
        base = self.rich_style
        if not key.enabled:
            base += Style(dim=True)
        if key is self._hovered:
            base += self.get_component_rich_style("key-bar--hovered", partial=True)
        own = self.get_component_rich_style("key-bar--key", partial=True)
        words = self.get_component_rich_style("key-bar--description", partial=True)
        yield Segment(key.shown, base + own)
        yield Segment(f" {key.description}", base + words)

    # ---- the mouse

    def _at(self, x: int) -> _Key | None:
        palette = self._palette
        if palette is not None and x >= self.size.width - palette.width - 1:
            return palette
        hits = (key for key, at in self._placed() if at <= x < at + key.width)
        return next(hits, None)

    def on_mouse_move(self, event: MouseMove) -> None:
        self._hover(self._at(event.x))

    def on_leave(self, _event: Leave) -> None:
        self._hover(None)

    def _hover(self, key: _Key | None) -> None:
        if key is not self._hovered:
            self._hovered = key
            self.tooltip = key.tooltip or None if key is not None else None
            self.refresh()

    def on_mouse_down(self, event: MouseDown) -> None:
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()
