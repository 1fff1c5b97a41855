"""What is seen behind a dialog: the screen below it, tinted."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, TypeVar

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.command import CommandPalette
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen

T = TypeVar("T")
PLAIN: Final = Style()
STYLES: Final = 4096
"""Styles remembered; a screen has a few hundred."""


class Over(ModalScreen[T]):
    """A screen over another one."""

    def render(self) -> RenderableType:
        """The screen below."""
        return backdrop(super().render())


class Palette(CommandPalette):
    """Textual's command palette, over the screen below."""

    def render(self) -> RenderableType:
        """The screen below."""
        return backdrop(super().render())


def backdrop(rendered: RenderableType) -> RenderableType:
    """The same, made faster if it is another screen."""
    if isinstance(rendered, BackgroundScreen):
        return Backdrop(rendered.screen, rendered.color)
    return rendered


class Backdrop(BackgroundScreen):
    """Tints each style once, instead of each piece of text that has it, as Textual does."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        """The segments in their tinted styles."""
        for segment in segments:
            text, style, control = segment
            yield segment if control else Segment(text, _tinted(style or PLAIN, color))


@lru_cache(STYLES)
def _tinted(style: Style, color: Color) -> Style:
    (tinted,) = BackgroundScreen.process_segments([Segment("", style)], color)
    return tinted.style or PLAIN
