"""Elements of pictures: SVG written by hand, the same bytes for equal values."""

from collections.abc import Iterable
from typing import Final
from xml.sax.saxutils import escape

from model.printable import printable

INK, PALE, GRID = "#222222", "#666666", "#e4e4e4"
BLUE, RED, SHADE, AMBER = "#1b5e9e", "#b0472e", "#f6e3dd", "#d98200"

WIDTH: Final = 760
"""Of every picture, in pixels."""


def picture(height: int, title: str, elements: Iterable[str]) -> str:
    """A picture on white with its elements, `WIDTH` wide.

    height: in pixels. title: for screen readers.
    """
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif" '
        'font-size="12" role="img">',
        f"<title>{escape(printable(title))}</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        *elements,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A line between two points, in pixels."""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    fill: str = INK,
    anchor: str = "start",
    weight: str = "normal",
    more: str = "",
) -> str:
    """Words at a point of their baseline, in pixels; `more` are further attributes."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" '
        f'text-anchor="{anchor}" font-weight="{weight}"{" " + more if more else ""}>'
        f"{escape(printable(words))}</text>"
    )
