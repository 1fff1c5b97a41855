"""The brokers now and after the plan, by dimension."""

from dataclasses import dataclass

from model.plan.plan import BrokerChange, Plan
from model.units import short_text
from tui.viewmodel.brokers.brokers import bar_role, marked
from tui.viewmodel.brokers.deviation_bar import Axis, Deviation, axis_of, axis_text, diverging
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.brokers.headline import tolerance_of, whole
from tui.viewmodel.cells import Cell, Column, Role, Row, Span, Table, cell, right
from tui.viewmodel.memoize import memoized

ID, REPLICAS, OFF, LOAD = 7, 10, 17, 15
"""Width of each figure."""
LEAST_BAR = 9
"""Beside figures that say the same exactly, a bar may be shorter than on the overview."""

WHY_EMPTY = "Brokers are compared here once there is a plan."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The columns that fit."""

    keys: tuple[str, ...]
    counts: int
    """Width of the counts of replicas; 0 for none."""
    loads: bool
    bar: int
    """Width of each bar; 0 for none."""
    axis: Axis


@memoized
def broker_table(plan: Plan | None, width: int) -> Table:
    """Deviations now and after the plan; replicas, bars and loads if they fit.

    The broker that deviates most now comes first, as on the overview. The bars take all
    width left.
    """
    if plan is None:
        return Table(columns=(Column("broker", "broker", ID),), rows=(), why_empty=WHY_EMPTY)
    layout = _layout(plan, width)
    columns = [Column("broker", "broker", ID)]
    columns += [Column("replicas", "replicas", layout.counts)] if layout.counts else []
    for key in layout.keys:
        name = short_name(key)
        columns += [Column(f"{key} load", f"{name}", LOAD)] if layout.loads else []
        label = f"{name} deviation"
        if layout.bar:
            label = f"{label:{OFF}}{axis_text(layout.axis, layout.bar)}"
        columns.append(Column(key, label, OFF + layout.bar + bool(layout.bar)))
    ordered = sorted(plan.brokers, key=lambda b: (-_worst(b), b.id))
    return Table(columns=tuple(columns), rows=tuple(_row(b, plan, layout) for b in ordered))


def _layout(plan: Plan, width: int) -> _Layout:
    """The columns of a width: counts before bars, bars before loads."""
    keys = tuple(plan.levels)
    free = width - ID - OFF * len(keys)
    longest = max((len(_counts(b)) for b in plan.brokers), default=0)
    counts = max(REPLICAS, longest + 1)
    counts = counts if free >= counts else 0
    bars = (LEAST_BAR + 1) * len(keys)
    bars = bars if free - counts >= bars else 0
    loads = free - counts - bars >= LOAD * len(keys)
    free -= counts + LOAD * len(keys) * loads
    bar = free // len(keys) - 1 if bars else 0
    deviations = (d for b in plan.brokers for d in b.deviation_before.values())
    return _Layout(keys=keys, counts=counts, loads=loads, bar=bar, axis=axis_of(deviations))


def _worst(broker: BrokerChange) -> int:
    """The largest deviation now, in whole percent, in which the overview orders brokers."""
    return whole(max(map(abs, broker.deviation_before.values()), default=0.0))


def _row(broker: BrokerChange, plan: Plan, layout: _Layout) -> Row:
    cells = [right(str(broker.id), ID)]
    values: list[float | str] = [broker.id]
    if layout.counts:
        cells.append(cell(_counts(broker)))
        values.append(broker.replicas_after)
    for key in layout.keys:
        if layout.loads:
            before_s, after_s = broker.before.get(key, 0.0), broker.after.get(key, 0.0)
            cells.append(cell(f"{short_text(before_s)} → {short_text(after_s)}"))
            values.append(after_s)
        cells.append(_off(broker, plan, key, layout))
        values.append(abs(broker.deviation_after.get(key, 0.0)))
    return Row(key=str(broker.id), cells=tuple(cells), values=tuple(values))


def _counts(broker: BrokerChange) -> str:
    return f"{broker.replicas_before} → {broker.replicas_after}"


def _off(broker: BrokerChange, plan: Plan, key: str, layout: _Layout) -> Cell:
    """`!+200% → +2%` and its bar: `!` is above the tolerance band, `<` below it."""
    if key not in broker.deviation_after:
        return cell("drained", Role.MUTED)
    tolerance = tolerance_of(plan.goals, key)
    before, after = broker.deviation_before[key], broker.deviation_after[key]
    words = (Span(*marked(before, tolerance)), Span(" → "), Span(*marked(after, tolerance)))
    if not layout.bar:
        return words
    blank = Span(" " * max(1, OFF - sum(len(span.text) for span in words)))
    deviation = Deviation(now=before, after=after, tolerance=tolerance)
    role = bar_role(before, tolerance)
    return (*words, blank, *diverging(deviation, layout.axis, layout.bar, role))
