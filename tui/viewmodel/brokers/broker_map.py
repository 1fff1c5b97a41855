"""The map of many brokers: a cell for each, racks as rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.cells import cell_len

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.broker_troubles import Trouble, trouble_of
from model.snapshot.snapshot import Broker, BrokerState
from model.units import count_text
from tui.viewmodel.brokers.broker_troubles import brokers_of, role_of
from tui.viewmodel.brokers.headline import tolerance_of
from tui.viewmodel.cells import Cell, Role, Span, cell, flow, shorten_middle

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
TROUBLES: Final = {Trouble.DEAD: DEAD, Trouble.FAILED_DISK: "D!", Trouble.SLOW: "S!"}
"""How a broker is marked that has something wrong."""
STATES: Final = {
    BrokerState.DRAINING: "dr",
    BrokerState.CORDONED: "co",
    BrokerState.DEMOTED: "de",
    BrokerState.MAINTENANCE: "ma",
    BrokerState.EXCLUDED: "ex",
}
"""How a broker is marked that takes no new load because someone asked for that."""
UNKNOWN: Final = " -"
BLANK: Final = Span(" " * GAP)
PERCENT: Final = 5
"""Width of a deviation in percent: `+126%`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMap:
    """The map as drawn, and the brokers of each of its lines."""

    lines: tuple[Cell, ...]
    """As many as there is room for, around the selected broker; the last says what is left out."""
    rows: tuple[tuple[BrokerId, ...], ...]
    """All of them, also those that are not drawn."""
    drawn: range
    """Which of the rows are drawn."""
    label: int
    """Cells of the rack's name at the start of each line."""
    cell: int
    """Width of a broker."""
    legend: tuple[Cell, ...]
    """Lines on what the marks on the map mean; empty where there are none."""
    percent: bool
    """Whether there is room for percentages instead of tens of percent."""

    def at(self, x: int, y: int) -> BrokerId | None:
        """The broker drawn at a position, if any."""
        at, row = (x - self.label) // self.cell, self.drawn.start + y
        if row not in self.drawn or not 0 <= at < len(self.rows[row]):
            return None
        return self.rows[row][at]

    def beside(self, broker: BrokerId | None, right: int, down: int) -> BrokerId | None:
        """The broker so many cells to the right and lines down, or the last before the edge."""
        for y, row in enumerate(self.rows):
            if broker in row:
                to = self.rows[max(0, min(len(self.rows) - 1, y + down))]
                return to[max(0, min(len(to) - 1, row.index(broker) + right))]
        return self.rows[0][0] if self.rows else None


def broker_map(
    view: LoopView,
    goals: Goals,
    width: int,
    height: int,
    selected: BrokerId | None = None,
    cursor: str = CURSOR,
) -> BrokerMap:
    """Each broker by its largest deviation; brokers of a rack by id.

    A broker keeps its place, whatever its load. Ids are shown where there is room, and where
    there is more, percentages instead of tens of percent.
    """
    brokers = brokers_of(view)
    racks: dict[str, list[Broker]] = {}
    for broker in sorted(brokers, key=lambda b: (b.rack or "", b.id)):
        racks.setdefault(broker.rack or "-", []).append(broker)
    legend = _legend(brokers, width)
    height -= len(legend)
    label = min(LONGEST_RACK, max(map(cell_len, racks), default=0)) + 1
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
    parts = [
        (rack, held[start : start + most])
        for rack, held in racks.items()
        for start in range(0, len(held), most)
    ]
    rows = [tuple(broker.id for broker in part) for _, part in parts]
    drawn, lines, named = _window(rows, height, selected), list[Cell](), ""
    for rack, part in parts[drawn.start : drawn.stop]:
        name = "" if rack == named else _fitting(rack, label - 1)
        cells = [
            span
            for broker in part
            for span in _cell(
                broker,
                _figure(broker, worst.get(broker.id), percent=percent),
                size,
                cursor if broker.id == selected else "",
            )
        ]
        lines.append((Span(name + " " * (label - cell_len(name)), Role.STRONG), *cells))
        named = rack
    if len(drawn) < len(rows):
        hidden = len(brokers) - sum(len(rows[y]) for y in drawn)
        lines.append(cell(f"{count_text(hidden, 'more broker')}: up and down", Role.MUTED))
    return BrokerMap(
        lines=tuple(lines),
        rows=tuple(rows),
        drawn=drawn,
        label=label,
        cell=size,
        legend=legend,
        percent=percent,
    )


def _window(rows: Sequence[Sequence[BrokerId]], height: int, selected: BrokerId | None) -> range:
    """The rows for which there is room, that of the selected broker among them."""
    if len(rows) <= height:
        return range(len(rows))
    # One line says what is left out.
    room = max(1, height - 1)
    at = next((y for y, row in enumerate(rows) if selected in row), 0)
    top = max(0, min(at - room // 2, len(rows) - room))
    return range(top, top + room)


def _mark(broker: Broker) -> tuple[str, Role, str] | None:
    """The mark of a broker that is not simply alive, its role and its meaning."""
    trouble = trouble_of(broker)
    if trouble is not None:
        return TROUBLES[trouble], role_of(trouble), trouble.value.lower()
    if broker.state in STATES:
        return STATES[broker.state], Role.STRONG, broker.state.words
    return None


def _legend(brokers: Sequence[Broker], width: int) -> tuple[Cell, ...]:
    """The marks that are on the map, the worst first, in as many lines as they need."""
    present = {mark for broker in brokers if (mark := _mark(broker)) is not None}
    order = (*TROUBLES.values(), *STATES.values())
    marks = sorted(present, key=lambda mark: order.index(mark[0]))
    items = [(Span(text, role), Span(f" {words}", Role.MUTED)) for text, role, words in marks]
    return flow(items, width) if items else ()


def _worst(view: LoopView, goals: Goals) -> dict[BrokerId, tuple[float, float]]:
    """The largest deviation of each broker and its tolerance."""
    found: dict[BrokerId, tuple[float, float]] = {}
    for key, by in (view.evaluation.deviations if view.evaluation else {}).items():
        tolerance = tolerance_of(goals, key)
        for broker, deviation in by.items():
            if broker not in found or abs(deviation) > abs(found[broker][0]):
                found[broker] = deviation, tolerance
    return found


def _fitting(name: str, width: int) -> str:
    """The name in at most so many cells; some letters take two."""
    letters = width
    while cell_len(shown := shorten_middle(name, letters)) > width:
        letters -= 1
    return shown


def _cell(broker: Broker, figure: Span, size: int, cursor: str) -> Sequence[Span]:
    """cursor: empty where the broker is not selected."""
    selected = bool(cursor)
    bar = Span(cursor or " ", Role.GOOD if selected else Role.PLAIN)
    if size == CELL:
        return bar, figure
    name = str(broker.id).rjust(size - len(figure.text) - 2 - GAP)
    return bar, Span(f"{name} ", Role.STRONG if selected else Role.MUTED), figure, BLANK


def _figure(broker: Broker, worst: tuple[float, float] | None, *, percent: bool) -> Span:
    """The mark of a broker, or `+58%`, or in tens of percent.

    `+6` is 60 % above the average, `-5` 50 % below it, `+»` beyond 95 %.
    """
    text, role = UNKNOWN, Role.MUTED
    if (mark := _mark(broker)) is not None:
        text, role, _ = mark
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
