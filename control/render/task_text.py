"""Tasks and marks of brokers as people read them."""

from collections.abc import Iterable, Sequence

from control.cli.output_types import MarksAnswer, RemovalAnswer, TaskAnswer, TasksAnswer
from control.render.text import table, time_text
from control.tasks.broker_task import (
    NAMED,
    BrokerTask,
    Operation,
    TaskPlan,
    TaskProgress,
    request_text,
    task_words,
)
from control.tasks.removal import bound_text
from control.tasks.task_files import TaskFiles
from model.units import bytes_text, count_text, listed, seconds_text


def task_answer(files: TaskFiles, task: BrokerTask) -> TaskAnswer:
    """A task as JSON has it."""
    worked_on = task.is_open and files.is_worked_on(task.task_id)
    return TaskAnswer.of(task, open=task.is_open, worked_on=worked_on)


def task_text(task: TaskAnswer) -> str:
    """A task with its phases, plans and progress."""
    named = task_words(task)
    lines = [f"task {task.task_id}: {named}, {_state(task)}"]
    if _is_stopped(task):
        lines.append(f"plimsoll task resume {task.task_id} continues it; nothing else does")
    rows = [[time_text(p.at_ms), p.phase, p.note] for p in task.phases]
    text = "\n".join(lines) + "\n\n" + table(["time", "phase", "note"], rows)
    if task.plans:
        text += "\n" + _plans(task.plans)
    if progress := _progress(task):
        text += f"\n{progress}\n"
    return text


def tasks_text(answer: TasksAnswer) -> str:
    """All tasks in a table."""
    rows = [
        [
            t.task_id,
            t.operation,
            _about(t),
            _state(t),
            time_text(t.phases[-1].at_ms),
            _progress(t) or "-",
        ]
        for t in answer.tasks
    ]
    return table(["task", "operation", "about", "phase", "since", "progress"], rows)


def _progress(task: TaskAnswer) -> str:
    """How far the run of a task is; empty where none is in progress or can be resumed."""
    is_over = not task.open or (task.plans and task.plans[-1].closed)
    return "" if task.progress is None or is_over else progress_text(task.progress)


def _about(task: TaskAnswer) -> str:
    """The brokers, directories or topics that a task names, or `-`."""
    ids = ",".join(map(str, task.brokers))
    if task.paths:
        return f"{ids}:{listed(task.paths, NAMED)}"
    return listed(task.topics, NAMED) if task.topics else ids or "-"


def progress_text(progress: TaskProgress) -> str:
    """`12 of 100 moves, 240 MB of 2.0 GB, about 30 s left`.

    More is copied than planned where producers write to partitions while they move.
    """
    moves = f"{progress.moves_done:,} of {count_text(progress.moves, 'move')}"
    size = bytes_text(progress.bytes_copied)
    if (planned := progress.bytes_to_copy) is not None:
        more = progress.bytes_copied > planned
        size += f" ({bytes_text(planned)} planned)" if more else f" of {bytes_text(planned)}"
    left = progress.seconds_left
    return f"{moves}, {size}" + (f", about {seconds_text(left)} left" if left is not None else "")


def removal_text(answer: RemovalAnswer) -> str:
    """The size of a task's plan, before the plan itself: replicas and bytes."""
    emptied = answer.operation in (Operation.REMOVE, Operation.REPLACE)
    of = f"{count_text(answer.replicas, 'replica')}, " if emptied else ""
    lines = [
        f"{request_text(answer.operation, answer.brokers, answer.onto)}: {of}"
        f"{bytes_text(answer.bytes_to_copy)} to copy",
        bound_text(answer.bytes_to_copy, answer.least_bytes, answer.brokers),
    ]
    return "".join(f"{line}\n" for line in lines if line)


def marks_text(answer: MarksAnswer) -> str:
    """The marks of a cluster's brokers, one per line."""
    if not answer.marks:
        return "all brokers may take new replicas\n"
    rows = [[str(m.broker), m.state, time_text(m.at_ms), m.by, m.reason] for m in answer.marks]
    return table(["broker", "state", "since", "by", "reason"], rows)


def _state(task: TaskAnswer) -> str:
    if _is_stopped(task):
        return f"{task.phase}, stopped by {task.stopped_by}"
    return f"{task.phase}, in progress" if task.worked_on else str(task.phase)


def _is_stopped(task: TaskAnswer) -> bool:
    """Whether `--auto` leaves it to a person, since one has stopped it."""
    return bool(task.stopped_by) and task.open and not task.worked_on


def _plans(plans: Sequence[TaskPlan]) -> str:
    return table(["plan", "moves", "to copy", "approved", "state"], list(_plan_rows(plans)))


def _plan_rows(plans: Iterable[TaskPlan]) -> Iterable[list[str]]:
    for plan in plans:
        approved = "-"
        if plan.approved_at_ms is not None:
            approved = f"{time_text(plan.approved_at_ms)} by {plan.approved_by}"
        waiting = "waits for approval" if plan.approved_at_ms is None else "open"
        size = "unknown" if plan.bytes_to_copy is None else bytes_text(plan.bytes_to_copy)
        yield [plan.plan_hash[:12], f"{plan.moves:,}", size, approved, plan.closed or waiting]
