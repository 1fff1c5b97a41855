"""The table of brokers: deviations from the average, loads, and the effect of the plan."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.plan import BrokerChange
from model.snapshot.broker_troubles import rank_of, trouble_of
from model.snapshot.snapshot import Broker, BrokerState, Ints, Resource, Snapshot
from model.units import short_text
from tui.viewmodel.brokers.bars import sparkline
from tui.viewmodel.brokers.broker_troubles import brokers_of, role_of
from tui.viewmodel.brokers.deviation_bar import Axis, Deviation, axis_of, axis_text, diverging
from tui.viewmodel.brokers.gauges import (
    SHORT,
    Gauge,
    Gauges,
    gauges,
    loads_shown,
    resources_of,
    short_name,
)
from tui.viewmodel.brokers.headline import NAMES, amount, percent, tolerance_of, whole
from tui.viewmodel.brokers.load_history import NO_HISTORY, Recent
from tui.viewmodel.cells import Cell, Column, Role, Row, Span, Table, cell, named, plain, shorten
from tui.viewmodel.memoize import memoized_while
from tui.viewmodel.plan.shown_plan import ghost

SEVERAL_FROM: Final = 98
"""Width from which more than one resource is drawn."""
AFTER_FROM: Final = 136
"""Width from which the worst deviation is shown after the plan as well."""
HISTORY_FROM: Final = 156
"""Width from which each row has a sparkline."""
LEAST_BAR: Final = 15
RACK: Final = 5
LONGEST_RACK: Final = 16
SHORT_RACK: Final = 8
LONGEST_NAME: Final = 8
AFTER: Final = len(" → +100%")
COUNTS: Final = 9
HISTORY: Final = 13
OFF: Final = len("!+100% ")
SHARE: Final = len("100% ")
LOAD: Final = len("1,000 MB/s ")
OTHER: Final = 7
"""Width of a resource that is not drawn."""

LEAST_STATE: Final = 10

Count = tuple[int, int]
"""Replicas and leaders of a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The columns that fit."""

    id: int
    rack: int
    worst: int
    drawn: tuple[Resource, ...]
    """Resources with a bar."""
    others: tuple[Resource, ...]
    """Resources with a figure only."""
    bar: int
    """Width of each bar."""
    load: bool
    """Whether a bar's load is beside it."""
    share: bool
    """Whether its share of the capacity is."""
    state: int
    """Width of the states; 0 where all are as usual."""
    history: bool
    counts: bool
    after: bool
    """Whether the largest deviation after the plan is shown, too."""

    @property
    def beside(self) -> int:
        """Cells of a drawn resource before its bar."""
        return OFF + LOAD * self.load + SHARE * self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """The data of all rows."""

    gauges: Gauges
    now: dict[BrokerId, Count]
    off: dict[str, dict[BrokerId, float]]
    """Deviations by dimension."""
    changes: dict[BrokerId, BrokerChange]
    goals: Goals
    axis: Axis
    recent: Recent


def layout_for(
    width: int,
    resources: Sequence[Resource],
    *,
    balanced: frozenset[str],
    first: int = 0,
    beside: tuple[int, int, int] = (4, RACK, LONGEST_NAME),
    share: bool = False,
    state: int = 0,
) -> Layout:
    """The columns that fit into a width.

    balanced: the resources that have a deviation, and thus a bar. first: the one drawn
    first if not all fit, counted modulo their number. beside: widths of id and rack, and
    of the longest name of a dimension. All width left goes to the bars.
    """
    bars = [r for r in resources if r in balanced] or list(resources)
    turn = first % len(bars) if bars else 0
    bars = bars[turn:] + bars[:turn]
    after, history = width >= AFTER_FROM, width >= HISTORY_FROM
    id_width, rack, name = beside
    worst = name + 1 + OFF + (AFTER + name + 1) * after
    fixed = id_width + rack + worst + state + HISTORY * history
    most = len(bars) if width >= SEVERAL_FROM else min(1, len(bars))
    tries = (
        (most, True, share, True, OTHER),
        (most, True, False, True, OTHER),
        (most, True, False, False, OTHER),
        (most, False, share, True, OTHER),
        *((count, False, False, True, OTHER) for count in range(most, 0, -1)),
        (min(1, most), False, False, False, OTHER),
        (min(1, most), False, False, False, 0),
    )
    for count, load, shares, counts, other in tries:
        others = tuple(r for r in resources if r not in bars[:count] and other)
        left = width - fixed - COUNTS * counts - OTHER * len(others)
        each = left // max(1, count) - OFF - LOAD * load - SHARE * shares - 1
        if each >= LEAST_BAR:
            break
    return Layout(
        id=id_width,
        rack=rack,
        worst=worst,
        drawn=tuple(sorted(bars[:count], key=list(resources).index)),
        others=others,
        bar=max(0, each),
        load=load,
        share=shares,
        state=state,
        history=history,
        counts=counts,
        after=after,
    )


