"""The screen behind a dialog looks as Textual tints it."""

from typing import Any

import pytest
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.renderables.background_screen import BackgroundScreen
from textual.strip import Strip

from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import plan_ready
from tui.screens.backdrop import Backdrop, Palette, tinted

SEGMENTS = [
    Segment("plain"),
    Segment("red", Style.parse("bold red on black")),
    Segment("link", Style(link="https://example.com", meta={"@click": "quit"}, color="#102030")),
    Segment("red again", Style.parse("bold red on black")),
    Control.home().segment,
]


@pytest.mark.parametrize("share", [0.6, 0.3, 0.0])
def test_styles_are_tinted_as_textual_tints_pieces_of_text(share: float) -> None:
    color = Color(18, 52, 86, share)
    expected = list(BackgroundScreen.process_segments(SEGMENTS[:-1], color))
    assert list(tinted(Strip(SEGMENTS), color, Style())) == expected
    assert all(s.style is None or not s.style.meta for s in expected)


def test_a_piece_without_colours_has_those_of_the_screen_above() -> None:
    (piece,) = tinted(Strip([Segment("plain")]), Color(18, 52, 86, 0.6), Style(bgcolor="#123456"))
    assert piece.style == Style(bgcolor="#123456")


async def test_it_is_not_drawn_while_updates_are_delayed(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    draw = Backdrop.render_strips

    def count(self: Backdrop, *args: Any) -> list[Strip]:
        drawn.append(self._screen.app._batch_count)
        return draw(self, *args)

    monkeypatch.setattr(Backdrop, "render_strips", count)
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("A")
        await on.settle()
    assert set(drawn) == {0}


async def test_the_screen_below_the_palette_is_seen() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("ctrl+p")
        assert isinstance(on.app.screen, Palette)
        drawn = "\n".join(s.text for s in on.app.screen._compositor.render_strips())
        assert "IMBALANCED" in drawn
        await on.press("ctrl+p", "escape")
        assert not on.app.screen.is_modal
