"""The keys that apply here, in one line at the bottom."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from rich.segment import Segment
from rich.style import Style
from textual.binding import ActiveBinding
from textual.events import Leave, MouseDown, MouseMove
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

HELP: Final = "app.help"
PALETTE: Final = "palette"
OMITTED_FIRST: Final = ("screen.freeze", "table.sort", PALETTE, "table.filter", "overview.map")
"""Keys omitted before others where not all fit, in this order."""
OMITTED_LAST: Final = ("app.quit", "plan.solve", "run.stop", "plan.approve")
"""Keys omitted after all others, in this order."""
MORE: Final = "more"
"""What the help has where keys are omitted."""


@dataclass(frozen=True, slots=True)
class _Key:
    """One key as displayed."""

    id: str
    """Of its binding; empty where it has none."""
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

    If not all keys fit, whole ones are omitted: disabled ones, then those that matter
    least. The help, which lists all keys, stays, and says that there are more.

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
        if palette is not None:
            palette = replace(palette, id=PALETTE)
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
            binding.id or "",
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
        if (palette := self._shown_palette()) is not None:
            edge = Segment("▏", self.get_component_rich_style("key-bar--edge"))
            own = Strip([edge, *self._drawn(palette), blank])
            line = Strip.join([line.crop(0, width - own.cell_length), own])
        return line

    def _placed(self) -> Iterator[tuple[_Key, int]]:
        """Each key and its start column, separated by one blank."""
        at = 0
        for key in fitting(self._keys, self._palette, self.size.width):
            if key is not self._palette:
                yield key, at
                at += key.width + 1

    def _shown_palette(self) -> _Key | None:
        shown = fitting(self._keys, self._palette, self.size.width)
        return self._palette if self._palette in shown else None

    def _drawn(self, key: _Key) -> Iterator[Segment]:
        base = self.rich_style
        if not key.enabled:
            base += Style(dim=True)
        if key == self._hovered:
            base += self.get_component_rich_style("key-bar--hovered", partial=True)
        own = self.get_component_rich_style("key-bar--key", partial=True)
        words = self.get_component_rich_style("key-bar--description", partial=True)
        yield Segment(key.shown, base + own)
        yield Segment(f" {key.description}", base + words)

    # ---- the mouse

    def _at(self, x: int) -> _Key | None:
        palette = self._shown_palette()
        if palette is not None and x >= self.size.width - palette.width - 1:
            return palette
        hits = (key for key, at in self._placed() if at <= x < at + key.width)
        return next(hits, None)

    def on_mouse_move(self, event: MouseMove) -> None:
        self._hover(self._at(event.x))

    def on_leave(self, _event: Leave) -> None:
        self._hover(None)

    def _hover(self, key: _Key | None) -> None:
        if key != self._hovered:
            self._hovered = key
            self.tooltip = key.tooltip or None if key is not None else None
            self.refresh()

    def on_mouse_down(self, event: MouseDown) -> None:
        key = self._at(event.x)
        if key is not None and key.enabled:
            self.app.simulate_key(key.key)
        elif key is not None:
            self.app.bell()


def fitting(keys: Sequence[_Key], palette: _Key | None, width: int) -> tuple[_Key, ...]:
    """The keys that fit into a width of so many cells, in their order; the palette last."""
    every = [*keys, palette] if palette is not None else [*keys]
    shown, left, more = set[_Key](), width + 1, False
    for key in _by_weight(every):
        # A blank after each; the palette has one before it, too, and its edge a cell.
        needed = key.width + 1 + 2 * (key is palette)
        if needed <= left and (key.enabled or not more):
            shown.add(key)
            left -= needed
        else:
            more |= key.enabled
    named = (replace(k, description=MORE) if more and k.id == HELP else k for k in every)
    return tuple(named for named, key in zip(named, every, strict=True) if key in shown)


def _by_weight(keys: Sequence[_Key]) -> list[_Key]:
    """The most important key first."""

    def weight(key: _Key) -> int:
        if key.id == HELP:
            return -len(OMITTED_LAST) - 1
        if not key.enabled:
            return len(OMITTED_FIRST) + 1
        if key.id in OMITTED_FIRST:
            return len(OMITTED_FIRST) - OMITTED_FIRST.index(key.id)
        return -1 - OMITTED_LAST.index(key.id) if key.id in OMITTED_LAST else 0

    # Among equals the first one: keys of the focused part stand on the left.
    return sorted(keys, key=weight)
