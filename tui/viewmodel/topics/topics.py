"""The table of topics: load, skew, and what excludes them from plans."""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.snapshot.snapshot import Floats, Ints, Resource, Snapshot
from model.snapshot.topic_skew import TopicSkews, topic_skews
from model.units import count_text, short_text
from tui.viewmodel.cells import Cell, Column, Role, Row, Table, cell, right, shorten_middle
from tui.viewmodel.memoize import memoized, memoized_while
from tui.viewmodel.plan.cooldowns import cooldown_counts
from tui.viewmodel.sort_filter import Wish, marked, no_match

ROWS_SHOWN = 500
"""Rows of the table; further ones are only counted."""
ROOMY = 100
"""Width from which the table has all of its columns."""
WITH_SPREAD = 73
"""Width from which all of CMAK's figures are displayed."""
LEAST_NAME = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Figures:
    """The figures of all topics, (topics,) each."""

    skews: TopicSkews
    net_in: Floats
    """Bytes/s from producers; unknown loads count as 0."""
    net_out: Floats
    size: Floats
    """Bytes of all partitions' logs, one replica each."""


@memoized
def _figures(snapshot: Snapshot) -> _Figures:
    columns, topics = snapshot.partitions, len(snapshot.header.topics)

    def sums(values: Floats) -> Floats:
        summed = np.bincount(columns.topic, np.nan_to_num(values), topics)
        return summed.astype(np.float64, copy=False)

    def load(resource: Resource) -> Floats:
        if resource not in snapshot.header.resources:
            return np.zeros(topics)
        return sums(columns.loads[:, snapshot.header.resources.index(resource)])

    return _Figures(
        skews=topic_skews(snapshot),
        net_in=load(Resource.NET_IN),
        net_out=load(Resource.NET_OUT),
        size=sums(np.maximum(0, columns.size_bytes).astype(np.float64)),
    )


@memoized_while(lambda view, *others: (view.snapshot, view.at_ms, *others))
def topic_table(view: LoopView, goals: Goals, width: int, wish: Wish) -> Table:
    """One row per topic, by name; at most 500 of those that match."""
    columns = _columns(width)
    snapshot = view.snapshot
    if snapshot is None or not snapshot.header.topics:
        return Table(columns=columns, rows=(), why_empty=_why_empty(view))
    order = _order(snapshot, wish)
    shown = order[:ROWS_SHOWN]
    cooling = cooldown_counts(snapshot, goals, view.at_ms)
    rows = tuple(_row(snapshot, goals, cooling, at, columns) for at in shown.tolist())
    return Table(
        columns=marked(columns, wish),
        rows=rows,
        why_empty=no_match(wish),
        note=note(len(shown), len(order), len(snapshot.header.topics), "topic"),
    )


def note(shown: int, matching: int, known: int, what: str) -> str:
    """Describe what is not displayed: `the first 500 of 812 topics; ...`."""
    if shown < matching:
        first = f"the first {shown:,} of {count_text(matching, what)}"
        return f"{first}; filter or sort to see others"
    return f"{matching:,} of {count_text(known, what)}" if matching < known else ""


def _why_empty(view: LoopView) -> str:
    if view.snapshot is None:
        return "No topics yet; loads are still being measured."
    return "The cluster has no topics. New topics appear here."


@memoized
def _order(snapshot: Snapshot, wish: Wish) -> Ints:
    """Positions of the topics that match the filter, in sort order."""
    topics = snapshot.header.topics
    keeps = (at for at, t in enumerate(topics) if wish.filter.keeps(t.name))
    order = np.fromiter(keeps, np.int64)
    values = _values(_figures(snapshot)).get(wish.sort)
    if values is not None:
        by = values[order]
        order = order[np.argsort(-by if wish.down else by, kind="stable")]
    elif wish.sort == "topic" and wish.down:
        order = order[::-1]
    return order


def _values(figures: _Figures) -> dict[str, Floats]:
    skews = figures.skews
    return {
        "partitions": skews.partitions.astype(np.float64),
        "in": figures.net_in,
        "out": figures.net_out,
        "size": figures.size,
        "skewed": np.maximum(skews.brokers_skewed, skews.leaders_skewed),
        "spread": skews.spread,
        "each": (skews.most - skews.optimum_most).astype(np.float64),
        "preferred": skews.preferred_leaders,
    }


def _columns(width: int) -> tuple[Column, ...]:
    roomy = width >= ROOMY
    others = [
        Column("partitions", "parts", 7),
        Column("in", "in B/s", 7),
        Column("out", "out B/s", 8),
        *([Column("size", "size B", 7)] if roomy else []),
        Column("skewed", "skew b/l", 10),
        *([Column("spread", "spread", 7)] if width >= WITH_SPREAD else []),
        Column("each", "per broker", 14),
        Column("preferred", "pref", 6),
        *([Column("note", "", 16)] if roomy else []),
    ]
    left = width - sum(c.width for c in others)
    return (Column("topic", "topic", max(LEAST_NAME, left)), *others)


def _row(
    snapshot: Snapshot, goals: Goals, cooling: Counter[str], at: int, columns: tuple[Column, ...]
) -> Row:
    topic, figures = snapshot.header.topics[at], _figures(snapshot)
    skews = figures.skews
    words = {
        "partitions": cell(f"{skews.partitions[at]:,}"),
        "in": cell(short_text(figures.net_in[at])),
        "out": cell(short_text(figures.net_out[at])),
        "size": cell(short_text(figures.size[at])),
        "skewed": _skewed(skews, at),
        "spread": cell(f"{skews.spread[at]:.0%}"),
        "each": _each(skews, at),
        "preferred": _preferred(skews, at),
        "note": _note(goals, topic.name, internal=topic.internal, cooling=cooling),
    }
    name = cell(shorten_middle(topic.name, columns[0].width - 1), Role.STRONG)
    cells = (_to_the_right(words[c.key], c) for c in columns[1:])
    return Row(key=topic.name, cells=(name, *cells))


def _to_the_right(words: Cell, column: Column) -> Cell:
    if column.key in ("note", "each"):
        return words
    return right(words[0].text, column.width, words[0].role)


def _skewed(skews: TopicSkews, at: int) -> Cell:
    brokers, leaders = skews.brokers_skewed[at], skews.leaders_skewed[at]
    role = Role.UNDER if brokers or leaders else Role.GOOD
    return cell(f"{brokers:.0%}/{leaders:.0%}", role)


def _each(skews: TopicSkews, at: int) -> Cell:
    """`!0-8 of 2-3`: fewest and most on a broker, and the most even spread."""
    low, high = skews.optimum_least[at], skews.optimum_most[at]
    even = low <= skews.least[at] and skews.most[at] <= high
    found = f"{skews.least[at]}-{skews.most[at]}"
    best = f"{low}-{high}" if low != high else f"{high}"
    role, marker = (Role.GOOD, " ") if even else (Role.UNDER, "!")
    return cell(f"{marker}{found} of {best}", role)


def _preferred(skews: TopicSkews, at: int) -> Cell:
    share = skews.preferred_leaders[at]
    return cell(f"{int(100 * share)}%", Role.GOOD if share == 1 else Role.UNDER)


def _note(goals: Goals, name: str, *, internal: bool, cooling: Counter[str]) -> Cell:
    found = ["excluded"] if goals.excludes(name) else []
    found += ["internal"] if internal else []
    found += [f"{cooling[name]} in cooldown"] if cooling[name] else []
    return cell(" " + ", ".join(found), Role.MUTED)
