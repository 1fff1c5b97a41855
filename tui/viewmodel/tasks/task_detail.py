"""One task in full: its state, its phases with their times, and its plans."""

import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from control.tasks.broker_task import BrokerTask, PhaseChange, TaskPhase, TaskPlan
from control.tasks.task_listing import ListedTask, UnreadableTask
from model.units import bytes_text, count_text, seconds_text
from tui.screen_state import Moment
from tui.viewmodel.cells import Cell, Role, Span
from tui.viewmodel.staleness import ticking
from tui.viewmodel.tasks.task_list import resume_key
from tui.viewmodel.tasks.task_state import (
    PHASE_ROLES,
    HowFar,
    how_far,
    phase_role,
    phase_text,
    waits_for,
)

LABEL: Final = 10
PHASE: Final = 10
HASH: Final = 12
"""Characters of a plan's hash, as everywhere."""


def task_lines(of: ListedTask, moment: Moment, width: int) -> tuple[Cell, ...]:
    """A task in lines of at most `width` columns."""
    return tuple(_lines(of, moment, max(width, 2 * LABEL)))


def unreadable_lines(of: UnreadableTask, width: int) -> tuple[Cell, ...]:
    """A file that cannot be read, and what to do."""
    return tuple(_labelled("reason", of.reason, max(width, 2 * LABEL), Role.UNDER))


def _lines(of: ListedTask, moment: Moment, width: int) -> Iterator[Cell]:
    task, far = of.task, how_far(of, moment)
    newest = task.phases[-1]
    age_s = max(0.0, (moment.now_ms - newest.at_ms) / 1000)
    phase = f"{phase_text(task)}, for {ticking(age_s)}"
    yield from _labelled("phase", phase, width, phase_role(task))
    waits = waits_for(of, resume_key(moment))
    if newest.note and newest.note not in waits:
        yield from _labelled("because" if task.phase in _ENDED else "note", newest.note, width)
    if of.worker:
        yield from _labelled("worker", of.worker, width)
    if waits:
        yield from _labelled("waits", waits, width, Role.UNDER)
    if far is not None:
        yield from _labelled("progress", _progress(far), width)
    requested = f"{_time(task.requested_at_ms)} by {task.by}"
    yield from _labelled("requested", requested, width)
    yield from _labelled("id", task.task_id, width, Role.MUTED)
    yield from _phases(task, width)
    yield from _plans(task, width)


_ENDED: Final = (TaskPhase.FAILED, TaskPhase.CANCELLED)


def _progress(far: HowFar) -> str:
    parts = [f"{far.moves_done:,} of {count_text(far.moves, 'move')}"]
    copied = bytes_text(far.bytes_copied)
    if far.bytes_to_copy is None:
        parts.append(f"{copied} copied")
    elif far.bytes_copied > far.bytes_to_copy:
        # Producers have written to the partitions meanwhile.
        parts.append(f"{copied} copied ({bytes_text(far.bytes_to_copy)} planned)")
    else:
        parts.append(f"{copied} of {bytes_text(far.bytes_to_copy)} copied")
        parts.append(f"{bytes_text(far.bytes_left)} left")
    if far.seconds_left is not None:
        parts.append(f"about {seconds_text(far.seconds_left)} left")
    return f"{', '.join(parts)}; as of {_time(far.at_ms)}"


def _phases(task: BrokerTask, width: int) -> Iterator[Cell]:
    yield ()
    yield (Span("phases", Role.STRONG),)
    for change in task.phases:
        yield from _phase(change, width)


def _phase(change: PhaseChange, width: int) -> Iterator[Cell]:
    time, role = _time(change.at_ms), PHASE_ROLES.get(change.phase, Role.PLAIN)
    indent = len(time) + 2 + PHASE + 1
    first, *rest = _wrapped(change.note, width - indent)
    yield (Span(f"{time}  "), Span(f"{change.phase:<{PHASE}} ", role), Span(first))
    yield from ((Span(" " * indent + line),) for line in rest)


def _plans(task: BrokerTask, width: int) -> Iterator[Cell]:
    if not task.plans:
        return
    yield ()
    yield (Span("plans", Role.STRONG),)
    for plan in task.plans:
        first, *rest = _wrapped(_plan_text(plan), width - HASH - 2)
        yield (Span(f"{plan.plan_hash[:HASH]}  ", Role.MUTED), Span(first))
        yield from ((Span(" " * (HASH + 2) + line),) for line in rest)


def _plan_text(plan: TaskPlan) -> str:
    size = "of unknown size" if plan.bytes_to_copy is None else bytes_text(plan.bytes_to_copy)
    text = f"{count_text(plan.moves, 'move')}, {size}"
    if plan.least_bytes is not None:
        text += f" (no plan needs less than {bytes_text(plan.least_bytes)})"
    if plan.approved_at_ms is None:
        return f"{text}; {plan.closed or 'waits for approval'}"
    text += f"; approved {_time(plan.approved_at_ms)} by {plan.approved_by}"
    return f"{text}; {plan.closed}" if plan.closed else text


def _labelled(label: str, text: str, width: int, role: Role = Role.PLAIN) -> Iterator[Cell]:
    first, *rest = _wrapped(text, width - LABEL)
    yield (Span(f"{label:<{LABEL}}", Role.MUTED), Span(first, role))
    yield from ((Span(" " * LABEL), Span(line, role)) for line in rest)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, max(8, width)) or [""]


def _time(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}Z"
