"""The partitions of one topic."""

import numpy as np

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import Floats, Ints, Resource, Snapshot
from model.units import short_text
from tui.viewmodel.cells import Cell, Column, LazyRows, Role, Row, Table, cell, named, right
from tui.viewmodel.log import clock_text
from tui.viewmodel.memoize import memoized
from tui.viewmodel.plan.cooldowns import cooldowns
from tui.viewmodel.plan.shown_plan import ghost
from tui.viewmodel.plan.wording import change_text
from tui.viewmodel.sort_filter import Wish, left_out, marked, no_match
from tui.viewmodel.topics.topics import ROWS_SHOWN

LEAST_REPLICAS = 12
WITH_LOADS = 76
"""Width from which loads are shown."""


def partition_table(
    view: LoopView, goals: Goals, topic: TopicName, width: int, wish: Wish
) -> Table:
    """One row per partition, by number; at most 500 of those that match."""
    columns = _columns(width)
    snapshot = view.snapshot
    rows = _rows(snapshot, topic) if snapshot is not None else np.empty(0, np.int64)
    if snapshot is None or not len(rows):
        reason = f"Topic {topic} no longer exists; escape closes this panel."
        return Table(columns=columns, rows=(), why_empty=reason)
    order = _order(snapshot, topic, wish)
    shown = order[:ROWS_SHOWN].tolist()
    notes = {
        move.partition: f"cooldown {clock_text(until_ms)}"
        for move, until_ms in cooldowns(snapshot, goals, view.at_ms)
        if move.topic == topic
    } | {number: change_text(move) for number, move in moves_of(view, topic).items()}
    return Table(
        columns=marked(columns, wish),
        rows=LazyRows(
            [str(snapshot.partitions.partition[at]) for at in shown],
            lambda at: _row(snapshot, shown[at], columns, notes),
        ),
        why_empty=no_match(wish),
        note=left_out(len(shown), len(order), len(rows), "partition"),
    )


def moves_of(view: LoopView, topic: TopicName) -> dict[int, Move]:
    """The planned moves of a topic by partition; none while a what-if is shown."""
    plan = ghost(view)
    found = plan.moves if plan is not None else ()
    return {move.partition: move for move in found if move.topic == topic}


def _columns(width: int) -> tuple[Column, ...]:
    loads = (Column("in", "in B/s", 8), Column("out", "out B/s", 8), Column("size", "size B", 8))
    others = (
        Column("leader", "leader", 12),
        *(loads if width >= WITH_LOADS else ()),
        Column("note", " move, cooldown", 18),
    )
    left = width - 10 - sum(c.width for c in others)
    replicas = Column("replicas", "replicas", max(LEAST_REPLICAS, left))
    return (Column("partition", "partition", 10), replicas, *others)


@memoized
def _rows(snapshot: Snapshot, topic: str) -> Ints:
    """The rows of a topic, which are contiguous."""
    names = [t.name for t in snapshot.header.topics]
    at = names.index(TopicName(topic)) if topic in names else -1
    start, end = np.searchsorted(snapshot.partitions.topic, [at, at + 1]).tolist()
    return np.arange(start, end)


@memoized
def _order(snapshot: Snapshot, topic: str, wish: Wish) -> Ints:
    rows = _rows(snapshot, topic)
    if wish.filter.text:
        keeps = (row for row in rows.tolist() if wish.filter.keeps(_words(snapshot, row)))
        rows = np.fromiter(keeps, np.int64)
    by = _values(snapshot, rows).get(wish.sort)
    if by is None:
        return rows
    order: Ints = rows[np.argsort(-by if wish.down else by, kind="stable")]
    return order


def _words(snapshot: Snapshot, row: int) -> str:
    """The text that a filter matches: `17 leader 2 replicas 2,3,1`."""
    columns = snapshot.partitions
    replicas = ",".join(map(str, snapshot.replicas(row)))
    number, leader = columns.partition[row], columns.leader[row]
    return f"{number} leader {leader} replicas {replicas}"


def _values(snapshot: Snapshot, rows: Ints) -> dict[str, Floats]:
    columns = snapshot.partitions
    return {
        "partition": columns.partition[rows].astype(np.float64),
        "leader": columns.leader[rows].astype(np.float64),
        "in": _load(snapshot, rows, Resource.NET_IN),
        "out": _load(snapshot, rows, Resource.NET_OUT),
        "size": columns.size_bytes[rows].astype(np.float64),
    }


def _load(snapshot: Snapshot, rows: Ints, resource: Resource) -> Floats:
    """(rows,) the leader's load; -1 if unknown."""
    if resource not in snapshot.header.resources:
        return np.full(len(rows), -1.0)
    column = snapshot.header.resources.index(resource)
    loads = snapshot.partitions.loads[rows, column]
    known: Floats = np.where(np.isnan(loads), -1.0, loads)
    return known


def _row(snapshot: Snapshot, row: int, columns: tuple[Column, ...], notes: dict[int, str]) -> Row:
    found = snapshot.partitions
    number = int(found.partition[row])
    replicas = ",".join(map(str, snapshot.replicas(row)))
    only = np.array([row])
    figures = [
        float(_load(snapshot, only, Resource.NET_IN)[0]),
        float(_load(snapshot, only, Resource.NET_OUT)[0]),
        float(found.size_bytes[row]),
    ]
    widths = {c.key: c.width for c in columns}
    note = f" {notes[number]}" if number in notes else ""
    listed, cut = named(replicas, widths["replicas"] - 1)
    loads = [right("-" if figure < 0 else short_text(figure), 8) for figure in figures]
    return Row(
        key=str(number),
        cells=(
            cell(str(number), Role.STRONG),
            listed,
            _leader(snapshot, row),
            *(loads if "in" in widths else ()),
            cell(note),
        ),
        full=f"replicas {cut}" if cut else "",
    )


def _leader(snapshot: Snapshot, row: int) -> Cell:
    leader, preferred = int(snapshot.partitions.leader[row]), snapshot.replicas(row)[0]
    if leader < 0:
        return cell("NONE", Role.ALARM)
    if leader != preferred:
        return cell(f"{leader}, not {preferred}", Role.UNDER)
    return cell(str(leader))
