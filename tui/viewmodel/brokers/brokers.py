"""The table of brokers: loads, deviations, and what the plan would change."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.plan import BrokerChange, Plan
from model.snapshot.snapshot import Broker, BrokerState, Ints, Resource, Snapshot
from model.units import short_text
from tui.viewmodel.brokers.bars import Marks, bar
from tui.viewmodel.brokers.gauges import SHORT, Gauge, Gauges, gauges, loads_shown, resources_of
from tui.viewmodel.brokers.headline import whole
from tui.viewmodel.cells import Cell, Column, Role, Row, Span, Table, cell, shorten, shorten_middle
from tui.viewmodel.memoize import memoized_while
from tui.viewmodel.plan.shown_plan import ghost

UNITS = {
    Resource.NET_IN: "B/s",
    Resource.NET_OUT: "B/s",
    Resource.DISK: "B",
    Resource.REQUESTS: "/s",
}
BARS_FROM = 79
"""Width below which loads are only a number and a marker."""
BESIDE = 8
"""Width of a load beside its bar: a blank, the marker, the number, a blank."""
FIXED = 5 + 9
"""Width of id and state."""

LONGEST_BAR = 40
OFF_WITH_AFTER = 21
"""Width of a deviation now and after the plan."""

Count = tuple[int, int]
"""Replicas and leaders of a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Widths of the columns that shrink on a narrow terminal."""

    rack: int
    counts: int
    """Of replicas and leaders; those after the plan are shown if they fit."""
    off: int
    """Of the largest deviation; that after the plan is shown if it fits."""
    bar: int = 0
    """0 for number and marker only."""

    @property
    def beside(self) -> int:
        """Width of the columns that are not loads."""
        return FIXED + self.rack + self.counts + self.off


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """The data of all rows."""

    gauges: Gauges
    now: dict[BrokerId, Count]
    after: dict[BrokerId, Count]
    off: dict[str, dict[BrokerId, float]]
    """Deviations by dimension."""
    changes: dict[BrokerId, BrokerChange]
    goals: Goals


CHOICES = (
    (Layout(rack=15, counts=15, off=OFF_WITH_AFTER), 24),
    (Layout(rack=9, counts=15, off=OFF_WITH_AFTER), 12),
    (Layout(rack=6, counts=9, off=14), 7),
    (Layout(rack=5, counts=9, off=14), 3),
)
"""Layouts, widest first, with the shortest bar each is used for."""


def layout_for(width: int, loads: int) -> Layout:
    """The widest layout that fits this many loads."""
    if width >= BARS_FROM and loads:
        for layout, least in CHOICES:
            longest = (width - layout.beside) // loads - BESIDE
            if longest >= least:
                return replace(layout, bar=min(longest, LONGEST_BAR))
    fits = [lay for lay, _ in CHOICES if lay.beside + loads * BESIDE <= width]
    return fits[0] if fits else CHOICES[-1][0]


@memoized_while(loads_shown)
def broker_table(view: LoopView, goals: Goals, width: int) -> Table:
    """One row per broker, by id."""
    loads = resources_of(view, goals)
    layout, plan = layout_for(width, len(loads)), ghost(view)
    facts = _Facts(
        gauges=gauges(view, goals),
        now=_counts(view.snapshot, None),
        after=_counts(view.snapshot, plan),
        off=view.evaluation.deviations if view.evaluation else {},
        changes={b.id: b for b in plan.brokers} if plan is not None else {},
        goals=goals,
    )
    brokers = view.brokers or (view.snapshot.header.brokers if view.snapshot else ())
    return Table(
        columns=_columns(loads, layout),
        rows=tuple(_row(broker, facts, loads, layout) for broker in brokers),
        why_empty=_why_empty(view),
    )


def _why_empty(view: LoopView) -> str:
    if view.snapshot is not None:
        return "The cluster has no brokers."
    return "No brokers yet; waiting for the cluster to answer."


def _columns(loads: tuple[Resource, ...], layout: Layout) -> tuple[Column, ...]:
    shown = [
        Column("id", "id", 5),
        Column("rack", "rack", layout.rack),
        Column("state", "state", 9),
        # Before the loads, so that it is visible even if not all columns fit.
        Column("off", "deviation", layout.off),
    ]
    for resource in loads:
        label = f"{SHORT[resource]} {UNITS.get(resource, '')}"
        shown.append(Column(resource.value, label, layout.bar + BESIDE))
    shown.append(Column("count", "rep/lead", layout.counts))
    return tuple(shown)


def _row(broker: Broker, facts: _Facts, loads: tuple[Resource, ...], layout: Layout) -> Row:
    own = [facts.gauges.get((broker.id, resource)) for resource in loads]
    rack = broker.rack or "-"
    now, worst = facts.now.get(broker.id), _worst(broker.id, facts.off)
    cells = [
        cell(str(broker.id), Role.STRONG),
        cell(shorten_middle(rack, layout.rack - 1)),
        state_cell(broker.state),
        _off(broker.id, worst, facts, layout.off),
        *(_load(g, r, layout.bar) for g, r in zip(own, loads, strict=True)),
        cell(_count_words(now, facts.after.get(broker.id), layout.counts)),
    ]
    values: list[float | str] = [broker.id, rack, broker.state.value]
    values.append(abs(facts.off[worst][broker.id]) if worst else -1.0)
    values += [gauge.load / (gauge.scale or 1.0) if gauge else -1.0 for gauge in own]
    values.append(now[0] if now else -1)
    return Row(key=str(broker.id), cells=tuple(cells), values=tuple(values))


def state_cell(state: BrokerState) -> Cell:
    """The state of a broker."""
    match state:
        case BrokerState.ALIVE:
            return cell(state.value)
        case BrokerState.DEAD:
            return cell("DEAD", Role.ALARM)
        case _:
            return cell(state.value, Role.UNDER)


def _load(gauge: Gauge | None, resource: Resource, width: int) -> Cell:
    """Bar, marker (`!` above the band or limit, `<` below the band) and number."""
    if gauge is None:
        return cell("-".rjust(width + BESIDE - 1), Role.MUTED)
    role, marker = mark(gauge)
    number = Span(f"{marker}{_figure(gauge.load, resource):>5}", role)
    return (*gauge_bar(gauge, width), Span(" "), number)


def gauge_bar(gauge: Gauge, width: int) -> Cell:
    """A gauge's bar with average, tolerance band, and the plan's change."""
    if not width:
        return ()
    scale = gauge.scale or 1.0
    marks = Marks(
        average=gauge.average / scale if gauge.average else None,
        tolerance=gauge.tolerance,
        after=gauge.after / scale if gauge.after is not None else None,
    )
    return bar(gauge.load / scale, width, mark(gauge)[0], marks)


def _figure(load: float, resource: Resource) -> str:
    """Format a broker's load in at most five characters."""
    if resource is not Resource.CPU:
        return short_text(load)
    return f"{load:.3g}" if 0.01 <= load < 999.5 else short_text(round(load))


