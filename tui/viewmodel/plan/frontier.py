"""The frontier as a plot of characters, and a description of one of its points."""

import math
from collections.abc import Sequence
from itertools import pairwise
from textwrap import wrap
from typing import NamedTuple

from control.planning.frontier_points import point_of
from control.planning.plan_view import TracedFrontier
from model.plan.frontier import Frontier, FrontierCorner, FrontierPoint
from model.plan.plan import Plan
from model.units import bytes_text, count_text
from tui.viewmodel.cells import Cell, Role, Span, cell

POINT = "●"
PICKED = "◆"
PLAN = ("■", Role.STRONG)
"""The point of the plan."""
SHADE = "░"
"""Area proven to be out of reach."""
LEAST_SHARE = 1e-4
"""The lower end of the axis, as a share of the upper one."""
LABELS = 9
"""Width of the axis labels on the left."""
UNIT = ("cost,", "moves")
"""What the axis below shows, in its two lines."""
BETWEEN = 2
"""Least blanks between two numbers of the axis below."""
MOST_TICKS = 8
MOST_PLAIN = 1e5
"""Numbers from here on would be written with an exponent."""
ROUNDING = 1e-9
LEAST_WIDTH, LEAST_HEIGHT = LABELS + 12, 5

MEASURES = {
    "deviation": "imbalance: weighted squared deviations from the average",
    "excess": "imbalance: excess over the tolerance bands, relative to the average",
}


def plot(
    frontier: Frontier, picked: int, width: int, height: int, planned: int | None = None
) -> tuple[Cell, ...]:
    """Plot imbalance, on a logarithmic axis, over the cost in moves.

    Points, the picked one, that of the plan, and the area that no plan can reach.
    """
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        return (cell("Too little space to draw the frontier.", Role.MUTED),)
    columns, rows = width - LABELS, height - 2
    most = max((p.cost for p in frontier.points), default=0.0) or 1.0
    scale = scale_of(frontier)
    grid = [[Span(" ")] * columns for _ in range(rows)]
    for column in range(columns):
        bound = _bound_at(frontier.lower, most * column / (columns - 1))
        for row in range(scale.row(bound, rows) + 1, rows):
            grid[row][column] = Span(SHADE, Role.MUTED)
    order = sorted(range(len(frontier.points)), key=lambda i: (i == picked, i == planned))
    for i in order:
        point = frontier.points[i]
        column = round((columns - 1) * point.cost / most)
        letter, role = PLAN if i == planned else (POINT, Role.GOOD)
        letter, role = (PICKED, Role.ALARM) if i == picked else (letter, role)
        grid[scale.row(point.balance, rows)][column] = Span(letter, role)
    labels = scale.labels(rows)
    lines = [
        (Span(f"{label:>{LABELS - 2}} │", Role.MUTED), *row)
        for label, row in zip(labels, grid, strict=True)
    ]
    return (*lines, *_axis(columns, most))


class Scale(NamedTuple):
    """A logarithmic axis; both ends are above 0."""

    low: float
    high: float

    def row(self, value: float, rows: int) -> int:
        """The row of a value, counted from the top; what is off the axis is at its end."""
        if value <= self.low:
            return rows - 1
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return max(0, rows - 1 - round((rows - 1) * share))

    def labels(self, rows: int) -> list[str]:
        """The ends of the axis, and round numbers between them where rows are free."""
        found = [""] * rows
        found[0], found[-1] = f"{self.high:g}", f"≤{self.low:g}"
        between = [n for n in _round_numbers(self.low, self.high) if self.low < n < self.high]
        # Powers of ten first, then the numbers between them.
        for number in sorted(between, key=lambda n: math.log10(n) % 1 > ROUNDING):
            row = self.row(number, rows)
            if 0 < row < rows - 1 and not any(found[row - 1 : row + 2]):
                found[row] = f"{number:g}"
        return found


