"""What is seen behind a dialog: the screen below it, tinted."""

from functools import lru_cache
from typing import Final, TypeVar

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.command import CommandPalette
from textual.css.styles import RulesMap
from textual.events import ScreenResume
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, Screen
from textual.strip import Strip
from textual.style import Style as VisualStyle
from textual.visual import RenderOptions, Visual, VisualType

T = TypeVar("T")
PLAIN: Final = Style()
FILLED_S: Final = 0.04
"""How long the palette is not painted, so that its list is in the first picture."""
STYLES: Final = 4096
"""Styles remembered; a screen has a few hundred."""


class Over(ModalScreen[T]):
    """A screen over another one, painted once it has been laid out."""

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Its widgets got their styles when they were mounted, and get new ones with a theme."""
        event.refresh_styles = False

    def on_mount(self) -> None:
        # Otherwise each step of its layout would be painted, with the screen below.
        self.app.delay_update()

    def _compositor_refresh(self) -> None:
        if not is_put_off(self):
            super()._compositor_refresh()

    def render(self) -> RenderableType:
        """The screen below."""
        return backdrop(super().render())  # type: ignore[return-value]


class Palette(CommandPalette):
    """Textual's command palette, over the screen below, painted as the others are."""

    def on_screen_resume(self, event: ScreenResume) -> None:
        """See `Over`."""
        event.refresh_styles = False

    def on_mount(self) -> None:
        self.app.delay_update(FILLED_S)

    def _compositor_refresh(self) -> None:
        if not is_put_off(self):
            super()._compositor_refresh()

    def render(self) -> RenderableType:
        """The screen below."""
        return backdrop(super().render())  # type: ignore[return-value]


def is_put_off(screen: Screen[T]) -> bool:
    """Whether updates are delayed; Textual would draw all of it, and show nothing."""
    if not screen.app._batch_count:  # noqa: SLF001 - Textual has no public name for it
        return False
    screen.refresh()
    return True


def backdrop(rendered: RenderableType) -> VisualType:
    """The same, made faster if it is another screen."""
    if isinstance(rendered, BackgroundScreen):
        return Backdrop(rendered.screen, rendered.color)
    return rendered


class Backdrop(Visual):
    """Another screen as it was drawn, each of its styles tinted once.

    Textual renders the screen once more through Rich, which takes half of the time in
    which a dialog has to open.
    """

    def __init__(self, screen: Screen[object], color: Color) -> None:
        self._screen, self._color = screen, color

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """All there is."""
        return container_width

    def get_height(self, rules: RulesMap, width: int) -> int:
        """That of the screen below."""
        return self._screen.size.height

    def render_strips(
        self, width: int, height: int | None, style: VisualStyle, options: RenderOptions
    ) -> list[Strip]:
        """The lines of the screen below, tinted, over the style of the screen above."""
        strips = self._screen._compositor.render_strips()  # noqa: SLF001 - as Textual does
        base = style.rich_style
        return [tinted(strip, self._color, base).crop(0, width) for strip in strips[:height]]


def tinted(strip: Strip, color: Color, base: Style) -> Strip:
    """A line in tinted styles, without links."""
    pieces = [
        Segment(text, _tinted(style or PLAIN, color, base))
        for text, style, control in strip
        if not control
    ]
    return Strip(pieces, strip.cell_length)


@lru_cache(STYLES)
def _tinted(style: Style, color: Color, base: Style) -> Style:
    (piece,) = BackgroundScreen.process_segments([Segment("", style)], color)
    return base + (piece.style or PLAIN)
