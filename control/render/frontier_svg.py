"""The frontier as a picture, in SVG."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from control.render.svg import AMBER, BLUE, GRID, INK, PALE, RED, SHADE, WIDTH, line, picture, text
from model.plan.frontier import Frontier, FrontierPoint, undominated
from model.units import count_text

HEIGHT: Final = 460
LEFT, RIGHT, TOP, BOTTOM = 76, 28, 96, 60

TICKS: Final = 6
"""Approximate number of ticks per axis."""

APART: Final = 18.0
"""Minimum distance in pixels between the numbers of points."""

AXES: Final = {
    "deviation": "imbalance: weighted squared deviations from the average",
    "excess": "imbalance: excess over the tolerance bands, relative to the average",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Data to pixels; both axes start at 0."""

    costs: tuple[float, ...]
    """Ticks; the last is the right edge."""
    balances: tuple[float, ...]
    """Ticks; the last is the top edge."""

    def x(self, cost: float) -> float:
        """Pixels from the left."""
        return LEFT + cost / self.costs[-1] * (WIDTH - LEFT - RIGHT)

    def y(self, balance: float) -> float:
        """Pixels from the top."""
        return HEIGHT - BOTTOM - balance / self.balances[-1] * (HEIGHT - TOP - BOTTOM)


def frontier_svg(frontier: Frontier) -> str:
    """The frontier as SVG: plans, proved lower bound, best trade-off and the plan."""
    points = frontier.points
    scale = Scale(
        costs=_ticks(max((p.cost for p in points), default=0.0)),
        balances=_ticks(max((p.balance for p in points), default=0.0)),
    )
    elements = (
        *_heading(frontier),
        *_bound(frontier, scale),
        *_axes(frontier, scale),
        *_steps(undominated(points), scale),
        *_marks(frontier, scale),
        *_dots(points, scale),
    )
    return picture(HEIGHT, _title(frontier), elements)


def _title(frontier: Frontier) -> str:
    return f"Frontier of cluster {frontier.cluster_id}"


def _heading(frontier: Frontier) -> Iterator[str]:
    x = LEFT - 52
    yield text(x, 28, _title(frontier), size=17, weight="bold")
    found = "; ".join(frontier.reasons) or "no plan was found"
    if frontier.points:
        found = (
            "each dot is a plan, numbered as in the table; the shaded area is proved "
            "to contain no plan"
        )
    yield text(x, 48, found, fill=PALE)


def _axes(frontier: Frontier, scale: Scale) -> Iterator[str]:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    for value in scale.balances:
        y = scale.y(value)
        yield line(LEFT, y, right, y, GRID)
        yield text(LEFT - 8, y + 4, f"{value:g}", anchor="end", fill=PALE)
    for value in scale.costs:
        x = scale.x(value)
        yield line(x, bottom, x, bottom + 5, INK)
        yield text(x, bottom + 20, f"{value:g}", anchor="middle", fill=PALE)
    yield line(LEFT, bottom, right, bottom, INK)
    yield line(LEFT, TOP, LEFT, bottom, INK)
    middle = (LEFT + right) / 2
    label = "cost of the plan, in move equivalents"
    yield text(middle, HEIGHT - 18, label, anchor="middle")
    yield text(LEFT - 52, TOP - 16, AXES[frontier.measure])


def _bound(frontier: Frontier, scale: Scale) -> Iterator[str]:
    """The area below the proved lower bound, and its edge."""
    corners = [(c.cost, max(0.0, c.balance)) for c in frontier.lower]
    if len(corners) < 2:
        return
    edge = [(scale.x(cost), scale.y(balance)) for cost, balance in corners]
    base = scale.y(0.0)
    area = _pairs([(edge[0][0], base), *edge, (edge[-1][0], base)])
    yield f'<polygon points="{area}" fill="{SHADE}"/>'
    yield (f'<polyline points="{_pairs(edge)}" fill="none" stroke="{RED}" stroke-width="1.5"/>')


def _steps(points: Sequence[FrontierPoint], scale: Scale) -> Iterator[str]:
    """The best known balance at each cost."""
    corners = []
    for before, point in pairwise(points):
        corners += [(before.cost, before.balance), (point.cost, before.balance)]
    corners += [(p.cost, p.balance) for p in points[-1:]]
    if len(corners) > 1:
        path = _pairs([(scale.x(c), scale.y(b)) for c, b in corners])
        yield (
            f'<polyline points="{path}" fill="none" stroke="{BLUE}" '
            'stroke-width="1" stroke-opacity="0.45"/>'
        )


def _dots(points: Sequence[FrontierPoint], scale: Scale) -> Iterator[str]:
    """Plans, with their numbers where they fit."""
    last = -math.inf
    for number, point in enumerate(points, start=1):
        x, y = scale.x(point.cost), scale.y(point.balance)
        yield f'<circle cx="{_n(x)}" cy="{_n(y)}" r="3.6" fill="{BLUE}"/>'
        if x - last >= APART:
            last = x
            yield text(x + 6, y - 6, str(number), size=11, fill=BLUE)


def marks(frontier: Frontier, at: int) -> list[str]:
    """Names of a point: the plan, the best trade-off, both or none."""
    named = ((frontier.knee, "the best trade-off"), (frontier.chosen, "the plan"))
    return [words for index, words in named if index == at]


def _marks(frontier: Frontier, scale: Scale) -> Iterator[str]:
    """Labelled rings around the best trade-off and the plan."""
    points = frontier.points
    named = {at: " and ".join(marks(frontier, at)) for at in range(len(points))}
    # Lines that lead to words start left of the words, so they cross none: the left
    # words stand higher where both go right, lower where the right ones go left.
    middle = (LEFT + WIDTH - RIGHT) / 2
    found = [(points[i], words) for i, words in named.items() if words]
    if found and scale.x(found[-1][0].cost) > middle:
        found.reverse()
    top = min((scale.y(point.balance) for point, _ in found), default=0.0)
    for row, (point, words) in enumerate(found):
        height = max(TOP + 14.0, top - 78) + 24 * row
        yield from _mark(point, words, scale, height)


def _mark(point: FrontierPoint, words: str, scale: Scale, height: float) -> Iterator[str]:
    x, y = scale.x(point.cost), scale.y(point.balance)
    if y - 12 > height:
        yield line(x, y - 8, x, height - 10, AMBER)
    yield (
        f'<circle cx="{_n(x)}" cy="{_n(y)}" r="8" fill="none" stroke="{AMBER}" stroke-width="2"/>'
    )
    right = x <= (LEFT + WIDTH - RIGHT) / 2
    side, shift = ("start", 7) if right else ("end", -7)
    label = f"{words}: {_summary(point)}"
    halo = 'paint-order="stroke" stroke="#ffffff" stroke-width="4"'
    yield text(x + shift, height, label, anchor=side, weight="bold", more=halo)


def _summary(point: FrontierPoint) -> str:
    return f"{count_text(point.moves, 'move')}, {point.balance:.3g}"


# ---- scales and elements


def _ticks(most: float) -> tuple[float, ...]:
    """Ticks from 0 to above the largest value, in steps of 1, 2 or 5 times 10^n."""
    most = most if most > 0 else 1.0
    rough = most / TICKS
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * n for n in (1, 2, 5, 10) if power * n >= rough)
    return tuple(step * i for i in range(math.floor(most / step) + 2))


def _n(value: float) -> str:
    return f"{value:.1f}"


def _pairs(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in places)
