"""`plimsoll task`: list, show, resume and cancel tasks on brokers."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, Output, task_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from control.tasks.broker_task import BrokerTask
    from control.tasks.task_files import TaskFiles
    from executor.executor import Executor

Task = Annotated[
    str | None,
    task_argument(help="The task, or the first characters of its id. By default the open one."),
]


def list(  # noqa: A001 - the command's name
    *,
    every: Annotated[bool, typer.Option("--all", help="Also those that are over.")] = False,
    local_settings: "Settings",
    output: Output = Form.TABLE,
) -> int:
    """Print the tasks of the state folder and of the archive, of all clusters.

    Files of tasks that cannot be read are named on stderr.
    """
    from control import compose
    from control.cli.output_types import TasksAnswer
    from control.cli.task_work import print_line
    from control.render.task_text import task_answer, tasks_text
    from control.render.text import answer_text

    files = compose.task_files(local_settings)
    tasks, unreadable = files.readable()
    for why in unreadable:
        print_line(why)
    found = [task for task in tasks if every or task.is_open]
    if not (found or unreadable):
        more = "" if every else " open"
        sys.stderr.write(f"plimsoll: {files.folder} has no{more} task\n")
    answer = TasksAnswer(tasks=tuple(task_answer(files, task) for task in found))
    sys.stdout.write(
        answer_text(answer, tasks_text, output) if found or output is Form.JSON else ""
    )
    return Exit.USAGE if unreadable else Exit.DONE


def show(task: Task = None, *, local_settings: "Settings", output: Output = Form.TABLE) -> int:
    """Print one task."""
    from control import compose
    from control.cli.task_work import print_task

    files = compose.task_files(local_settings)
    print_task(files, _named(files, task, newest=True), output)
    return Exit.DONE


def resume(
    task: Task = None,
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Continue a task where it was interrupted."""
    from control import compose
    from control.cli.plan_execution import refuse_read_only
    from control.cli.task_work import refuse_unasked, refuse_unsigned, work_on
    from model.errors import ConfigError

    if execution.dry_run:
        raise ConfigError("task resume has no --dry-run; use that of the command it is of")
    refuse_read_only(execution.allow_changes, "resume the task")
    refuse_unsigned(settings)
    files = compose.task_files(settings)
    found = _named(files, task)
    if not found.is_open:
        raise ConfigError(f"task {found.task_id} is {found.phase}; nothing is left to resume")
    if found.plan is None or found.plan.approved_at_ms is None:
        refuse_unasked(execution)
    return work_on(settings, found, execution, output)


def cancel(
    task: Task = None,
    *,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; kept with the task.")] = "",
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Cancel an open task; end its brokers' cordons where that is allowed."""
    from control import compose
    from control.cli.console import operator
    from control.cli.task_work import now_ms, print_line, print_task
    from control.tasks import task_runner

    files = compose.task_files(settings)
    found = _named(files, task)
    ended = task_runner.cancel(files, found, operator(), now_ms(), reason)
    if files.is_worked_on(found.task_id):
        print_line("its run stops after the moves in flight")
    else:
        _end_cordons(settings, files, ended, allow_changes=allow_changes)
    if found.approved:
        print_line("replicas that have moved stay; plimsoll rollback moves them back")
    print_task(files, ended, output)
    return Exit.DONE


def _end_cordons(
    settings: "Settings", files: "TaskFiles", task: "BrokerTask", *, allow_changes: bool
) -> None:
    """End the cordons of a cancelled task that no process works on, or say how to."""
    import contextlib

    from control import compose
    from control.cli.console import operator
    from control.cli.task_work import print_line
    from control.tasks.task_cordons import end_cordons

    def connect() -> "contextlib.closing[Executor]":
        return contextlib.closing(compose.executor(settings))

    end_cordons(
        connect if allow_changes else None,
        task,
        files,
        compose.journal_dir(settings),
        operator(),
        print_line,
    )


def _named(files: "TaskFiles", prefix: str | None, *, newest: bool = False) -> "BrokerTask":
    """The task that is named, or the only open one; else the newest where that is enough.

    Raises ConfigError: no task fits, several do, or one that cannot be read may be meant.
    """
    from control.cli.task_work import print_line
    from model.errors import ConfigError

    if prefix is not None:
        return files.named(prefix)
    tasks, unreadable = files.readable()
    if unreadable and not newest:
        raise ConfigError(f"{unreadable[0]}. To continue without it, name the task that is meant")
    for why in unreadable:
        print_line(why)
    found = [task for task in tasks if task.is_open]
    if not found and newest:
        found = tasks[-1:]
    if len(found) != 1:
        ids = ", ".join(task.task_id for task in found[:4])
        why = f"{len(found)} tasks are open ({ids})" if found else "no task is open"
        raise ConfigError(f"{why} in {files.folder}; name one")
    return found[0]
