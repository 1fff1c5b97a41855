"""Bars of eighth blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.brokers.bars import HEIGHTS, bar, sparkline
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


@given(st.floats(-1, 5), st.integers(1, 40))
def test_a_bar_has_the_requested_width(share: float, width: int) -> None:
    assert len(plain(bar(share, width, Role.GOOD))) == width


def test_a_sparkline_shows_the_latest_values_at_the_right_with_gaps() -> None:
    assert sparkline([0.0, None, 5.0, 10.0, 20.0], 10.0, 6) == " ▁ ▅██"
    assert sparkline([1.0, 10.0, 0.0], 10.0, 2) == "█▁"


def test_a_small_positive_value_is_not_drawn_as_zero() -> None:
    assert sparkline([0.01, 0.0], 100.0, 2) == HEIGHTS[1] + HEIGHTS[0]
