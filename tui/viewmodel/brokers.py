"""The table of brokers: which one is over what, and what the plan would change."""

from collections import Counter
from dataclasses import dataclass

from control.view import LoopView
from model.goals import Goals
from model.ids import BrokerId
from model.plan import Plan
from model.snapshot import Broker, BrokerState, Resource, Snapshot
from model.units import rate_text
from tui.viewmodel.bars import bar
from tui.viewmodel.cells import (
    Cell,
    Column,
    Role,
    Row,
    Span,
    Table,
    cell,
    shorten,
)
from tui.viewmodel.gauges import RESOURCES, SHORT, Gauge, Gauges, gauges

NAMED = 3
"""Brokers named one by one in the headline."""

Counts = dict[BrokerId, tuple[str, str]]
"""`replicas/leaders` of each broker, now and after the plan."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Widths of the columns that give way on a narrow terminal."""

    rack: int
    bar: int
    """0 for number and marker alone."""
    counts: int
    """Of replicas and leaders; those after the plan show where there is room."""


LAYOUTS = (
    (0, Layout(rack=4, bar=0, counts=8)),
    (98, Layout(rack=5, bar=7, counts=14)),
    (118, Layout(rack=8, bar=15, counts=14)),
    (158, Layout(rack=14, bar=30, counts=16)),
)
"""From which width of the panel on, in columns."""


def layout_for(width: int) -> Layout:
    """The roomiest layout that fits."""
    return [layout for least, layout in LAYOUTS if least <= width][-1]


def broker_table(view: LoopView, goals: Goals, layout: Layout) -> Table:
    """One row per broker, by id."""
    known = gauges(view, goals)
    counts = _counts(view.snapshot, view.plan)
    brokers = view.brokers or (view.snapshot.header.brokers if view.snapshot else ())
    return Table(
        columns=_columns(layout),
        rows=tuple(_row(b, known, counts, layout) for b in brokers),
        why_empty="No brokers are known yet; the cluster has to answer first.",
    )


def headline(view: LoopView, goals: Goals) -> Cell:
    """Which brokers are over their band, and which under."""
    known = gauges(view, goals)
    if not known:
        return cell("loads are not known yet", Role.MUTED)
    if not any(g.level for g in known.values()):
        return cell("too little load to be worth balancing", Role.MUTED)
    over = _named(known, over=True)
    under = _named(known, over=False)
    if not over and not under:
        return cell("every broker is within its band", Role.GOOD)
    spans = [Span(f"OVER broker {over}", Role.OVER)] if over else []
    if over and under:
        spans.append(Span("   "))
    if under:
        spans.append(Span(f"under {under}", Role.UNDER))
    return tuple(spans)


def levels_line(view: LoopView) -> str:
    """The level of each resource in numbers, and what is left alone."""
    if view.evaluation is None:
        return ""
    levels = view.evaluation.levels
    words = [
        f"{SHORT[r]} {rate_text(levels[r])}"
        if r in levels
        else f"{SHORT[r]} under its floor, not balanced"
        for r in RESOURCES
    ]
    return "level │ " + ", ".join(words)


def _named(known: Gauges, *, over: bool) -> str:
    """`1 in +200 %, out +180 %; 2 in +15 %` or `3 -100 %`; the worst first.

    Only what is over is told per resource, so that it stands out.
    """
    found: dict[BrokerId, dict[Resource, float]] = {}
    for (broker, resource), gauge in known.items():
        if (gauge.over if over else gauge.under) and gauge.deviation is not None:
            found.setdefault(broker, {})[resource] = gauge.deviation
    worst = sorted(found.items(), key=lambda item: -max(map(abs, item[1].values())))
    named = [f"{b} {_offs(offs, each=over)}" for b, offs in worst[:NAMED]]
    if len(worst) > NAMED:
        named.append(f"and {len(worst) - NAMED} more")
    return "; ".join(named)


def _offs(offs: dict[Resource, float], *, each: bool) -> str:
    if not each:
        return percent(min(offs.values()))
    return ", ".join(f"{SHORT[r]} {percent(off)}" for r, off in offs.items())


def percent(deviation: float) -> str:
    """A deviation with its sign: `+12 %`."""
    return f"{_whole(deviation):+d} %"


