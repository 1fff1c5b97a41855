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
WORST = "worst"
"""The column of the one bar for which there is room."""
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
    single: int
    """Width of one bar per broker, in the dimension in which it deviates most now; 0 for none."""
    figures: tuple[int, ...]
    """Width of the figures of each dimension."""
    axis: Axis


@memoized
def broker_table(plan: Plan | None, width: int) -> Table:
    """Deviations now and after the plan; replicas, bars and loads if they fit.

    The broker that deviates most now comes first, as on the overview. The bars take all
    width left; where one per dimension does not fit, there is one per broker.
    """
    if plan is None:
        return Table(columns=(Column("broker", "broker", ID),), rows=(), why_empty=WHY_EMPTY)
    layout = _layout(plan, width)
    columns = [Column("broker", "broker", ID)]
    columns += [Column("replicas", "replicas", layout.counts)] if layout.counts else []
    for key, figures in zip(layout.keys, layout.figures, strict=True):
        columns += [Column(f"{key} load", short_name(key), LOAD)] if layout.loads else []
        label = _heading(key)
        if layout.bar:
            label = f"{label:{OFF}}{axis_text(layout.axis, layout.bar)}"
        columns.append(Column(key, label, figures + layout.bar + bool(layout.bar)))
    if layout.single:
        columns.append(Column(WORST, axis_text(layout.axis, layout.single), layout.single))
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
    # Beside a single bar, they are no wider than what they hold, and a space.
    figures = tuple(_figures_width(plan, key) + 1 for key in keys)
    single = 0 if bars or len(keys) < 2 else width - ID - counts - sum(figures)
    single = single if single >= LEAST_BAR else 0
    deviations = (d for b in plan.brokers for d in b.deviation_before.values())
    return _Layout(
        keys=keys,
        counts=counts,
        loads=loads,
        bar=bar,
        single=single,
        figures=figures if single else (OFF,) * len(keys),
        axis=axis_of(deviations),
    )


def _figures_width(plan: Plan, key: str) -> int:
    """Cells that the longest deviations in a dimension take, or their heading."""
    words = (sum(len(s.text) for s in _figures(b, plan, key)) for b in plan.brokers)
    return max(len(_heading(key)), max(words, default=0))


def _heading(key: str) -> str:
    return f"{short_name(key)} deviation"


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
    if layout.single:
        cells.append(_single_bar(broker, plan, layout))
        values.append(_worst(broker))
    return Row(key=str(broker.id), cells=tuple(cells), values=tuple(values))


def _counts(broker: BrokerChange) -> str:
    return f"{broker.replicas_before} → {broker.replicas_after}"


def _off(broker: BrokerChange, plan: Plan, key: str, layout: _Layout) -> Cell:
    """The figures of a dimension, and its bar."""
    words = _figures(broker, plan, key)
    if not layout.bar or key not in broker.deviation_after:
        return words
    blank = Span(" " * max(1, OFF - sum(len(span.text) for span in words)))
    return (*words, blank, *_bar(broker, plan, key, layout.axis, layout.bar))


def _figures(broker: BrokerChange, plan: Plan, key: str) -> Cell:
    """`!+200% → +2%`: `!` is above the tolerance band, `<` below it."""
    if key not in broker.deviation_after:
        return cell("drained", Role.MUTED)
    tolerance = tolerance_of(plan.goals, key)
    before, after = broker.deviation_before[key], broker.deviation_after[key]
    return (Span(*marked(before, tolerance)), Span(" → "), Span(*marked(after, tolerance)))


def _single_bar(broker: BrokerChange, plan: Plan, layout: _Layout) -> Cell:
    """The bar of the dimension in which a broker deviates most now; none where it is drained."""
    known = [key for key in layout.keys if key in broker.deviation_after]
    if not known:
        return ()
    worst = max(known, key=lambda key: abs(broker.deviation_before[key]))
    return _bar(broker, plan, worst, layout.axis, layout.single)


def _bar(broker: BrokerChange, plan: Plan, key: str, axis: Axis, width: int) -> Cell:
    tolerance = tolerance_of(plan.goals, key)
    now = broker.deviation_before[key]
    of = Deviation(now=now, after=broker.deviation_after[key], tolerance=tolerance)
    return diverging(of, axis, width, bar_role(now, tolerance))
