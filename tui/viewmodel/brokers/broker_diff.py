"""The brokers now and after the plan, by dimension."""

from model.plan.plan import BrokerChange, Plan
from model.units import deviation_text, short_text
from tui.viewmodel.brokers.gauges import SHORT
from tui.viewmodel.cells import Cell, Column, Role, Row, Span, Table, cell, right
from tui.viewmodel.memoize import memoized

ID, REPLICAS, OFF, LOAD = 7, 10, 17, 15
"""Width of each figure."""

WHY_EMPTY = "Brokers are compared here once there is a plan."


@memoized
def broker_table(plan: Plan | None, width: int) -> Table:
    """Deviations now and after the plan; replicas and loads if they fit.

    The broker that deviates most after the plan comes first.
    """
    if plan is None:
        return Table(columns=(Column("broker", "broker", ID),), rows=(), why_empty=WHY_EMPTY)
    keys = tuple(plan.levels)
    free = width - ID - OFF * len(keys)
    counts = free >= REPLICAS
    loads = free - REPLICAS * counts >= LOAD * len(keys)
    columns = [Column("broker", "broker", ID)]
    columns += [Column("replicas", "replicas", REPLICAS)] if counts else []
    for key in keys:
        name = SHORT.get(key, key)
        columns += [Column(f"{key} load", f"{name}", LOAD)] if loads else []
        columns.append(Column(key, f"{name} deviation", OFF))
    ordered = sorted(plan.brokers, key=lambda b: (-_worst_after(b), b.id))
    rows = tuple(_row(b, plan, keys, counts=counts, loads=loads) for b in ordered)
    return Table(columns=tuple(columns), rows=rows)


def _worst_after(broker: BrokerChange) -> float:
    return max(map(abs, broker.deviation_after.values()), default=0.0)


def _row(
    broker: BrokerChange, plan: Plan, keys: tuple[str, ...], *, counts: bool, loads: bool
) -> Row:
    cells = [right(str(broker.id), ID)]
    values: list[float | str] = [broker.id]
    if counts:
        before, after = broker.replicas_before, broker.replicas_after
        cells.append(cell(f"{before} → {after}"))
        values.append(after)
    for key in keys:
        if loads:
            before_s, after_s = broker.before.get(key, 0.0), broker.after.get(key, 0.0)
            cells.append(cell(f"{short_text(before_s)} → {short_text(after_s)}"))
            values.append(after_s)
        cells.append(_off(broker, plan, key))
        values.append(abs(broker.deviation_after.get(key, 0.0)))
    return Row(key=str(broker.id), cells=tuple(cells), values=tuple(values))


def _off(broker: BrokerChange, plan: Plan, key: str) -> Cell:
    """`+200 %! → +2 %`: `!` is above the tolerance band, `<` below it."""
    if key not in broker.deviation_after:
        return cell("drained", Role.MUTED)
    tolerance = plan.goals.tolerance_of(key) or 1.0
    before, after = broker.deviation_before[key], broker.deviation_after[key]
    return (_marked(before, tolerance), Span(" → "), _marked(after, tolerance))


def _marked(deviation: float, tolerance: float) -> Span:
    text = deviation_text(deviation)
    if deviation > tolerance:
        return Span(f"{text}!", Role.OVER)
    if deviation < -tolerance:
        return Span(f"{text}<", Role.UNDER)
    return Span(text)
