"""Simulated policies as a picture, in SVG."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from control.render.svg import GRID, INK, PALE, WIDTH, line, picture, text
from model.units import count_text, percent_text

if TYPE_CHECKING:
    from control.cli.output_types import SimulateAnswer, TrialAnswer

LEFT, RIGHT = 76, 28
TOP: Final = 104
LEGEND_LINE: Final = 15
LEGEND_LINES: Final = 3
"""Policies named above `TOP`; more of them move the plots down."""
PLOT: Final = 200
"""Height of the plot of deviations."""
BARS: Final = 90
"""Height of the plot of moves."""
GAP: Final = 46
BOTTOM: Final = 46
COLOURS: Final = ("#1b5e9e", "#d98200", "#2f7d4f", "#b0472e", "#6b4c9a", "#555555")
MOST_TICKS: Final = 8
DAY_MS: Final = 86_400_000


def simulation_svg(answer: "SimulateAnswer") -> str:
    """The largest deviation hour by hour, and the moves of each day, of every policy."""
    lower = LEGEND_LINE * max(0, len(answer.policies) - LEGEND_LINES)
    plots = (*_deviations(answer), *_moves(answer), *_days(answer, TOP + PLOT + GAP + BARS))
    if lower:
        plots = (f'<g transform="translate(0 {lower})">', *plots, "</g>")
    height = TOP + PLOT + GAP + BARS + BOTTOM + lower
    return picture(height, _title(answer), (*_heading(answer), *plots))


def _title(answer: "SimulateAnswer") -> str:
    return f"{count_text(answer.days, 'day')} of {answer.cluster_id}, simulated"


def _heading(answer: "SimulateAnswer") -> Iterator[str]:
    x = LEFT - 52
    yield text(x, 28, _title(answer), size=17, weight="bold")
    for at, trial in enumerate(answer.policies):
        words = (
            f"{trial.policy}: outside the tolerance {percent_text(trial.outside)} of the time, "
            f"{trial.moves / answer.days:.1f} moves a day, {trial.undone} undone"
        )
        y = 48 + LEGEND_LINE * at
        yield f'<rect x="{x}" y="{y - 9}" width="10" height="10" fill="{_colour(at)}"/>'
        yield text(x + 16, y, words)


def _deviations(answer: "SimulateAnswer") -> Iterator[str]:
    most = max((h.deviation for t in answer.policies for h in t.hours), default=0.0)
    top = _above(most)
    bottom = TOP + PLOT
    for part in range(5):
        y = bottom - part / 4 * PLOT
        yield line(LEFT, y, WIDTH - RIGHT, y, INK if part == 0 else GRID)
        label = percent_text(top * part / 4)
        yield text(LEFT - 8, y + 4, label, anchor="end", fill=PALE)
    yield text(LEFT - 52, TOP - 10, "largest deviation from the average, by the hour", fill=PALE)
    for at, trial in enumerate(answer.policies):
        yield _curve(trial, answer, top, bottom, _colour(at))


def _curve(
    trial: "TrialAnswer", answer: "SimulateAnswer", top: float, bottom: float, colour: str
) -> str:
    points = " ".join(
        f"{_x(answer, hour.at_ms):.1f},{bottom - hour.deviation / top * PLOT:.1f}"
        for hour in trial.hours
    )
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.2"/>'


def _moves(answer: "SimulateAnswer") -> Iterator[str]:
    bottom = TOP + PLOT + GAP + BARS
    top = _above(float(max((d.moves for t in answer.policies for d in t.days), default=0)))
    yield text(LEFT - 52, bottom - BARS - 10, "moves, by the day", fill=PALE)
    for part in range(3):
        y = bottom - part / 2 * BARS
        yield line(LEFT, y, WIDTH - RIGHT, y, INK if part == 0 else GRID)
        yield text(LEFT - 8, y + 4, f"{top * part / 2:g}", anchor="end", fill=PALE)
    count = max(1, len(answer.policies))
    width = 0.8 * (WIDTH - LEFT - RIGHT) / answer.days / count
    for at, trial in enumerate(answer.policies):
        for day in trial.days:
            x = _x(answer, day.at_ms) + (at + 0.1 * count) * width
            height = day.moves / top * BARS
            yield (
                f'<rect x="{x:.1f}" y="{bottom - height:.1f}" width="{width:.1f}" '
                f'height="{height:.1f}" fill="{_colour(at)}"/>'
            )


def _days(answer: "SimulateAnswer", bottom: float) -> Iterator[str]:
    every = math.ceil(answer.days / MOST_TICKS)
    for day in range(0, answer.days, every):
        at_ms = answer.begin_ms + day * DAY_MS
        date = datetime.fromtimestamp(at_ms / 1000, UTC)
        x = _x(answer, at_ms)
        yield line(x, bottom, x, bottom + 5, INK)
        yield text(x + 2, bottom + 18, f"{date:%a %d %b}", fill=PALE)


def _x(answer: "SimulateAnswer", at_ms: float) -> float:
    return LEFT + (at_ms - answer.begin_ms) / (answer.days * DAY_MS) * (WIDTH - LEFT - RIGHT)


def _above(value: float) -> float:
    """The least of 1, 2, 4, 5 or 10 times a power of ten that is not below a value."""
    if value <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(value))
    return next(power * n for n in (1, 2, 4, 5, 10) if power * n >= value - 1e-12)


def _colour(at: int) -> str:
    return COLOURS[at % len(COLOURS)]
