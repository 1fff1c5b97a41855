"""Undominated points, their best trade-off, and the lower bound of all lines."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.plan.frontier import (
    FrontierCorner,
    FrontierLine,
    FrontierPoint,
    best_trade_off,
    lower_bound,
    undominated,
)

LINES = st.lists(
    st.builds(FrontierLine, move_price=st.floats(1e-3, 10), bound=st.floats(0, 100)), max_size=8
)


def point(cost: float, balance: float) -> FrontierPoint:
    return FrontierPoint(
        cost=cost,
        balance=balance,
        bound=0.0,
        moves=int(cost),
        leader_changes=0,
        bytes_to_copy=0,
        move_price=1.0,
    )


def test_a_dominated_point_is_omitted() -> None:
    best = [point(0, 9), point(1, 5), point(3, 2)]
    beaten = [point(1, 6), point(2, 5), point(4, 2), point(3, 3)]
    assert undominated([*beaten, *best]) == tuple(best)


def test_the_best_trade_off_is_farthest_below_the_chord() -> None:
    points = [point(0, 100), point(1, 60), point(2, 10), point(10, 0)]
    assert best_trade_off(points) == 2


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_points_have_no_best_trade_off(count: int) -> None:
    assert best_trade_off([point(0, 9), point(1, 5)][:count]) is None


def test_points_on_or_above_their_chord_have_no_best_trade_off() -> None:
    assert best_trade_off([point(0, 10), point(1, 9), point(2, 0)]) is None


@given(LINES, st.floats(0, 50), st.floats(0, 1))
def test_the_lower_bound_is_the_highest_line_everywhere(
    lines: list[FrontierLine], most: float, share: float
) -> None:
    corners = lower_bound(lines, most)
    cost = share * most
    expected = max([0.0, *(line.at(cost) for line in lines)])
    assert corners[0].cost == 0
    assert corners[-1].cost == pytest.approx(most)
    costs = [c.cost for c in corners]
    assert costs == sorted(costs)
    assert between(corners, cost) == pytest.approx(expected, abs=1e-9)


def between(corners: tuple[FrontierCorner, ...], cost: float) -> float:
    """Straight from corner to corner."""
    places = [(c.cost, c.balance) for c in corners]
    for (x1, y1), (x2, y2) in pairwise(places):
        if x1 <= cost <= x2 and x2 > x1:
            return float(y1 + (cost - x1) / (x2 - x1) * (y2 - y1))
    return float(places[0][1])
