"""Bars of eighth blocks, and sparklines."""

from collections.abc import Sequence

from tui.viewmodel.cells import Cell, Role, Span

EIGHTHS = " ▏▎▍▌▋▊▉█"
BEYOND = "»"
"""Ends a bar whose value exceeds its scale."""
HEIGHTS = "▁▂▃▄▅▆▇█"


def bar(share: float, width: int, role: Role) -> Cell:
    """A bar that fills `share` of `width` cells; 1 is full.

    Blanks have no role, or they would look filled if reversed.
    """
    eighths = round(8 * width * _within(share))
    text = EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    if share > 1:
        text = text[:-1] + BEYOND
    blank = " " * (width - len(text))
    return tuple(span for span in (Span(text, role), Span(blank)) if span.text)


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
