"""Themes, colours and characters."""

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color
from textual._border import BORDER_CHARS
from textual.theme import BUILTIN_THEMES, Theme

from control.settings.screen_settings import THEMES as NAMES
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import plan_ready
from tui.driver import AsciiDriver
from tui.themes import COLOUR_BLIND, ascii_text, wants_ascii
from tui.viewmodel.brokers.bars import BEYOND, EIGHTHS, HEIGHTS
from tui.viewmodel.brokers.deviation_bar import BEYOND_LEFT, PLANNED, SHADE
from tui.viewmodel.cells import Role
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.paint import palette

THEMES = {**BUILTIN_THEMES, COLOUR_BLIND.name: COLOUR_BLIND}


@pytest.mark.parametrize("theme", THEMES.values(), ids=THEMES)
def test_every_theme_has_the_colours_that_are_used(theme: Theme) -> None:
    assert set(palette(theme.to_color_system().generate())) == set(Role)


def test_for_the_colour_blind_good_is_bluer_and_over_is_redder() -> None:
    styles = palette(COLOUR_BLIND.to_color_system().generate())
    good, over = styles[Role.GOOD].color, styles[Role.OVER].color
    assert good is not None
    assert over is not None
    good_rgb, over_rgb = good.get_truecolor(), over.get_truecolor()
    assert good_rgb.blue > good_rgb.red
    assert over_rgb.red > over_rgb.blue


async def test_a_theme_is_chosen_by_name() -> None:
    async with stage(plan_ready(), theme="plimsoll-colour-blind") as on:
        assert on.app.theme == "plimsoll-colour-blind"
        assert set(on.app.available_themes) == set(NAMES)


@given(st.text(max_size=60))
@example("cloud \u2601\ufe0f 12")
@example("1\ufe0f 12")
def test_ascii_text_is_ascii_and_as_wide_as_before(text: str) -> None:
    plain = ascii_text(text)
    assert plain.isascii()
    assert cell_len(plain) == cell_len(text)


async def test_the_cursor_in_ascii_is_no_part_of_a_figure() -> None:
    async with stage(plan_ready()) as on:
        on.app.driver_class = AsciiDriver
        table = on.app.screen.query_one("#brokers", KeyedTable)
        assert table.render_line(1 + table.cursor_row).text.startswith(">1 ")


@pytest.mark.parametrize("border", [BORDER_CHARS["round"], BORDER_CHARS["heavy"]])
def test_no_border_is_unknown_in_ascii(border: Sequence[Sequence[str]]) -> None:
    assert "?" not in ascii_text("".join(letter for row in border for letter in row))


def test_an_arrow_in_ascii_is_not_a_comparison() -> None:
    assert ascii_text("leader 1 → 5, +62 % → +6 %") == "leader 1 ->5, +62 % ->+6 %"


async def test_without_colour_the_focused_panel_has_a_border_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        focused, other = (on.app.screen.query_one(of) for of in ("MovesPanel", "BrokersAfter"))
        assert focused.styles.border_top[0] == "heavy"
        assert other.styles.border_top[0] == "round"


def test_the_characters_of_bars_remain_distinguishable_in_ascii() -> None:
    parts = [EIGHTHS[-1], SHADE, PLANNED, BEYOND, BEYOND_LEFT, " "]
    assert len({ascii_text(part) for part in parts}) == len(parts)
    assert len({ascii_text(height) for height in HEIGHTS}) == len(HEIGHTS)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, False),
        ({"LANG": "de_DE.UTF-8"}, False),
        ({"LANG": "en_US.utf8"}, False),
        ({"LANG": "de_DE.ISO-8859-1"}, True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, False),
    ],
)
def test_a_locale_that_is_not_utf_8_gets_ascii(environment: dict[str, str], expected: bool) -> None:
    assert wants_ascii(environment) is expected


def _luminance(colour: Color | None) -> float:
    """Relative luminance of a colour (WCAG 2.2)."""
    assert colour is not None
    red, green, blue = (
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in colour.get_truecolor().normalized
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light", COLOUR_BLIND.name])
@pytest.mark.parametrize("selector", ["#moves", "#after"])
async def test_the_selected_row_of_a_table_is_readable(theme: str, selector: str) -> None:
    async with stage(plan_ready(), size=(120, 40), theme=theme) as on:
        await on.press("2")
        table = on.app.screen.query_one(selector, KeyedTable)
        assert table.has_focus == (selector == "#moves")
        assert table.cursor_row == 0
        for segment in table.render_line(1):
            if segment.text.strip():
                assert segment.style is not None
                both = [segment.style.color, segment.style.bgcolor]
                low, high = sorted(map(_luminance, both))
                assert (high + 0.05) / (low + 0.05) >= 4, segment