def mark(gauge: Gauge) -> tuple[Role, str]:
    """The role of a gauge, and the marker that says the same without colour."""
    if gauge.over_limit:
        return Role.ALARM, "!"
    if gauge.over:
        return Role.OVER, "!"
    if gauge.under:
        return Role.UNDER, "<"
    return (Role.GOOD, " ") if gauge.deviation is not None else (Role.MUTED, " ")


def _worst(broker: BrokerId, off: dict[str, dict[BrokerId, float]]) -> str:
    """The dimension with the largest deviation of a broker; empty for none."""
    deviations = {key: abs(by[broker]) for key, by in off.items() if broker in by}
    return max(deviations, key=deviations.__getitem__, default="")


def _off(broker: BrokerId, key: str, facts: _Facts, width: int) -> Cell:
    """Deviation now, an arrow for the plan's change, deviation after."""
    if not key:
        return cell("-", Role.MUTED)
    tolerance = facts.goals.tolerance_of(key.partition("@")[0]) or 1.0
    now = facts.off[key][broker]
    name = shorten(SHORT.get(key, key), 8)
    shown = (Span(f"{name} "), _deviation(now, tolerance))
    change = facts.changes.get(broker)
    after = change.deviation_after.get(key) if change else None
    if after is None or width < OFF_WITH_AFTER:
        return shown
    return (*shown, Span(f" {arrow(now, after)} "), _deviation(after, tolerance))


def _deviation(deviation: float, tolerance: float) -> Span:
    role = Role.GOOD if abs(deviation) <= tolerance else Role.UNDER
    role = Role.OVER if deviation > tolerance else role
    return Span(f"{whole(deviation):+d}%", role)


def arrow(before: float, after: float) -> str:
    """Whether a figure falls, rises or stays the same."""
    if round(before, 3) == round(after, 3):
        return "="
    return "▼" if after < before else "▲"


def _count_words(now: Count | None, after: Count | None, width: int) -> str:
    if now is None or after is None:
        return "-"
    both = f"{now[0]}/{now[1]} → {after[0]}/{after[1]}"
    return both if now != after and len(both) < width else f"{now[0]}/{now[1]}"


def _counts(snapshot: Snapshot | None, plan: Plan | None) -> dict[BrokerId, Count]:
    if snapshot is None:
        return {}
    columns = snapshot.partitions
    replicas, leaders = _counter(columns.replica_broker), _counter(columns.leader)
    for move in plan.moves if plan else ():
        # From the current state, so that a completed move changes nothing.
        row = snapshot.find(move.id)
        if row is None:
            continue
        replicas.subtract(snapshot.replicas(row))
        replicas.update(move.replicas_after)
        leaders.subtract([int(columns.leader[row])])
        leaders.update([move.leader_after])
    return {b.id: (replicas[b.id], leaders[b.id]) for b in snapshot.header.brokers}


def _counter(brokers: Ints) -> Counter[int]:
    ids, counts = np.unique(brokers, return_counts=True)
    return Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
