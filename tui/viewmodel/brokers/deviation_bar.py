"""Diverging bars: deviation from the average, which is in the middle."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from tui.viewmodel.brokers.bars import BEYOND, EIGHTHS
from tui.viewmodel.cells import Cell, Role, Span

SHADE: Final = "░"
"""The tolerance band."""
SHADED_BAR: Final = "▓"
"""The part of a bar that is inside the band, where the bar leaves it."""
PLANNED: Final = "◆"
"""Where the plan brings the broker."""
BEYOND_LEFT: Final = "«"
FULL: Final = EIGHTHS[-1]
LEFT_EIGHTHS: Final = " ▕▕▐▐▐▐██"
"""What is drawn of a cell filled from its right edge; fonts have no other such blocks."""
STEPS: Final = (0.25, 0.5, 1.0, 2.0, 5.0)
"""Deviations that an axis may end at."""
LEAST: Final = 0.005
"""A deviation from which a bar has at least an eighth of a cell."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Deviations at the left end (below the average) and at the right end."""

    low: float = 1.0
    high: float = 1.0

    def left(self, width: int) -> int:
        """Cells left of the average."""
        return max(1, min(width - 1, round(width * self.low / (self.low + self.high))))


def axis_of(deviations: Iterable[float]) -> Axis:
    """The shortest axis that holds these deviations; one for all bars of a table.

    It is symmetric up to 100 %; no load is further below the average.
    """
    most = max((abs(deviation) for deviation in deviations), default=1.0)
    high = next((step for step in STEPS if most <= step), STEPS[-1])
    return Axis(low=min(1.0, high), high=high)


def axis_text(axis: Axis, width: int) -> str:
    """The labels over a bar: both ends and the average, as far as they fit."""
    low, high = f"-{axis.low:.0%}", f"+{axis.high:.0%}"
    middle = axis.left(width)
    before = low.ljust(middle) if len(low) < middle else " " * middle
    after = high.rjust(width - middle - 1) if len(high) < width - middle - 1 else ""
    return f"{before}0{after}".ljust(width)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """One broker's deviation in one resource."""

    now: float
    after: float | None
    """After the plan; None without one."""
    tolerance: float


def diverging(of: Deviation, axis: Axis, width: int, role: Role) -> Cell:
    """A bar from the average outwards, over the shaded tolerance band.

    role: of the bar. Below a bar that leaves it, the band stays visible as a darker shade.
    A bar longer than its axis ends in an arrow.
    """
    left = axis.left(width)
    left_unit, right_unit = left / axis.low, (width - left) / axis.high
    text, roles = [" "] * width, [Role.PLAIN] * width
    below = max(1, round(of.tolerance * left_unit))
    above = max(1, round(of.tolerance * right_unit))
    band = range(max(0, left - below), min(width, left + above))
    for at in band:
        text[at], roles[at] = SHADE, Role.MUTED
    full = SHADED_BAR if abs(of.now) > of.tolerance else FULL
    for at, letter in _filled(of.now, left, width, left_unit, right_unit):
        text[at], roles[at] = full if letter == FULL and at in band else letter, role
    if of.after is not None:
        at = left + _cell_of(of.after, left_unit, right_unit)
        at = max(0, min(width - 1, at))
        text[at], roles[at] = PLANNED, Role.MARK
    cells = zip(roles, text, strict=True)
    return tuple(
        Span("".join(letter for _, letter in group), kind)
        for kind, group in groupby(cells, key=lambda one: one[0])
    )


def _filled(
    now: float, left: int, width: int, left_unit: float, right_unit: float
) -> Iterable[tuple[int, str]]:
    """Position and letter of each cell of the bar."""
    room = width - left if now > 0 else left
    length = abs(now) * (right_unit if now > 0 else left_unit)
    eighths = round(8 * length) or (1 if abs(now) >= LEAST else 0)
    full, rest = divmod(min(eighths, 8 * room), 8)
    letters = FULL * full
    if now > 0:
        letters += EIGHTHS[rest].strip()
        found = list(zip(range(left, width), letters, strict=False))
    else:
        letters += LEFT_EIGHTHS[rest].strip()
        found = list(zip(range(left - 1, -1, -1), letters, strict=False))
    if eighths > 8 * room:
        found[-1] = (found[-1][0], BEYOND if now > 0 else BEYOND_LEFT)
    return found


def _cell_of(deviation: float, left_unit: float, right_unit: float) -> int:
    """The cell of a deviation, relative to the first one above the average."""
    if round(deviation, 3) >= 0:
        return int(deviation * right_unit)
    return -1 - int(-deviation * left_unit)
