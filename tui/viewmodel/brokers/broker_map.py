"""The map of many brokers: a cell for each, racks as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState
from tui.viewmodel.brokers.headline import tolerance_of
from tui.viewmodel.cells import Cell, Role, Span, shorten_middle

MAP_FROM: Final = 40
"""Brokers from which there is a map."""
CELL: Final = 3
"""Least width of a broker: the cursor's bar, a sign and a digit."""
GAP: Final = 2
"""Blanks after a broker whose id is shown."""
LONGEST_RACK: Final = 16
CURSOR: Final = "▌"
INSIDE: Final = " ·"
"""A broker within its tolerance band."""
DEAD: Final = "††"
UNKNOWN: Final = " -"
BLANK: Final = Span(" " * GAP)
PERCENT: Final = 4
"""Width of a deviation in percent: `+37%`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMap:
    """The map as drawn, and the brokers of each of its lines."""

    lines: tuple[Cell, ...]
    rows: tuple[tuple[BrokerId, ...], ...]
    label: int
    """Cells of the rack's name at the start of each line."""
    cell: int
    """Width of a broker."""
    percent: bool
    """Whether there is room for percentages instead of tens of percent."""

    def at(self, x: int, y: int) -> BrokerId | None:
        """The broker drawn at a position, if any."""
        at = (x - self.label) // self.cell
        if not 0 <= y < len(self.rows) or not 0 <= at < len(self.rows[y]):
            return None
        return self.rows[y][at]

    def beside(self, broker: BrokerId | None, right: int, down: int) -> BrokerId | None:
        """The broker so many cells to the right and lines down, or the last before the edge."""
        for y, row in enumerate(self.rows):
            if broker in row:
                to = self.rows[max(0, min(len(self.rows) - 1, y + down))]
                return to[max(0, min(len(to) - 1, row.index(broker) + right))]
        return self.rows[0][0] if self.rows else None


def broker_map(
    view: LoopView, goals: Goals, width: int, height: int, selected: BrokerId | None = None
) -> BrokerMap:
    """Each broker by its largest deviation; brokers of a rack by id.

    A broker keeps its place, whatever its load. Ids are shown where there is room, and where
    there is more, percentages instead of tens of percent.
    """
    brokers = view.brokers or (view.snapshot.header.brokers if view.snapshot else ())
    racks: dict[str, list[Broker]] = {}
    for broker in sorted(brokers, key=lambda b: (b.rack or "", b.id)):
        racks.setdefault(broker.rack or "-", []).append(broker)
    label = min(LONGEST_RACK, max(map(len, racks), default=0)) + 1
    id_width = max((len(str(b.id)) for b in brokers), default=1)
    with_ids = CELL + id_width + 1 + GAP
    in_percent = with_ids + PERCENT - len(INSIDE)

    def across(size: int) -> int:
        return max(1, (width - label) // size)

    def fits(size: int) -> bool:
        lines = sum(-(-len(held) // across(size)) for held in racks.values())
        return lines <= height and label + size <= width

    size = next((size for size in (in_percent, with_ids) if fits(size)), CELL)
    most, percent = across(size), size == in_percent
    worst = _worst(view, goals)
    lines: list[Cell] = []
    rows: list[tuple[BrokerId, ...]] = []
    for rack, held in racks.items():
        for start in range(0, len(held), most):
            part = held[start : start + most]
            name = "" if start else shorten_middle(rack, label - 1)
            cells = [
                span
                for broker in part
                for span in _cell(
                    broker,
                    _figure(broker, worst.get(broker.id), percent=percent),
                    size,
                    selected=broker.id == selected,
                )
            ]
            lines.append((Span(name.ljust(label), Role.STRONG), *cells))
            rows.append(tuple(b.id for b in part))
    return BrokerMap(lines=tuple(lines), rows=tuple(rows), label=label, cell=size, percent=percent)


def _worst(view: LoopView, goals: Goals) -> dict[BrokerId, tuple[float, float]]:
    """The largest deviation of each broker and its tolerance."""
    found: dict[BrokerId, tuple[float, float]] = {}
    for key, by in (view.evaluation.deviations if view.evaluation else {}).items():
        tolerance = tolerance_of(goals, key)
        for broker, deviation in by.items():
            if broker not in found or abs(deviation) > abs(found[broker][0]):
                found[broker] = deviation, tolerance
    return found


def _cell(broker: Broker, figure: Span, size: int, *, selected: bool) -> Sequence[Span]:
    bar = Span(CURSOR if selected else " ", Role.GOOD if selected else Role.PLAIN)
    if size == CELL:
        return bar, figure
    name = str(broker.id).rjust(size - len(figure.text) - 2 - GAP)
    return bar, Span(f"{name} ", Role.STRONG if selected else Role.MUTED), figure, BLANK


def _figure(broker: Broker, worst: tuple[float, float] | None, *, percent: bool) -> Span:
    """`+58%`, or in tens of percent: `+6`, `-5` for 50 % below the average, `+»` beyond 95 %."""
    text, role = UNKNOWN, Role.MUTED
    if broker.state is BrokerState.DEAD:
        text, role = DEAD, Role.ALARM
    elif worst is not None:
        deviation, tolerance = worst
        tens = round(10 * abs(deviation))
        if abs(deviation) <= tolerance:
            text = INSIDE
        else:
            role = Role.OVER if deviation > 0 else Role.UNDER
            text = ("+" if deviation > 0 else "-") + (str(tens) if tens < 10 else "»")
            if percent and abs(deviation) < 9.995:
                text = f"{deviation:+.0%}"
    return Span(text.rjust(PERCENT if percent else len(INSIDE)), role)
