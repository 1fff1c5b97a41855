"""Bars of eighth blocks: load now and after the plan, average and tolerance band."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from tui.viewmodel.cells import Cell, Role, Span

EIGHTHS = " ▏▎▍▌▋▊▉█"
REMOVED = "▒"
"""Load that the plan removes."""
ADDED = "░"
"""Load that the plan adds."""
AVERAGE_MARK = "│"
BAND_MARK = "╎"
"""Either end of the tolerance band."""
BOTH_MARK = "┼"
"""The average, and in the same cell an end of the band."""
BEYOND = "»"
"""Ends a bar whose value exceeds its scale."""
HEIGHTS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """Marks drawn into a bar, as shares of its scale; None if unknown."""

    average: float | None = None
    tolerance: float = 0.0
    """Half the width of the tolerance band, relative to the average."""
    after: float | None = None
    """Where the bar would end after the plan."""


def bar(share: float, width: int, role: Role, marks: Marks | None = None) -> Cell:
    """A bar that fills `share` of `width` cells; 1 is full.

    A mark replaces the cell at its position.
    """
    marks = marks or Marks()
    text = list(_filled(share, marks.after, width))
    if share > 1:
        text[-1] = BEYOND
    roles = [_role(letter, role) for letter in text]
    for at, mark in _marked(marks, width):
        text[at], roles[at] = mark, Role.MARK
    cells = zip(roles, text, strict=True)
    return tuple(
        Span("".join(letter for _, letter in group), of)
        for of, group in groupby(cells, key=lambda cell: cell[0])
    )


def _role(letter: str, role: Role) -> Role:
    """The role of a cell; blanks have none, or they would look filled if reversed."""
    if letter == " ":
        return Role.PLAIN
    return Role.MUTED if letter in REMOVED + ADDED else role


def _filled(share: float, after: float | None, width: int) -> str:
    """The part that remains, then what is removed or added."""
    remains = share if after is None else min(share, after)
    eighths = round(8 * width * _within(remains))
    text = EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    if after is not None:
        end = round(width * _within(max(share, after)))
        text += (REMOVED if after < share else ADDED) * (end - len(text))
    return text.ljust(width)


def _marked(marks: Marks, width: int) -> list[tuple[int, str]]:
    """Positions of the marks; the average last, over the others."""
    if marks.average is None:
        return []
    ends = [marks.average * (1 + side * marks.tolerance) for side in (-1, 1)]
    band = [int(end * width) for end in ends if marks.tolerance and 0 < end < 1]
    found = [(at, BAND_MARK) for at in band]
    if 0 < marks.average < 1:
        at = int(marks.average * width)
        found.append((at, BOTH_MARK if at in band else AVERAGE_MARK))
    return found


def _within(share: float) -> float:
    return min(max(share, 0.0), 1.0)


def sparkline(values: Sequence[float | None], scale: float, width: int) -> str:
    """The latest `width` values as heights; None leaves a gap.

    A value above 0 is never drawn as 0.
    """
    newest = values[-width:]
    return "".join(_height(v, scale) for v in newest).rjust(width)


def _height(value: float | None, scale: float) -> str:
    if value is None:
        return " "
    steps = len(HEIGHTS) - 1
    share = _within(value / scale) if scale > 0 else 0.0
    return HEIGHTS[round(share * steps) or min(1, round(share * 1e6))]