def _of_table(
    view: LoopView, goals: Goals, width: int, first: int = 0, recent: Recent = NO_HISTORY
) -> tuple[object, ...]:
    return loads_shown(view, goals, width, first, recent)


@memoized_while(_of_table)
def broker_table(
    view: LoopView, goals: Goals, width: int, first: int = 0, recent: Recent = NO_HISTORY
) -> Table:
    """One row per broker: those with something wrong first, then the one that deviates most.

    first: the resource drawn first where not all fit.
    """
    plan = ghost(view)
    brokers = brokers_of(view)
    known = gauges(view, goals)
    layout = _layout(view, goals, width, first, brokers)
    facts = _Facts(
        gauges=known,
        now=_counts(view.snapshot),
        off=view.evaluation.deviations if view.evaluation else {},
        changes={b.id: b for b in plan.brokers} if plan is not None else {},
        goals=goals,
        axis=axis_of(_deviations(known, layout.drawn)),
        recent=recent,
    )
    # In whole percent, so that equal brokers do not change places every second.
    first_ones = sorted(
        brokers, key=lambda broker: (rank_of(broker), -whole(_most(broker.id, facts.off)))
    )
    rows = [_row(broker, facts, layout) for broker in first_ones]
    return Table(columns=_columns(layout, facts.axis), rows=tuple(rows), why_empty=_why_empty(view))


def drawable(view: LoopView, goals: Goals) -> tuple[Resource, ...]:
    """The resources that have a bar where there is room."""
    resources, balanced = resources_of(view, goals), _balanced(view, goals)
    return tuple(r for r in resources if r in balanced) or resources


def drawn_at(view: LoopView, goals: Goals, width: int, first: int) -> tuple[Resource, ...]:
    """The resources drawn at a width."""
    brokers = brokers_of(view)
    return _layout(view, goals, width, first, brokers).drawn


def _layout(
    view: LoopView, goals: Goals, width: int, first: int, brokers: Sequence[Broker]
) -> Layout:
    id_width = max((len(str(b.id)) for b in brokers), default=0) + 1
    rack = max((len(b.rack or "") for b in brokers), default=0) + 1
    most = LONGEST_RACK if width >= AFTER_FROM else SHORT_RACK
    names = view.evaluation.deviations if view.evaluation else ()
    name = max((len(_short(key)) for key in names), default=len("in"))
    return layout_for(
        width,
        resources_of(view, goals),
        balanced=_balanced(view, goals),
        first=first,
        beside=(max(3, id_width), min(most, max(RACK, rack)), name),
        share=any(g.capacity for g in gauges(view, goals).values()),
        state=_state_width(brokers),
    )


def _state_width(brokers: Sequence[Broker]) -> int:
    if all(b.state is BrokerState.ALIVE and trouble_of(b) is None for b in brokers):
        return 0
    return max(LEAST_STATE, *(len(plain(state_cell(b))) + 1 for b in brokers))


def _balanced(view: LoopView, goals: Goals) -> frozenset[str]:
    found = view.evaluation.deviations if view.evaluation else ()
    return frozenset(found) or frozenset(g.resource for g in goals.balance)


def _deviations(known: Gauges, drawn: Sequence[Resource]) -> list[float]:
    found = [g for (_, resource), g in known.items() if resource in drawn]
    values = [value for g in found for value in (g.deviation, g.deviation_after)]
    return [value for value in values if value is not None]


def _why_empty(view: LoopView) -> str:
    if view.snapshot is not None:
        return "The cluster has no brokers."
    return "No brokers yet; waiting for the cluster to answer."


