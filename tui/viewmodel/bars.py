"""Bars of eighth blocks with the level marked on them."""

from tui.viewmodel.cells import Cell, Role, Span

EIGHTHS = " ▏▎▍▌▋▊▉█"
LEVEL_MARK = "│"
BEYOND = "»"
"""Ends a bar whose value is beyond its scale."""


def bar(share: float, level_share: float | None, width: int, role: Role) -> Cell:
    """A bar that fills `share` of `width` cells; 1 is full.

    `level_share` is where the level lies on the same scale; the cell in which it lies
    shows the mark instead of the bar.
    """
    eighths = round(8 * width * min(max(share, 0.0), 1.0))
    text = EIGHTHS[8] * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    text = text.ljust(width)
    if share > 1:
        text = text[:-1] + BEYOND
    if level_share is None or not 0 < level_share < 1:
        return (Span(text, role),)
    at = min(width - 1, int(level_share * width))
    return (
        Span(text[:at], role),
        Span(LEVEL_MARK, Role.MARK),
        Span(text[at + 1 :], role),
    )
