"""Bars of eighth blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.bars import LEVEL_MARK, bar
from tui.viewmodel.cells import Role, plain


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "    "), (0.5, "██  "), (0.53125, "██▏ "), (1.0, "████"), (1.2, "███»")],
)
def test_a_bar_fills_by_eighths_and_says_when_it_is_beyond(
    share: float, expected: str
) -> None:
    assert plain(bar(share, None, 4, Role.GOOD)) == expected


def test_the_level_is_marked_on_filled_and_on_empty_bars() -> None:
    assert plain(bar(1.0, 0.5, 6, Role.OVER)) == "███│██"
    assert plain(bar(0.0, 0.5, 6, Role.UNDER)) == "   │  "


def test_a_load_at_the_level_ends_at_the_mark() -> None:
    assert plain(bar(0.5, 0.5, 6, Role.GOOD)) == "███│  "


@given(st.floats(-1, 5), st.one_of(st.none(), st.floats(-1, 2)), st.integers(1, 40))
def test_a_bar_is_as_wide_as_it_is_told(
    share: float, level: float | None, width: int
) -> None:
    drawn = plain(bar(share, level, width, Role.GOOD))
    assert len(drawn) == width
    assert drawn.count(LEVEL_MARK) <= 1
