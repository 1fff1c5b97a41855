"""The table of topics: load, skew, and what excludes them from plans."""

from collections import Counter
from typing import Final

import numpy as np

from control.loop.view import LoopView
from control.render.text import under_replicated_text
from model.goals.goals import Goals
from model.snapshot.snapshot import Floats, Ints, Snapshot, Topic
from model.snapshot.topic_report import TopicReport, topic_report, under_replicated
from model.snapshot.topic_skew import TopicSkews
from model.units import short_text
from tui.viewmodel.cells import Cell, Column, LazyRows, Role, Row, Span, Table, cell, named, right
from tui.viewmodel.memoize import memoized, memoized_while
from tui.viewmodel.plan.cooldowns import cooldown_counts
from tui.viewmodel.sort_filter import Wish, left_out, marked, no_match

ROWS_SHOWN = 500
"""Rows of the table; further ones are only counted."""
ROOMY = 96
"""Width from which all loads are shown."""
WIDE = 132
"""Width from which all counts are shown, and names are written out."""
WITH_NOTE = 112
"""Width from which a note is shown; below, partitions without a leader mark their count."""
WITH_LOADS = 72
"""Width from which brokers, and the replicas on each, are shown."""
LEAST_NAME = 12
MOST_NAME = 30
"""Width of the names that replicas make room for."""
OMITTED: Final = ((), ("replicas",), ("each",), ("replicas", "each"))
"""Columns left out where names need their room; the first choice that suffices."""


_under_replicated = memoized(under_replicated)


@memoized
def _figures(snapshot: Snapshot) -> TopicReport:
    return topic_report(snapshot)


@memoized
def _longest(topics: tuple[Topic, ...]) -> int:
    return max((len(topic.name) for topic in topics), default=0)


@memoized_while(lambda view, *others: (view.snapshot, view.replication, view.at_ms, *others))
def topic_table(view: LoopView, goals: Goals, width: int, wish: Wish) -> Table:
    """One row per topic, by name; at most 500 of those that match."""
    snapshot = view.snapshot
    topics = snapshot.header.topics if snapshot is not None else ()
    columns = _columns(width, _longest(topics))
    if snapshot is None or not snapshot.header.topics:
        return Table(columns=columns, rows=(), why_empty=_why_empty(view))
    behind = _under_replicated(snapshot, view.replication)
    order = _order(snapshot, behind, wish)
    shown = order[:ROWS_SHOWN].tolist()
    cooling = cooldown_counts(snapshot, goals, view.at_ms)
    names = [snapshot.header.topics[at].name for at in shown]
    return Table(
        columns=marked(columns, wish),
        rows=LazyRows(names, lambda at: _row(snapshot, behind, goals, cooling, shown[at], columns)),
        why_empty=no_match(wish),
        note=left_out(len(shown), len(order), len(snapshot.header.topics), "topic"),
    )


def _why_empty(view: LoopView) -> str:
    if view.snapshot is None:
        return "No topics yet; loads are still being measured."
    return "The cluster has no topics. New topics appear here."


@memoized
def _order(snapshot: Snapshot, behind: Floats | None, wish: Wish) -> Ints:
    """Positions of the topics that match the filter, in sort order."""
    topics = snapshot.header.topics
    keeps = (at for at, t in enumerate(topics) if wish.filter.keeps(t.name))
    order = np.fromiter(keeps, np.int64)
    values = _values(snapshot, behind).get(wish.sort)
    if values is not None:
        by = values[order]
        order = order[np.argsort(-by if wish.down else by, kind="stable")]
    elif wish.sort == "topic" and wish.down:
        order = order[::-1]
    return order


def _values(snapshot: Snapshot, behind: Floats | None) -> dict[str, Floats]:
    figures = _figures(snapshot)
    skews = figures.skews
    return {
        **({"under": behind} if behind is not None else {}),
        "partitions": skews.partitions.astype(np.float64),
        "in": figures.net_in,
        "out": figures.net_out,
        "size": figures.size,
        "replicas": skews.replicas.astype(np.float64),
        "brokers": skews.brokers.astype(np.float64),
        "skewed": skews.brokers_skewed,
        "leaders": skews.leaders_skewed,
        "spread": skews.spread,
        "each": (skews.most - skews.optimum_most).astype(np.float64),
        "preferred": skews.preferred_leaders,
    }


