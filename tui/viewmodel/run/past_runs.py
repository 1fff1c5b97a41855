"""Previous runs: what was planned and what was achieved."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from executor.journal.run_history import PastRun
from executor.run.run_outcome import recounted
from model.run import BrokerBalance, MoveState, RunState
from model.units import bytes_text, seconds_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.cells import Cell, Column, Role, Row, Table, cell, right, shorten
from tui.viewmodel.memoize import memoized
from tui.viewmodel.run.progress import bytes_copied
from tui.viewmodel.run.run import RUN_ROLES, RUN_TEXT
from tui.viewmodel.sort_filter import Wish, arranged

ROOMY = 100
WITH_LEVEL = 72
"""Width from which deviations, and who approved, are shown."""
TIME = 12
"""Width of a duration from a second to days: `59 min 59 s`."""
LEAST_BY = 8
UNDOES = re.compile("what run ([^ ]+) had moved")
"""The mark of a rollback plan (module `executor.run.rollback_plan`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One run, and what it achieved."""

    past: PastRun
    balance: tuple[BrokerBalance, ...]
    undone: bool = False
    """Whether a later run rolled it back."""


def listed(runs: Sequence[PastRun]) -> tuple[Listed, ...]:
    """Each run with what it achieved, computed from its journal."""
    undone = {undoes(run) for run in runs if run.state is RunState.DONE}
    return tuple(
        Listed(past=run, balance=recounted(run.plan, run.moves), undone=run.run_id in undone)
        for run in runs
    )


def undoes(run: PastRun) -> str | None:
    """The id of the run that this run rolls back, if any."""
    found = UNDOES.fullmatch(run.plan.limited_by)
    return found[1] if found else None


def history_table(runs: Sequence[Listed], why_empty: str, width: int, wish: Wish) -> Table:
    """The table of runs, newest first."""
    columns, rows = _columns(width), _rows(runs, width)
    return arranged(Table(columns=columns, rows=rows, why_empty=why_empty), wish)


@memoized
def _rows(runs: Sequence[Listed], width: int) -> tuple[Row, ...]:
    columns = _columns(width)
    return tuple(_row(run, columns) for run in runs)


def why_no_runs(moment: Moment, *, read: bool) -> str:
    """Explain why no runs are listed, and what will change that."""
    if moment.view.snapshot is None:
        return "No runs yet; waiting for the cluster to answer."
    if not read:
        return "Reading the journals."
    return "No run of this cluster is recorded here. Approve a plan to start one."


def _columns(width: int) -> tuple[Column, ...]:
    first, by = Column("started", "started UTC", 20), "approved by"
    middle = [
        Column("state", "state", 14),
        Column("moves", "   moves", 9),
        Column("copied", "  copied", 10),
        Column("level", "deviation: planned, achieved", 28),
        Column("time", "      took", TIME),
        Column("hash", "plan", 13),
    ]
    if width < ROOMY:
        first, by = Column("started", "started UTC", 17), "by"
        middle = [
            Column("state", "state", 14),
            Column("moves", "  moves", 8),
            *([Column("level", "planned, achieved", 18)] if width >= WITH_LEVEL else []),
            Column("time", "      took", TIME),
        ]
    if width < WITH_LEVEL:
        return (first, *middle)
    left = width - first.width - sum(c.width for c in middle)
    return (first, *middle, Column("by", by, max(LEAST_BY, left)))


def _row(run: Listed, columns: tuple[Column, ...]) -> Row:
    past, width = run.past, {c.key: c.width for c in columns}
    done, total = len(past.among(MoveState.DONE)), len(past.moves)
    took_s = past.duration_s
    is_roomy = "hash" in width
    by = past.by or "unknown"
    shown_by = shorten(by, width.get("by", LEAST_BY))
    cells: dict[str, Cell] = {
        "started": cell(_time(past.started_at_ms, seconds=is_roomy)),
        "state": _state(run),
        "moves": right(f"{done}/{total}", width["moves"]),
        "level": cell(_balance(run, roomy=is_roomy)),
        "time": right(seconds_text(took_s), width["time"]),
        "by": cell(shown_by),
    }
    if is_roomy:
        cells["copied"] = right(bytes_text(bytes_copied(past.progress)), 10)
        cells["hash"] = cell(past.plan.hash[:12], Role.MUTED)
    values = {"started": past.started_at_ms, "moves": total, "time": took_s}
    values["copied"] = bytes_copied(past.progress)
    return Row(
        key=past.run_id,
        cells=tuple(cells[c.key] for c in columns),
        values=tuple(values.get(c.key, "".join(s.text for s in cells[c.key])) for c in columns),
        full=f"approved by {by}" if "by" in width and shown_by != by else "",
    )


def _time(at_ms: int, *, seconds: bool) -> str:
    at = datetime.fromtimestamp(at_ms / 1000, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}" if seconds else f"{at:%Y-%m-%d %H:%M}"


def _state(run: Listed) -> Cell:
    if run.undone:
        return cell("rolled back", Role.UNDER)
    word = RUN_TEXT.get(run.past.state, run.past.state.value)
    if undoes(run.past):
        word = "rollback" if run.past.state is RunState.DONE else f"rollback {word}"
    return cell(word, RUN_ROLES.get(run.past.state, Role.PLAIN))


def _balance(run: Listed, *, roomy: bool) -> str:
    """The largest deviation, in the dimension where it was largest before."""
    found = [
        (abs(of.deviation_before[dimension]), dimension)
        for of in run.balance
        for dimension in of.deviation_planned
        if dimension in of.deviation_before
    ]
    if not found:
        return "-"
    _, worst = max(found)
    before, planned, achieved = (
        max((abs(of[worst]) for of in deviations if worst in of), default=0.0)
        for deviations in (
            [b.deviation_before for b in run.balance],
            [b.deviation_planned for b in run.balance],
            [b.deviation_achieved for b in run.balance],
        )
    )
    if roomy:
        return f"{short_name(worst)} {before:.0%} → {planned:.0%}, {achieved:.0%}"
    return f"{before:.0%} → {planned:.0%}, {achieved:.0%}"
