"""Bars of eighth blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.brokers.bars import (
    ADDED,
    AVERAGE_MARK,
    BAND_MARK,
    BOTH_MARK,
    HEIGHTS,
    REMOVED,
    Marks,
    bar,
    sparkline,
)
from tui.viewmodel.cells import Role, Span, plain


@pytest.mark.parametrize(
    ("share", "expected"),
    [(0.0, "    "), (0.5, "██  "), (0.53125, "██▏ "), (1.0, "████"), (1.2, "███»")],
)
def test_a_bar_fills_by_eighths_and_marks_values_beyond_its_scale(
    share: float, expected: str
) -> None:
    assert plain(bar(share, 4, Role.GOOD)) == expected


def test_blanks_of_a_bar_have_no_role() -> None:
    assert bar(0.0, 4, Role.MUTED) == (Span("    "),)
    assert bar(0.5, 4, Role.GOOD) == (Span("██", Role.GOOD), Span("  "))


def _drawn(share: float, marks: Marks, width: int = 6) -> str:
    return plain(bar(share, width, Role.GOOD, marks))


def test_the_average_is_marked_on_filled_and_empty_bars() -> None:
    assert _drawn(1.0, Marks(average=0.5)) == "███│██"
    assert _drawn(0.0, Marks(average=0.5)) == "   │  "


def test_a_band_end_is_marked_in_the_cell_of_the_average() -> None:
    assert _drawn(0.0, Marks(average=0.5, tolerance=0.25), 16) == "      ╎ │ ╎     "
    assert _drawn(0.0, Marks(average=0.5, tolerance=0.1), 10) == "    ╎┼    "
    assert _drawn(0.0, Marks(average=0.45, tolerance=0.01), 4) == " ┼  "


def test_removed_and_added_load_are_drawn_differently() -> None:
    assert _drawn(1.0, Marks(after=0.5), 4) == "██" + REMOVED * 2
    assert _drawn(0.5, Marks(after=1.0), 4) == "██" + ADDED * 2
    assert _drawn(0.5, Marks(after=0.5), 4) == "██  "


@given(
    st.floats(-1, 5),
    st.one_of(st.none(), st.floats(-1, 2)),
    st.one_of(st.none(), st.floats(-1, 5)),
    st.floats(0, 1),
    st.integers(1, 40),
)
def test_a_bar_has_the_requested_width(
    share: float, level: float | None, after: float | None, tolerance: float, width: int
) -> None:
    marks = Marks(average=level, after=after, tolerance=tolerance)
    drawn = _drawn(share, marks, width)
    assert len(drawn) == width
    assert drawn.count(AVERAGE_MARK) + drawn.count(BOTH_MARK) <= 1
    assert drawn.count(BAND_MARK) <= 2


def test_a_sparkline_shows_the_latest_values_at_the_right_with_gaps() -> None:
    assert sparkline([0.0, None, 5.0, 10.0, 20.0], 10.0, 6) == " ▁ ▅██"
    assert sparkline([1.0, 10.0, 0.0], 10.0, 2) == "█▁"


def test_a_small_positive_value_is_not_drawn_as_zero() -> None:
    assert sparkline([0.01, 0.0], 100.0, 2) == HEIGHTS[1] + HEIGHTS[0]