def _columns(layout: Layout, axis: Axis) -> tuple[Column, ...]:
    shown = [Column("id", "id", layout.id), Column("rack", "rack", layout.rack)]
    # Before the loads, so that it is visible even if not all columns fit.
    shown.append(Column("off", "worst", layout.worst))
    if layout.state:
        shown.append(Column("state", "state", layout.state))
    for resource in layout.drawn:
        names = (NAMES[resource], SHORT[resource])
        name = next((n for n in names if len(n) < layout.beside), names[-1])
        name = name.ljust(layout.beside)
        label = f"{name}{axis_text(axis, layout.bar)}" if layout.bar else name
        shown.append(Column(resource.value, label, layout.beside + layout.bar + 1))
    shown += [Column(r.value, f"{SHORT[r]:>{OTHER - 1}}", OTHER) for r in layout.others]
    if layout.history:
        shown.append(Column("history", "history", HISTORY))
    if layout.counts:
        shown.append(Column("count", "rep/lead", COUNTS))
    return tuple(shown)


def _row(broker: Broker, facts: _Facts, layout: Layout) -> Row:
    worst, now = _worst(broker.id, facts.off), facts.now.get(broker.id)
    rack = broker.rack or "-"
    dead = broker.state is BrokerState.DEAD
    deviation = float("inf") if dead else _most(broker.id, facts.off)
    rack_shown, full = named(rack, layout.rack - 1)
    cells = [cell(f"{broker.id}", Role.STRONG), rack_shown, _off(broker.id, worst, facts, layout)]
    values: list[float | str] = [broker.id, rack, deviation]
    if layout.state:
        cells.append(state_cell(broker))
        values.append(broker.state.value)
    for resource in layout.drawn:
        gauge = facts.gauges.get((broker.id, resource))
        cells.append(_drawn(gauge, resource, layout, facts.axis))
        values.append(_value(gauge))
    for resource in layout.others:
        gauge = facts.gauges.get((broker.id, resource))
        cells.append(_figure(gauge, resource))
        values.append(_value(gauge))
    if layout.history:
        cells.append(_history(broker.id, worst, facts))
        values.append(deviation)
    if layout.counts:
        cells.append(cell("-" if now is None else f"{now[0]}/{now[1]}"))
        values.append(now[0] if now else -1)
    at_end = f"rack {full}" if full else ""
    return Row(key=str(broker.id), cells=tuple(cells), values=tuple(values), full=at_end)


def _value(gauge: Gauge | None) -> float:
    """What a resource is sorted by: its deviation, else its share of the scale."""
    if gauge is None:
        return float("-inf")
    if gauge.deviation is not None:
        return gauge.deviation
    return gauge.load / (gauge.scale or 1.0)


def state_cell(broker: Broker) -> Cell:
    """The state of a broker, or what is wrong with it."""
    trouble = trouble_of(broker)
    if trouble is not None:
        return cell(trouble.value, role_of(trouble))
    usual = broker.state is BrokerState.ALIVE
    return cell(broker.state.value, Role.PLAIN if usual else Role.UNDER)


def _drawn(gauge: Gauge | None, resource: Resource, layout: Layout, axis: Axis) -> Cell:
    """Load, share of the capacity, deviation and bar."""
    if gauge is None:
        return cell("-".rjust(layout.beside - 1), Role.MUTED)
    spans: list[Span] = []
    if layout.load:
        role = Role.ALARM if gauge.over_limit and not layout.share else Role.PLAIN
        spans += [*_to_the_right(LOAD - 1, amount(resource, gauge.load), role), Span(" ")]
    if layout.share:
        spans += [*_share(gauge, SHARE - 1), Span(" ")]
    alone = gauge.over_limit and not layout.load and not layout.share
    spans += [*_deviation(gauge, OFF - 1, alarm=alone), Span(" ")]
    if gauge.deviation is not None and layout.bar:
        deviation = Deviation(
            now=gauge.deviation, after=gauge.deviation_after, tolerance=gauge.tolerance
        )
        role = bar_role(gauge.deviation, gauge.tolerance)
        spans += diverging(deviation, axis, layout.bar, role)
    return tuple(spans)


def _to_the_right(width: int, text: str, role: Role = Role.PLAIN) -> Cell:
    """The text at the right end of a width; its role applies to no blank."""
    blank = " " * (width - len(text))
    return (Span(blank), Span(text, role)) if blank else (Span(text, role),)


def _deviation(gauge: Gauge, width: int, *, alarm: bool = False) -> Cell:
    """The deviation; alarm: whether the load is over its limit, where nothing else says so."""
    if gauge.deviation is None:
        return cell(" " * width)
    text, role = marked(gauge.deviation, gauge.tolerance)
    if alarm:
        text, role = f"!{text.lstrip('!<')}", Role.ALARM
    return _to_the_right(width, text, role)


