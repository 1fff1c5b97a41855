"""The table of moves, and one move in full."""

from collections.abc import Iterator
from textwrap import wrap

from model.evaluate import prices_of
from model.ids import BrokerId
from model.plan.plan import BrokerChange, Move, Plan
from model.units import bytes_text, count_text, deviation_text
from tui.viewmodel.brokers.gauges import SHORT
from tui.viewmodel.cells import (
    Cell,
    Column,
    Role,
    Row,
    Table,
    cell,
    right,
    shorten_middle,
    shorten_words,
)
from tui.viewmodel.plan.shown_plan import Shown
from tui.viewmodel.plan.wording import MOVES_SHOWN, REASON_LEAST, from_to

COLUMNS = (
    Column("brokers", "from → to", 12),
    Column("bytes", "  to copy", 10),
    Column("leader", "leader", 9),
    Column("gain", "   gain", 8),
)
"""The columns between partition and reason."""


def moves_table(shown: Shown, width: int) -> Table:
    """The moves, largest gain first."""
    moves = shown.plan.moves if shown.plan is not None else ()
    columns = _columns(moves[:MOVES_SHOWN], width)
    more = len(moves) - MOVES_SHOWN
    return Table(
        columns=columns,
        rows=tuple(_row(m, columns) for m in moves[:MOVES_SHOWN]),
        why_empty=shown.why_none,
        note=f"and {count_text(more, 'more move')}" if more > 0 else "",
    )


def _columns(moves: tuple[Move, ...], width: int) -> tuple[Column, ...]:
    """Fit the brokers, give partitions up to a third, and the reason the rest.

    A truncated list of brokers could be mistaken for another one.
    """
    longest = max((len(str(m.id)) for m in moves), default=0)
    name_width = max(len("partition"), longest) + 1
    first = Column("partition", "partition", min(name_width, max(16, width // 3)))
    needed = {
        "brokers": max((len(from_to(m)) for m in moves), default=0) + 1,
        "leader": max((len(_leader(m)) for m in moves), default=0) + 1,
    }
    middle = [c._replace(width=max(c.width, needed.get(c.key, 0))) for c in COLUMNS]
    left = width - first.width - sum(c.width for c in middle)
    return (first, *middle, Column("reason", "reason", max(REASON_LEAST, left)))


def _row(move: Move, columns: tuple[Column, ...]) -> Row:
    partition, _, size, _, gain, reason = columns
    return Row(
        key=str(move.id),
        cells=(
            cell(shorten_middle(str(move.id), partition.width - 1)),
            cell(from_to(move)),
            right(bytes_text(move.bytes_to_copy), size.width),
            cell(_leader(move)),
            right(f"{move.gain:.3g}", gain.width),
            cell(shorten_words(move.reason_text, reason.width)),
        ),
        values=(
            str(move.id),
            from_to(move),
            -1 if move.bytes_to_copy is None else move.bytes_to_copy,
            _leader(move),
            move.gain,
            move.reason_text,
        ),
    )


def _leader(move: Move) -> str:
    if move.leader_before == move.leader_after:
        return "same"
    return f"{move.leader_before} → {move.leader_after}"


# ---- one move


def move_lines(move: Move | None, shown: Shown, width: int) -> tuple[Cell, ...]:
    """The selected move: its reason, and the effect of removing it."""
    if move is None:
        words = "Select a move to see its reason."
        return (cell(words, Role.MUTED),)
    lines = [*wrap(move.reason_text, width), f"gain {move.gain:.4g}; enter shows its cost"]
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
        f"{broker:7}{SHORT.get(goal, goal):9}{now:>9}{after:>9}{less:>12}"
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
    return deviation_text(deviation, 1)
