"""Diverging bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.viewmodel.brokers.deviation_bar import (
    PLANNED,
    Axis,
    Deviation,
    axis_of,
    axis_text,
    diverging,
)
from tui.viewmodel.cells import Role, plain


def _drawn(now: float, after: float | None = None, *, axis: Axis | None = None) -> str:
    deviation = Deviation(now=now, after=after, tolerance=0.1)
    return plain(diverging(deviation, axis or Axis(), 20, Role.OVER))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (0.0, "         ░░         "),
        (0.5, "         ░▓████     "),
        (0.5125, "         ░▓████▏    "),
        (0.5875, "         ░▓████▉    "),
        (1.0, "         ░▓█████████"),
        (1.2, "         ░▓████████»"),
        (-0.5, "     ████▓░         "),
        (-0.55, "    ▐████▓░         "),
        (-0.5125, "    ▕████▓░         "),
        (-1.0, "█████████▓░         "),
        (0.005, "         ░▏         "),
    ],
)
def test_a_bar_grows_outwards_from_the_average(now: float, expected: str) -> None:
    assert _drawn(now) == expected


@pytest.mark.parametrize(
    ("after", "at"), [(0.0, 10), (0.05, 10), (0.35, 13), (-0.05, 9), (-0.35, 6), (9.0, 19)]
)
def test_the_plan_is_marked_where_it_brings_the_broker(after: float, at: int) -> None:
    assert _drawn(0.6, after).index(PLANNED) == at


def test_only_the_bar_has_its_role() -> None:
    deviation = Deviation(now=0.3, after=0.0, tolerance=0.1)
    spans = diverging(deviation, Axis(), 20, Role.OVER)
    assert [span.text for span in spans if span.role is Role.OVER] == ["██"]
    assert [span.text for span in spans if span.role is Role.MUTED] == ["░"]


@pytest.mark.parametrize(
    ("deviations", "expected"),
    [
        ([], Axis(1.0, 1.0)),
        ([0.1, -0.2], Axis(0.25, 0.25)),
        ([0.1, -0.6], Axis(1.0, 1.0)),
        ([1.8, -1.0], Axis(1.0, 2.0)),
        ([80.0], Axis(1.0, 5.0)),
    ],
)
def test_the_axis_is_the_shortest_that_holds_all(deviations: list[float], expected: Axis) -> None:
    assert axis_of(deviations) == expected


def test_the_ends_and_the_average_are_labelled() -> None:
    assert axis_text(Axis(), 20) == "-100%     0    +100%"
    assert axis_text(Axis(1.0, 2.0), 30) == "-100%     0              +200%"


@given(
    st.floats(-1, 10), st.one_of(st.none(), st.floats(-1, 10)), st.floats(0, 1), st.integers(2, 80)
)
def test_a_bar_has_the_requested_width(
    now: float, after: float | None, tolerance: float, width: int
) -> None:
    axis = axis_of([now])
    spans = diverging(Deviation(now=now, after=after, tolerance=tolerance), axis, width, Role.OVER)
    assert len(plain(spans)) == width
    assert len(axis_text(axis, width)) == width