def _share(gauge: Gauge, width: int) -> Cell:
    """The share of the capacity, which is an alarm above its limit."""
    if not gauge.capacity:
        return cell(" " * width)
    role = Role.ALARM if gauge.over_limit else Role.PLAIN
    return _to_the_right(width, f"{gauge.load / gauge.capacity:.0%}", role)


def _figure(gauge: Gauge | None, resource: Resource) -> Cell:
    """A resource without a bar: its deviation, else its share or load."""
    if gauge is None:
        return cell("-".rjust(OTHER - 1), Role.MUTED)
    if gauge.deviation is not None:
        return _deviation(gauge, OTHER - 1, alarm=gauge.over_limit)
    if gauge.capacity:
        return _share(gauge, OTHER - 1)
    if resource is Resource.CPU:
        return _to_the_right(OTHER - 1, f"{gauge.load:.3g}")
    return _to_the_right(OTHER - 1, short_text(gauge.load))


def _history(broker: BrokerId, worst: str, facts: _Facts) -> Cell:
    """The latest loads of the resource that deviates most, on the scale of all brokers."""
    resource = worst.partition("@")[0]
    loads, scale = facts.recent.of(broker, resource), facts.recent.most.get(resource, 0.0)
    return cell(sparkline(loads, scale, HISTORY - 1), Role.MUTED)


def bar_role(deviation: float, tolerance: float) -> Role:
    """The role of a bar; inside the band it has no colour."""
    if deviation > tolerance:
        return Role.OVER
    return Role.UNDER if deviation < -tolerance else Role.MUTED


def marked(deviation: float, tolerance: float) -> tuple[str, Role]:
    """`!+62%` above the tolerance band, `<-58%` below it, `+2%` or `0%` inside."""
    text = percent(deviation).replace(" ", "")
    if deviation > tolerance:
        return f"!{text}", Role.OVER
    if deviation < -tolerance:
        return f"<{text}", Role.UNDER
    return text, Role.PLAIN


def mark(gauge: Gauge) -> tuple[Role, str]:
    """The role of a gauge, and the marker that says the same without colour."""
    if gauge.over_limit:
        return Role.ALARM, "!"
    if gauge.over:
        return Role.OVER, "!"
    if gauge.under:
        return Role.UNDER, "<"
    return (Role.GOOD, " ") if gauge.deviation is not None else (Role.MUTED, " ")


def _worst(broker: BrokerId, off: Mapping[str, Mapping[BrokerId, float]]) -> str:
    """The dimension with the largest deviation of a broker; empty for none."""
    deviations = {key: abs(by[broker]) for key, by in off.items() if broker in by}
    return max(deviations, key=deviations.__getitem__, default="")


def _most(broker: BrokerId, off: Mapping[str, Mapping[BrokerId, float]]) -> float:
    """The largest deviation of a broker without its sign; -1 for none."""
    return max((abs(by[broker]) for by in off.values() if broker in by), default=-1.0)


def _short(dimension: str) -> str:
    return shorten(short_name(dimension), LONGEST_NAME)


def _off(broker: BrokerId, key: str, facts: _Facts, layout: Layout) -> Cell:
    """The largest deviation, and on wide terminals the largest one after the plan."""
    if not key:
        return cell("-", Role.MUTED)
    tolerance = facts.goals.tolerance_of(key.partition("@")[0]) or 1.0
    now = facts.off[key][broker]
    text, role = marked(now, tolerance)
    shown = (Span(f"{_short(key)} "), Span(text, role))
    change = facts.changes.get(broker)
    if change is None or not change.deviation_after or not layout.after:
        return shown
    left = max(change.deviation_after, key=lambda name: abs(change.deviation_after[name]))
    after = marked(change.deviation_after[left], tolerance_of(facts.goals, left))
    # What is worst after the plan need not be what is worst now.
    name = "" if left == key else f"{_short(left)} "
    return (*shown, Span(f" → {name}"), Span(*after))


def _counts(snapshot: Snapshot | None) -> dict[BrokerId, Count]:
    if snapshot is None:
        return {}
    columns = snapshot.partitions
    replicas, leaders = _counter(columns.replica_broker), _counter(columns.leader)
    return {b.id: (replicas[b.id], leaders[b.id]) for b in snapshot.header.brokers}


def _counter(brokers: Ints) -> Counter[int]:
    ids, counts = np.unique(brokers, return_counts=True)
    return Counter(dict(zip(ids.tolist(), counts.tolist(), strict=True)))