def _round_numbers(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, from the last at most `low` to the first at least `high`."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    # Read from text, since 10.0 to a negative power is not the number that is nearest.
    found = [float(f"{n}e{power}") for power in range(first, last + 1) for n in (1, 2, 5)]
    start = max(at for at, n in enumerate(found) if n <= low * (1 + ROUNDING))
    end = min(at for at, n in enumerate(found) if n >= high * (1 - ROUNDING))
    return found[start : end + 1]


def scale_of(frontier: Frontier) -> Scale:
    """An axis from one round number to another.

    It holds every point above 0, and four powers of ten or little more.
    """
    balances = [p.balance for p in frontier.points if p.balance > 0]
    high = max(balances, default=1.0)
    low = max(min(balances, default=high) / 2, high * LEAST_SHARE)
    found = _round_numbers(low, high)
    return Scale(low=found[0], high=found[-1] if len(found) > 1 else 2 * found[0])


def _axis(columns: int, most: float) -> tuple[Cell, Cell]:
    """The axis of the cost: a line with a tick at each round number, and these below it."""
    line, below, end = ["─"] * columns, "", -BETWEEN
    for number in _ticks(columns, most):
        text, column = _number(number), round((columns - 1) * number / most)
        # The last number ends at the edge at the latest.
        start = min(column, columns - len(text))
        if start < end + BETWEEN:
            break
        line[column] = "┴"
        below, end = below.ljust(start) + text, start + len(text)
    cost, moves = (f"{word:>{LABELS - 2}}" for word in UNIT)
    return (
        cell(f"{cost} └{''.join(line)}", Role.MUTED),
        cell(f"{moves}  {below.ljust(columns)}", Role.MUTED),
    )


def _ticks(columns: int, most: float) -> list[float]:
    """Multiples of a round number from 0, few enough that they do not touch each other."""
    found = [0.0]
    for step in _round_numbers(most / MOST_TICKS, most):
        found = [at * step for at in range(math.floor(most / step * (1 + ROUNDING)) + 1)]
        longest = max(len(_number(number)) for number in found)
        wide = step * (columns - 1) / most >= longest + BETWEEN
        if wide and len(found) <= MOST_TICKS + 1:
            return found
    return found


def _number(value: float) -> str:
    return f"{value:,.6g}" if value < MOST_PLAIN else f"{value:,.0f}"


def _bound_at(corners: Sequence[FrontierCorner], cost: float) -> float:
    """The proven bound at a cost, linear between its corners."""
    for left, right in pairwise(corners):
        if left.cost <= cost <= right.cost and right.cost > left.cost:
            share = (cost - left.cost) / (right.cost - left.cost)
            return max(0.0, left.balance + share * (right.balance - left.balance))
    return max(0.0, corners[-1].balance) if corners else 0.0


def point_text(frontier: Frontier, picked: int, width: int, planned: int | None) -> tuple[str, ...]:
    """Describe the picked point in a few lines; planned: the point of the plan."""
    point = frontier.points[picked]
    marks = [
        words
        for at, words in ((frontier.knee, "best trade-off"), (planned, "the plan"))
        if at == picked
    ]
    named = f" ({', '.join(marks)})" if marks else ""
    texts = (
        f"{picked + 1} of {len(frontier.points)}{named}: {_cost(point)}",
        f"imbalance {point.balance:.4g} without the cost of moves; proven: no plan of this cost is "
        f"below {point.bound:.4g}",
        *((f"limited by: {frontier.limited_by}",) if frontier.limited_by else ()),
    )
    return tuple(line for words in texts for line in wrap(words, width))


def _cost(point: FrontierPoint) -> str:
    return ", ".join(
        (
            count_text(point.moves, "new replica"),
            count_text(point.leader_changes, "leader change"),
            f"{bytes_text(point.bytes_to_copy)} to copy",
        )
    )


def start_of(traced: TracedFrontier, plan: Plan | None) -> int:
    """The point picked first: the plan's, else one of its cost, else the trade-off."""
    frontier = traced.frontier
    found = (point_of(traced, plan), frontier.chosen, frontier.knee, 0)
    return next(at for at in found if at is not None)