def _whole(deviation: float) -> int:
    return max(-999, min(999, round(100 * deviation)))


def _columns(layout: Layout) -> tuple[Column, ...]:
    load = 12 + layout.bar
    return (
        Column("id", "id", 5),
        Column("rack", "rack", layout.rack + 1),
        Column("state", "state", 9),
        *(
            column
            for r in RESOURCES
            for column in (
                Column(f"{r}-load", f" {SHORT[r]}", load),
                Column(f"{r}-off", f"{SHORT[r]} vs level", 13),
            )
        ),
        Column("count", "rep/lead", layout.counts),
    )


def _row(broker: Broker, known: Gauges, counts: Counts, layout: Layout) -> Row:
    cells = [
        cell(str(broker.id), Role.STRONG),
        cell(shorten(broker.rack or "-", layout.rack)),
        _state(broker.state),
    ]
    for resource in RESOURCES:
        gauge = known.get((broker.id, resource))
        cells += [_load(gauge, layout.bar), _off(gauge)]
    now, after = counts.get(broker.id, ("-", "-"))
    both = f"{now} → {after}"
    count = both if now != after and len(both) < layout.counts else now
    return Row(key=str(broker.id), cells=(*cells, cell(count)))


def _state(state: BrokerState) -> Cell:
    match state:
        case BrokerState.ALIVE:
            return cell(state.value)
        case BrokerState.DEAD:
            return cell("DEAD", Role.ALARM)
        case _:
            return cell(state.value, Role.UNDER)


def _load(gauge: Gauge | None, width: int) -> Cell:
    """Bar, marker (`!` over the band, `<` under it) and number."""
    if gauge is None:
        return cell("-".rjust(width + 11), Role.MUTED)
    role, marker = _mark(gauge)
    number = Span(f"{marker}{rate_text(gauge.load):>9}", role)
    if not width:
        return (Span(" "), number)
    level = gauge.level / gauge.scale if gauge.level and gauge.scale else None
    share = gauge.load / gauge.scale if gauge.scale else 0.0
    return (*bar(share, level, width, role), Span(" "), number)


def _mark(gauge: Gauge) -> tuple[Role, str]:
    if gauge.over:
        return Role.OVER, "!"
    if gauge.under:
        return Role.UNDER, "<"
    return (Role.GOOD, " ") if gauge.deviation is not None else (Role.MUTED, " ")


def _off(gauge: Gauge | None) -> Cell:
    """Deviation now, an arrow for what the plan would do, deviation after."""
    if gauge is None or gauge.deviation is None:
        return cell("    -", Role.MUTED)
    now = f"{_whole(gauge.deviation):+d}%"
    role, _ = _mark(gauge)
    if gauge.deviation_after is None:
        return (Span(f"{now:>5}", role),)
    after = f"{_whole(gauge.deviation_after):+d}%"
    arrow = _arrow(gauge.deviation, gauge.deviation_after)
    inside = abs(gauge.deviation_after) <= gauge.tolerance
    after_role = Role.GOOD if inside else Role.UNDER
    return (Span(f"{now:>5}", role), Span(f" {arrow} "), Span(after, after_role))


def _arrow(before: float, after: float) -> str:
    if round(before, 3) == round(after, 3):
        return "="
    return "▼" if after < before else "▲"


def _counts(snapshot: Snapshot | None, plan: Plan | None) -> Counts:
    if snapshot is None:
        return {}
    columns = snapshot.partitions
    replicas = Counter(columns.replica_broker.tolist())
    leaders = Counter(columns.leader.tolist())
    replicas_after, leaders_after = replicas.copy(), leaders.copy()
    for move in plan.moves if plan else ():
        # From what is now, so that a move that is done already changes nothing.
        row = snapshot.row_of.get(move.id)
        if row is None:
            continue
        replicas_after.subtract(snapshot.replicas(row))
        replicas_after.update(move.replicas_after)
        leaders_after[int(columns.leader[row])] -= 1
        leaders_after[move.leader_after] += 1
    return {
        b.id: (
            f"{replicas[b.id]}/{leaders[b.id]}",
            f"{replicas_after[b.id]}/{leaders_after[b.id]}",
        )
        for b in snapshot.header.brokers
    }
