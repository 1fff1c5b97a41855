"""The table of moves, and one move in full."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from textwrap import wrap
from typing import Final, NamedTuple

from model.evaluate import prices_of
from model.ids import BrokerId, PartitionId
from model.plan.plan import BrokerChange, Move, Plan
from model.units import bytes_text, deviation_text
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.brokers.headline import close_up
from tui.viewmodel.cells import (
    Cell,
    Column,
    LazyRows,
    Role,
    Row,
    Table,
    cell,
    named,
    right,
    shorten_words,
)
from tui.viewmodel.plan.shown_plan import Shown
from tui.viewmodel.plan.wording import MOVES_SHOWN, REASON_LEAST, change_text
from tui.viewmodel.sort_filter import (
    SortKey,
    Wish,
    by_number,
    by_text,
    left_out,
    marked,
    no_match,
    selected,
)

COLUMNS = (
    Column("brokers", "change", 12),
    Column("bytes", "  to copy", 10),
    Column("gain", "share", 6),
    Column("sum", "so far", 7),
)
"""The columns between partition and reason."""
MARKS = {"+": "new", "~": "changed", "-": "removed"}
"""What has changed since the plan that was viewed before."""
NO_LONGER: Final = "no longer planned"
DEFAULT: Final = Wish()
GONE: Final = "gone "
"""Begins the key of a move that is no longer planned, or the cursor would follow it there."""
_RELIEF: Final = re.compile(r"(relieves|takes from) broker (\d+) \((\S+) .*")


def reason_of(move: Move) -> str:
    """The reason of a move, its resources in the words of the other screens: `bytes out`."""
    return close_up(move.reason_text)


def by_gain_per_byte(moves: Iterable[Move]) -> list[Move]:
    """What gains most for its bytes first; what copies nothing before the rest.

    One may stop after any of them. Moves of unknown size come last.
    """
    return sorted(moves, key=_rank)


def _rank(move: Move) -> tuple[int, float]:
    if move.bytes_to_copy is None:
        return 2, -move.gain
    if not move.bytes_to_copy:
        return 0, -move.gain
    return 1, -move.gain / move.bytes_to_copy


def mark_of(move: Move, since: Mapping[PartitionId, Move] | None) -> str:
    """`+` for a new move, `~` for a changed one; blank for an old one."""
    if since is None:
        return ""
    before = since.get(move.id)
    if before is None:
        return "+"
    same = before.replicas_after == move.replicas_after
    return "" if same and before.leader_after == move.leader_after else "~"


def removed_since(plan: Plan, since: Plan | None) -> list[Move]:
    """The moves of an earlier plan whose partitions this plan does not move."""
    kept = {move.id for move in plan.moves}
    return [move for move in since.moves if move.id not in kept] if since else []


def changes_text(plan: Plan, since: Plan | None) -> str:
    """`2 new, 1 changed, 3 removed`; empty if nothing has changed."""
    if since is None or since.hash == plan.hash:
        return ""
    before = {move.id: move for move in since.moves}
    counts = Counter(mark_of(move, before) for move in plan.moves)
    counts["-"] = len(removed_since(plan, since))
    found = [f"{counts[m]:,} {word}" for m, word in MARKS.items() if counts[m]]
    return f"since the plan seen before: {', '.join(found)}" if found else ""


def moves_table(shown: Shown, width: int, since: Plan | None = None, wish: Wish = DEFAULT) -> Table:
    """The moves by gain per byte, with the share of the gain reached so far.

    since: the plan that was viewed before. What has changed is marked and comes first; moves
    that are no longer planned come last, however many they are. Rows are made of the first
    `MOVES_SHOWN` that match the filter, in sort order.
    """
    plan = shown.plan
    moves = by_gain_per_byte(plan.moves) if plan is not None else []
    shares = list(accumulate(max(0.0, move.gain) for move in moves))
    lost = removed_since(plan, since) if plan is not None else []
    before = {m.id: m for m in since.moves} if since is not None else None
    total = shares[-1] if shares else 0.0
    planned = [
        _Planned(mark_of(move, before), move, _Gain(move.gain, so_far, total))
        for move, so_far in zip(moves, shares, strict=True)
    ]
    planned.sort(key=lambda one: not one.mark)
    planned += [_Planned("-", move, None) for move in lost]
    found = selected(planned, wish, words=_words, keys=KEYS)
    drawn = found[:MOVES_SHOWN]
    columns = _columns([one.move for one in drawn], width, marks=since is not None)
    return Table(
        columns=marked(columns, wish),
        rows=LazyRows([_key(one) for one in drawn], lambda at: _row(drawn[at], columns)),
        why_empty=no_match(wish) if planned else shown.why_none,
        note=left_out(len(drawn), len(found), len(planned), "move"),
    )


def brief_reason(move: Move, width: int) -> str:
    """The reason as far as it fits: all, its first half, `relieves broker 1 (out)`, and less."""
    full = reason_of(move)
    forms = [full, full.partition(";")[0]]
    if relief := _RELIEF.fullmatch(move.reason):
        verb, broker, key = relief.groups()
        goal = short_name(key)
        forms += [f"{verb} broker {broker} ({goal})", f"{verb} {broker} ({goal})"]
        forms += [f"{verb} {broker}"]
    return next((form for form in forms if len(form) <= width), shorten_words(forms[-1], width))


class _Gain(NamedTuple):
    """The gain of a move, of all moves up to it, and of the plan."""

    own: float
    so_far: float
    total: float

    def share(self, of: float) -> str:
        """As a percentage, without the sign of a loss that rounds to zero."""
        return f"{of / self.total:.0%}".replace("-0%", "0%") if self.total > 0 else "-"


class _Planned(NamedTuple):
    """A move of the plan, as it is listed."""

    mark: str
    move: Move
    gain: _Gain | None
    """None for a move that is no longer planned."""


def _words(one: _Planned) -> str:
    """What a filter matches."""
    reason = reason_of(one.move) if one.gain else NO_LONGER
    return f"{one.mark} {one.move.id} {change_text(one.move)} {reason}"


KEYS: Final[Mapping[str, SortKey[_Planned]]] = {
    "mark": by_text(lambda one: one.mark),
    "partition": by_text(lambda one: f"{one.move.topic}-{one.move.partition:09}"),
    "brokers": by_text(lambda one: change_text(one.move)),
    "bytes": by_number(lambda one: one.move.bytes_to_copy),
    "gain": by_number(lambda one: one.gain.own if one.gain else None),
    "sum": by_number(lambda one: one.gain.so_far if one.gain else None),
    "reason": by_text(lambda one: reason_of(one.move)),
}
"""What each column is sorted by."""


def _columns(moves: Sequence[Move], width: int, *, marks: bool) -> tuple[Column, ...]:
    """Fit the changes, give partitions up to a third, and the reason the rest.

    A truncated list of brokers could be mistaken for another one.
    """
    longest = max((len(str(m.id)) for m in moves), default=0)
    name_width = max(len("partition"), longest) + 1
    mark = (Column("mark", "", 2),) if marks else ()
    first = Column("partition", "partition", min(name_width, max(16, width // 3)))
    needed = max((len(change_text(m)) for m in moves), default=0) + 1
    change, *others = COLUMNS
    middle = [change._replace(width=max(change.width, needed)), *others]
    left = width - first.width - 2 * marks - sum(c.width for c in middle)
    if left >= REASON_LEAST:
        return (*mark, first, *middle, Column("reason", "reason", left))
    # Enter shows the reason; a table that has to be scrolled hides more than that.
    return (*mark, first, *(middle if left >= 0 else middle[:-1]))


def _row(one: _Planned, columns: tuple[Column, ...]) -> Row:
    mark, move, gain = one
    width = {column.key: column.width for column in columns}
    role = Role.PLAIN if gain else Role.MUTED
    reason = brief_reason(move, width.get("reason", 0)) if gain else NO_LONGER
    partition, full = named(str(move.id), width["partition"] - 1, role)
    cells = {
        "mark": cell(mark, Role.STRONG),
        "partition": partition,
        "brokers": cell(change_text(move), role),
        "bytes": right(bytes_text(move.bytes_to_copy), width["bytes"], role),
        "gain": right(gain.share(gain.own) if gain else "", width["gain"]),
        "sum": right(gain.share(gain.so_far) if gain else "", width.get("sum", 0)),
        "reason": cell(shorten_words(reason, width.get("reason", 0)), role),
    }
    return Row(key=_key(one), cells=tuple(cells[column.key] for column in columns), full=full)


def _key(one: _Planned) -> str:
    return f"{'' if one.gain else GONE}{one.move.id}"


# ---- one move


def move_lines(move: Move | None, shown: Shown, width: int) -> tuple[Cell, ...]:
    """The selected move: its reason, and the effect of removing it."""
    if move is None:
        words = "Select a move to see its reason."
        return (cell(words, Role.MUTED),)
    lines = [*wrap(reason_of(move), width), f"gain {move.gain:.4g}; enter shows its cost"]
    lost = removal_table(move, shown).splitlines()
    return tuple(cell(line) for line in [*lines, *([""] if lost else []), *lost])


def cost_line(move: Move, shown: Shown) -> str:
    """A line on the move's cost; empty if the plan is for another placement."""
    plan, snapshot = shown.plan, shown.snapshot
    if plan is None or snapshot is None:
        return ""
    if snapshot.fingerprint != plan.snapshot_fingerprint:
        return ""
    price = prices_of(snapshot, plan.goals, (move,))
    words = f"{price:.4g} of the imbalance score" if price else "none, a rule forces it"
    return f"\ncost      {words}"


