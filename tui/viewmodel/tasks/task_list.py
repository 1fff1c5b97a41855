"""The list of tasks: what each does, how far it is, and who works on it."""

from typing import Final

from control.loop.view import Mode
from control.tasks.task_listing import ListedTask, TaskListing, UnreadableTask
from model.units import bytes_text
from tui.screen_state import Moment
from tui.viewmodel.brokers.bars import bar
from tui.viewmodel.cells import (
    Cell,
    Column,
    Role,
    Row,
    Span,
    Table,
    cell,
    named,
    right,
    shorten,
    shorten_line,
)
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import age_text, ticking
from tui.viewmodel.tasks.task_state import HowFar, how_far, phase_role, phase_text, waits_for

ROOMY: Final = 100
"""Width from which progress is a bar."""
SMALL: Final = 72
"""Width below which why a task waits is only below the table."""
WIDE: Final = 140
"""Width from which moves are counted."""
BAR: Final = 10
MOST: Final = 300
"""Tasks listed; open ones come first."""
LEAST_REMARK: Final = 8
UNREADABLE: Final = "unreadable:"
"""Begins the key of a file that cannot be read; no task's id has a colon."""
RESUME_KEY: Final = "tasks.resume"


def task_table(
    listing: TaskListing | None, why_empty: str, moment: Moment, width: int, wish: Wish
) -> Table:
    """The table of tasks, open ones first; files that cannot be read are above them.

    listing: None until it has been read.
    """
    words = () if listing is None else map(_word, listing.unreadable)
    columns = _columns(width, max(map(len, words), default=0))
    if listing is None:
        return Table(columns=columns, rows=(), why_empty=why_empty)
    widths = {c.key: c.width for c in columns}
    rows = (
        *(_unreadable_row(of, widths) for of in listing.unreadable),
        *(_row(of, moment, widths) for of in listing.tasks[:MOST]),
    )
    more = len(listing.tasks) - MOST
    note = f"{more:,} older tasks: plimsoll task list --all" if more > 0 else ""
    note = "\n".join(filter(None, (listing.warning, note)))
    table = Table(columns=columns, rows=rows, why_empty=why_empty, note=note)
    return arranged(table, wish)


def why_no_tasks(moment: Moment, listing: TaskListing | None, *, known: bool) -> str:
    """Explain why no tasks are listed.

    known: whether tasks can be read at all.
    """
    if moment.view.mode is Mode.RECORDING:
        return "A recording has no tasks."
    if not known:
        return "There are no tasks here."
    if moment.view.snapshot is None:
        return "No tasks yet; waiting for the cluster to answer."
    if listing is None:
        return "Reading the tasks."
    warning = f"{listing.warning}\n" if listing.warning else ""
    return (
        f"{warning}No task on the brokers of this cluster. plimsoll broker remove, demote, "
        "maintenance, add and replace request one."
    )


def resume_key(moment: Moment) -> str:
    """The key that resumes a task."""
    return moment.keys.get(RESUME_KEY, "R").partition(",")[0]


def selected_remark(listing: TaskListing | None, key: str | None, moment: Moment) -> Cell:
    """Who works on the task of this row or why it waits, in full; empty without such a row."""
    if listing is None or key is None:
        return ()
    for of in listing.tasks:
        if of.task.task_id == key:
            by = (Span("worked on by "),) if of.worker else ()
            return (*by, *_remark(of, moment))
    named = (of.reason for of in listing.unreadable if f"{UNREADABLE}{of.name}" == key)
    return cell(next(named, ""), Role.UNDER)


def _columns(width: int, phase: int) -> tuple[Column, ...]:
    """The columns; phase: the width of the longest phase."""
    wide, roomy, small = width >= WIDE, width >= ROOMY, width < SMALL
    what = 32 if wide else 20 if roomy else 16 if small else 18
    first = [
        Column("what", "task", what),
        Column("phase", "phase", max(11 if roomy else 10, phase + 1)),
        Column("share", "done" if roomy else " done", BAR + 6 if roomy else 6),
        *([Column("moves", "    moves", 11)] if wide else []),
        Column("bytes", "bytes left", 11),
        Column("eta", "time left", 11 if roomy else 10),
        *([] if small else [Column("since", "in phase", 9)]),
    ]
    if small:
        return tuple(first)
    left = width - sum(c.width for c in first)
    return (*first, Column("remark", "worked on by, or waits for" if roomy else "by, or why", left))


def _row(of: ListedTask, moment: Moment, widths: dict[str, int]) -> Row:
    task, far = of.task, how_far(of, moment)
    since_s = max(0.0, (moment.now_ms - task.phases[-1].at_ms) / 1000)
    what, full = named(task.words(), widths["what"] - 1)
    cells: dict[str, Cell] = {
        "what": what,
        "phase": cell(phase_text(task), phase_role(task)),
        "share": _share(far, widths["share"], drawn=widths["share"] > BAR),
        "moves": right("" if far is None else f"{far.moves_done}/{far.moves}", 11),
        "bytes": right(_left_text(far), widths["bytes"]),
        "eta": right(_eta(far), widths["eta"]),
        "since": right(age_text(since_s), widths.get("since", 9)),
        "remark": shorten_line(_remark(of, moment), widths.get("remark", LEAST_REMARK)),
    }
    left = None if far is None else far.bytes_left
    values: dict[str, float | str] = {
        "share": -1.0 if far is None else far.share,
        "moves": 0 if far is None else far.moves,
        "bytes": left or 0,
        "eta": (far.seconds_left or 0.0) if far is not None else 0.0,
        "since": since_s,
    }
    return Row(
        key=task.task_id,
        cells=tuple(cells[key] for key in widths),
        values=tuple(values.get(key, "".join(s.text for s in cells[key])) for key in widths),
        full=full,
    )


def _remark(of: ListedTask, moment: Moment) -> Cell:
    """Who works on a task, else why it waits, else the note of its phase."""
    if of.worker:
        return cell(of.worker)
    waits = waits_for(of, resume_key(moment))
    return cell(waits, Role.UNDER) if waits else cell(of.task.note, Role.MUTED)


def _share(far: HowFar | None, width: int, *, drawn: bool) -> Cell:
    if far is None:
        return right("", width)
    percent = f"{int(100 * far.share)}%"
    if not drawn:
        return right(percent, width)
    return (*bar(far.share, BAR, Role.GOOD), Span(percent.rjust(width - 1 - BAR)))


def _left_text(far: HowFar | None) -> str:
    if far is None:
        return ""
    return "unknown" if far.bytes_left is None else bytes_text(far.bytes_left)


def _eta(far: HowFar | None) -> str:
    return "" if far is None or far.seconds_left is None else ticking(far.seconds_left)


def _unreadable_row(of: UnreadableTask, widths: dict[str, int]) -> Row:
    what, full = named(of.name, widths["what"] - 1)
    cells: dict[str, Cell] = {
        "what": what,
        "phase": cell(_word(of), Role.ALARM),
        "remark": cell(shorten(of.reason, widths.get("remark", LEAST_REMARK)), Role.UNDER),
    }
    return Row(
        key=f"{UNREADABLE}{of.name}",
        cells=tuple(cells.get(key, cell("")) for key in widths),
        full=full,
    )


def _word(of: UnreadableTask) -> str:
    return "newer" if of.newer else "unreadable"
