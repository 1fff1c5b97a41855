"""One broker in detail: its recent loads and its heaviest replicas."""

import numpy as np

from model.dimensions import Dimension, replica_loads
from model.ids import BrokerId
from model.snapshot.broker_troubles import trouble_of
from model.snapshot.snapshot import Floats, Ints, Resource, Snapshot
from model.units import seconds_text, short_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.bars import sparkline
from tui.viewmodel.brokers.broker_troubles import brokers_of
from tui.viewmodel.brokers.brokers import mark
from tui.viewmodel.brokers.gauges import SHORT, Gauge, gauges, resources_of
from tui.viewmodel.brokers.headline import amount, percent
from tui.viewmodel.cells import Cell, Role, Span, cell, shorten, shorten_middle

SIDE_BY_SIDE = 64
"""Width from which a sparkline is beside its figures."""
FIGURES = 46
ROLE_WIDTH = 8
LOAD_WIDTH = 7
LEAST_NAME = 12


def detail_title(moment: Moment, broker: BrokerId) -> str:
    """`Broker 1, rack a, alive`."""
    known = next((b for b in brokers_of(moment.view) if b.id == broker), None)
    if known is None:
        return f"Broker {broker}"
    trouble = trouble_of(known)
    state = known.state if trouble is None else trouble.lower()
    return f"Broker {broker}, rack {known.rack or '-'}, {state}"


def span_text(moment: Moment) -> str:
    """The time span of the sparklines."""
    span_s = moment.trail.span_s
    return f"last {seconds_text(span_s)}" if span_s else ""


def broker_detail(moment: Moment, broker: BrokerId, width: int, height: int) -> tuple[Cell, ...]:
    """Loads with their history, then as many replicas as fit."""
    view = moment.view
    known = gauges(view, moment.goals)
    lines: list[Cell] = []
    for resource in resources_of(view, moment.goals):
        gauge = known.get((broker, resource))
        if gauge is not None:
            history = moment.trail.of(broker, resource)
            lines += _history(resource, gauge, history, width)
    if view.snapshot is None or broker not in view.snapshot.broker:
        return (cell("This broker's load is not known yet.", Role.MUTED),)
    count = height - len(lines) - 1
    if count > 0:
        lines += _replicas(view.snapshot, broker, width, count)
    return tuple(lines[:height])


def _history(
    resource: Resource, gauge: Gauge, history: list[float | None], width: int
) -> list[Cell]:
    figures, share = _figures(resource, gauge), _share(resource, gauge)
    role, _ = mark(gauge)
    if width < SIDE_BY_SIDE:
        drawn = sparkline(history, gauge.scale, width - len(share))
        return [figures, (Span(share), Span(drawn, role))]
    used = sum(len(span.text) for span in figures) + len(share) + 1
    drawn = sparkline(history, gauge.scale, width - max(FIGURES, used))
    blank = " " * (width - used - len(drawn))
    return [(*figures, Span(f" {share}{blank}"), Span(drawn, role))]


def _figures(resource: Resource, gauge: Gauge) -> Cell:
    """`in !5.00 MB/s +200 % → -1 %`."""
    role, marker = mark(gauge)
    load = Span(f"{marker}{amount(resource, gauge.load)}", role)
    spans = [Span(f"{SHORT[resource]:<5}", Role.STRONG), load]
    if gauge.deviation is not None:
        spans.append(Span(f" {percent(gauge.deviation)}", role))
        if gauge.deviation_after is not None:
            spans.append(Span(f" → {percent(gauge.deviation_after)}"))
    return tuple(spans)


def _share(resource: Resource, gauge: Gauge) -> str:
    """`50 % of 10.0 MB/s` if the capacity is known."""
    if not gauge.capacity:
        return ""
    share = gauge.load / gauge.capacity
    return f"{share:.0%} of {amount(resource, gauge.capacity)} "


def _replicas(snapshot: Snapshot, broker: BrokerId, width: int, count: int) -> list[Cell]:
    held = rows_of(snapshot, broker)
    loads = loads_of(snapshot, broker, held)
    shown = [r for r in SHORT if r in loads]
    shown = shown[: max(0, (width - LEAST_NAME - ROLE_WIDTH) // LOAD_WIDTH)]
    name_width = width - ROLE_WIDTH - LOAD_WIDTH * len(shown)
    head = shorten(f"heaviest of {len(held):,} replicas", name_width + ROLE_WIDTH)
    labels = "".join(f"{SHORT[r][: LOAD_WIDTH - 1]:>{LOAD_WIDTH}}" for r in shown)
    lines = [cell(head.ljust(name_width + ROLE_WIDTH) + labels, Role.STRONG)]
    for at in heaviest(loads, count):
        row = int(held[at])
        leads = int(snapshot.partitions.leader[row]) == broker
        name = shorten_middle(str(snapshot.id(row)), name_width - 1)
        figures = "".join(f"{short_text(loads[r][at]):>{LOAD_WIDTH}}" for r in shown)
        kind = Span(f"{'leads' if leads else 'follows':<{ROLE_WIDTH}}", Role.MUTED)
        lines.append((Span(name.ljust(name_width)), kind, Span(figures)))
    return lines


def rows_of(snapshot: Snapshot, broker: BrokerId) -> Ints:
    """(replicas,) the row of each replica on a broker."""
    columns = snapshot.partitions
    at = np.flatnonzero(columns.replica_broker == broker)
    return np.searchsorted(columns.replica_start, at, side="right") - 1


def loads_of(snapshot: Snapshot, broker: BrokerId, held: Ints) -> dict[str, Floats]:
    """(replicas,) by resource: the load of each replica on the broker."""
    leads = snapshot.partitions.leader[held] == broker
    found: dict[str, Floats] = {}
    for resource in snapshot.header.resources:
        lead, follow = replica_loads(snapshot, Dimension(measure=resource))
        found[resource] = np.where(leads, lead[held], follow[held])
    return found


def heaviest(loads: dict[str, Floats], count: int) -> list[int]:
    """Positions of the replicas with the largest summed shares of the broker's load."""
    shares = [load / load.sum() for load in loads.values() if load.sum() > 0]
    if not shares:
        return []
    weight = np.sum(shares, axis=0)
    first: list[int] = np.argsort(-weight, kind="stable")[:count].tolist()
    return first