def removal_table(move: Move, shown: Shown) -> str:
    """Deviations of the move's brokers with the move and without it."""
    found = [] if shown.plan is None else list(without(move, shown.plan))
    if not found:
        return ""
    rows = [("broker", "goal", "now", "after", "without"), *found]
    return "\n".join(
        f"{broker:7}{short_name(goal):9}{now:>9}{after:>9}{less:>12}"
        for broker, goal, now, after, less in rows
    )


def without(move: Move, plan: Plan) -> Iterator[tuple[str, str, str, str, str]]:
    """Broker, goal, and its deviation now, after the plan, and without this move.

    Only brokers whose load the move changes.
    """
    changes = {b.id: b for b in plan.brokers}
    for broker in sorted({*move.replicas_before, *move.replicas_after}):
        change = changes.get(broker)
        for key in plan.levels:
            lost = _share(move, broker, key, after=True)
            lost -= _share(move, broker, key, after=False)
            if change is not None and lost and key in change.deviation_after:
                less = change.deviation_after[key] - lost * _slope(change, key)
                now, then = change.deviation_before[key], change.deviation_after[key]
                yield str(broker), key, _percent(now), _percent(then), _percent(less)


def _share(move: Move, broker: BrokerId, key: str, *, after: bool) -> float:
    """The load that the partition puts on a broker."""
    holders = move.replicas_after if after else move.replicas_before
    leader = move.leader_after if after else move.leader_before
    if broker not in holders:
        return 0.0
    loads = move.leader_load if broker == leader else move.follower_load
    return loads.get(key, 0.0)


def _slope(change: BrokerChange, key: str) -> float:
    """Deviation per unit of load."""
    pairs = (
        (change.before.get(key, 0.0), change.deviation_before[key]),
        (change.after.get(key, 0.0), change.deviation_after[key]),
    )
    load, deviation = max(pairs)
    return (1 + deviation) / load if load > 0 else 0.0


def _percent(deviation: float) -> str:
    return close_up(deviation_text(deviation, 1))