def _columns(width: int, longest: int) -> tuple[Column, ...]:
    """CMAK's figures at every width; where there is room, the others.

    longest: the letters of the longest name. Names come before replicas.
    """
    roomy, wide, loads = width >= ROOMY, width >= WIDE, width >= WITH_LOADS
    others = [
        Column("partitions", " parts", 7),
        *([Column("replicas", "   reps", 8)] if loads else []),
        *([Column("brokers", "brokers", 8)] if loads else []),
        Column("spread", "spread", 7),
        Column("skewed", " skew", 6),
        Column("leaders", "leader skew", 12) if wide else Column("leaders", " lead", 6),
        Column("under", "under-replicated", 17) if wide else Column("under", "  URP", 6),
        *([Column("each", "per broker", 16 if roomy else 15)] if loads else []),
        Column("preferred", " pref", 6),
        *([Column("in", " in B/s", 8) if roomy else Column("in", "  in", 6)] if loads else []),
        *([Column("out", "out B/s", 8)] if roomy else []),
        *([Column("size", " size B", 8)] if roomy else []),
        *([Column("note", "", 16)] if width >= WITH_NOTE else []),
    ]
    needed = max(LEAST_NAME, min(longest + 1, MOST_NAME))
    for omitted in OMITTED:
        shown = [c for c in others if c.key not in omitted]
        left = width - sum(c.width for c in shown)
        if left >= needed:
            break
    return (Column("topic", "topic", max(LEAST_NAME, left)), *shown)


def _row(
    snapshot: Snapshot,
    behind: Floats | None,
    goals: Goals,
    cooling: Counter[str],
    at: int,
    columns: tuple[Column, ...],
) -> Row:
    topic, figures = snapshot.header.topics[at], _figures(snapshot)
    skews = figures.skews
    offline = 0 if columns[-1].key == "note" else int(figures.offline[at])
    words = {
        "partitions": _partitions(int(skews.partitions[at]), offline),
        "in": cell(short_text(figures.net_in[at])),
        "out": cell(short_text(figures.net_out[at])),
        "size": cell(short_text(figures.size[at])),
        "replicas": cell(f"{skews.replicas[at]:,}"),
        "brokers": cell(f"{skews.brokers[at]:,}"),
        "skewed": _skewed(skews.brokers_skewed[at]),
        "leaders": _skewed(skews.leaders_skewed[at]),
        "under": _under(None if behind is None else float(behind[at])),
        "spread": cell(f"{skews.spread[at]:.0%}"),
        "each": _each(skews, at),
        "preferred": _preferred(skews, at),
        "note": _note(goals, topic, int(figures.offline[at]), cooling),
    }
    name, full = named(topic.name, columns[0].width - 1, Role.STRONG)
    cells = (_to_the_right(words[c.key], c) for c in columns[1:])
    return Row(key=topic.name, cells=(name, *cells), full=full)


def _to_the_right(words: Cell, column: Column) -> Cell:
    if column.key in ("note", "each"):
        return words
    return right(words[0].text, column.width, words[0].role)


def _partitions(count: int, offline: int) -> Cell:
    """The partitions; an alarm if some have no leader and no note tells so."""
    return cell(f"!{count:,}", Role.ALARM) if offline else cell(f"{count:,}")


def _skewed(share: float) -> Cell:
    return cell(f"{share:.0%}", Role.UNDER if share else Role.GOOD)


def _under(share: float | None) -> Cell:
    role = Role.MUTED if share is None else Role.OVER if share else Role.GOOD
    return cell(under_replicated_text(share), role)


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


def _note(goals: Goals, topic: Topic, offline: int, cooling: Counter[str]) -> Cell:
    name = topic.name
    found = ["excluded"] if goals.excludes(name) else []
    found += ["internal"] if topic.internal else []
    found += [f"{cooling[name]} in cooldown"] if cooling[name] else []
    words = Span(" " + ", ".join(found), Role.MUTED)
    if not offline:
        return (words,)
    return (Span(f" {offline:,} OFFLINE ", Role.ALARM), words)
