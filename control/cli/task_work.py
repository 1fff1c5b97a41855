"""Working on a task from the command line: its parts, its end, and how it is printed."""

import contextlib
import importlib
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from control import compose
from control.cli.console import operator
from control.cli.exit_codes import Exit, exit_of_plan
from control.cli.input_source import snapshot_of
from control.cli.invocation import Origin
from control.cli.narration import RunNarrator
from control.cli.output import Form
from control.cli.plan_execution import (
    plan_confirmed,
    refuse_read_only,
    rehearse,
    steered_by_signals,
)
from control.cli.progress_line import PLAN, shown
from control.render.task_text import task_answer, task_text
from control.render.text import answer_text
from control.settings.auto_limits import EAGER
from control.settings.settings import Settings
from control.settings.solve_table import task_limits
from control.tasks.broker_task import BrokerTask, TaskPhase
from control.tasks.operations import OPERATIONS
from control.tasks.task_files import TaskFiles
from control.tasks.task_parts import FoundPlan, NoPlan, TaskParts
from control.tasks.task_request import UNSIGNED, TaskRequest, requested_task
from control.tasks.task_runner import TaskRunner, cancel
from model.errors import GuardrailRefused, PlimsollError
from model.goals.goals import Goals
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

    from control.cli.invocation import ExecutionOptions
    from control.cli.output_types import Answer
    from executor.executor import Executor
    from solver.report.result import Result


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return int(1000 * time.time())


def refuse_unasked(options: "ExecutionOptions") -> None:
    """Raise GuardrailRefused where a plan could not be approved: no terminal, and no `--yes`."""
    if not options.yes and not sys.stdin.isatty():
        raise GuardrailRefused("there is no terminal to confirm on; add --yes to execute the plans")


def refuse_unsigned(settings: Settings) -> None:
    """Raise GuardrailRefused where plans need a signature, which those of tasks lack."""
    if settings.require_signature is not None:
        raise GuardrailRefused(UNSIGNED)


def find_plan(settings: Settings, snapshot: Snapshot, goals: Goals) -> "Result":
    """Solve with the limits of a task; show the progress on a terminal."""
    from solver.solve import solve  # `task list` and `task show` need no planner

    limits = task_limits(settings.solve, len(snapshot), len(snapshot.header.brokers))
    return shown(lambda observer: solve(snapshot, goals, limits, observer), kept=PLAN)


def _load_planner() -> None:
    """Import what plans and executes, which takes a second of CPU, while loads are measured."""
    for name in ("solver.solve", "executor.executor"):
        importlib.import_module(name)


def request(
    settings: Settings,
    purpose: str,
    asked: "Callable[[Snapshot], TaskRequest]",
    options: "ExecutionOptions",
    output: Form,
    show: "Callable[[Settings, Snapshot, BrokerTask, ExecutionOptions, Form], int]",
    *,
    tolerant: bool = False,
) -> int:
    """Request a task or continue it, and work on it to its end; the exit code.

    purpose: what changes are needed for. asked: reads the request, given the cluster; raises where
    it names something unknown. show: prints the next plan of a task, for `--dry-run`. tolerant:
    whether files of other tasks may be damaged.
    """
    refuse_read_only(
        options.allow_changes or options.dry_run, f"{purpose}, or --dry-run to see the plan"
    )
    if not options.dry_run:
        refuse_unsigned(settings)
    files = compose.task_files(settings)
    if not tolerant:
        files.all()
    if not options.dry_run:
        refuse_unasked(options)
    loading = threading.Thread(target=_load_planner, name="plimsoll-planner")
    loading.start()
    try:
        snapshot = snapshot_of(settings, Origin(), early=True)
    finally:
        loading.join()
    task, again = requested_task(files, snapshot, settings.goals, asked(snapshot))
    if options.dry_run:
        return show(settings, snapshot, task, options, output)
    rules = OPERATIONS[task.operation]
    if not again and rules.needless(task, snapshot, settings.goals):
        print_line(f"{rules.verified(task)}; nothing to do")
        return Exit.DONE
    with contextlib.closing(compose.executor(settings)) as executor:
        parts, first = parts_of(settings, executor, options), None
        if not again:
            try:
                first = _first_plan(executor, task, snapshot, parts)
            except NoPlan as exc:
                print_line(str(exc))
                return exit_of_plan(exc.status) or Exit.INCOMPLETE
            task = files.store(task)
        print_line(f"{'continues' if again else 'recorded'} task {task.task_id}")
        return _work(TaskRunner(task, parts, snapshot, first), parts, output)


def _first_plan(
    executor: "Executor", task: BrokerTask, snapshot: Snapshot, parts: TaskParts
) -> FoundPlan | None:
    """The first plan of an operation that cannot tell without it whether it is possible.

    None for others, and where nothing is left to do. Raises as the plan and the checks before its
    run do, so that no task is recorded for what is refused.
    """
    rules = OPERATIONS[task.operation]
    if rules.marks or not rules.left(task, parts, lambda: snapshot).count:
        return None
    found = rules.find(task, snapshot, parts)
    executor.dry_run(found.plan, parts.journal_dir)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What the dry run of a task shows, but for the rehearsal of its plan."""

    plan: Plan | None
    """None where nothing can be moved."""
    answer: "Callable[..., Answer]"
    """Makes the answer; given the figures of the rehearsal."""
    text: "Callable[[Any], str]"
    """What people read before the plan."""
    notes: Sequence[str] = ()
    """Sentences for stderr."""


def dry_run(settings: Settings, find: "Callable[[Executor], DryRun | str]", output: Form) -> int:
    """Print the next plan of a task, its waves, peaks, duration and requests; the exit code.

    find: makes the plan; where nothing has to move, what the task does all the same.
    """
    with contextlib.closing(compose.executor(settings)) as executor:
        try:
            found = find(executor)
        except NoPlan as exc:
            print_line(str(exc))
            return exit_of_plan(exc.status) or Exit.INCOMPLETE
        if isinstance(found, str):
            print_line(found)
            return Exit.DONE
        for sentence in found.notes:
            print_line(sentence)
        if found.plan is None:
            return Exit.INCOMPLETE
        rehearsal = rehearse(executor, settings, found.plan)
    answer = found.answer(**rehearsal.figures)
    text = answer_text(answer, lambda of: f"{found.text(of)}\n{rehearsal.text}", output)
    sys.stdout.write(text)
    return Exit.DONE


def work_on(settings: Settings, task: BrokerTask, options: "ExecutionOptions", output: Form) -> int:
    """Work on a task to its end, and print it; the exit code.

    Raises GuardrailRefused where its plan is not confirmed, and as `TaskRunner.run` does.
    """
    with contextlib.closing(compose.executor(settings)) as executor:
        parts = parts_of(settings, executor, options)
        return _work(TaskRunner(task, parts), parts, output)


def _work(runner: TaskRunner, parts: TaskParts, output: Form) -> int:
    """As `work_on`."""
    files, task = parts.files, runner.task
    try:
        task = runner.run()
    except NoPlan as exc:
        sys.stderr.write(f"plimsoll: {exc}\n")
        _print_open(files, task, str(exc))
        print_task(files, files.read(task.task_id), output)
        return exit_of_plan(exc.status) or Exit.INCOMPLETE
    except (PlimsollError, KeyboardInterrupt) as exc:
        _print_open(files, task, str(exc))
        raise
    if task.phase is TaskPhase.PLANNED:
        cancel(files, task, operator(), now_ms(), "not confirmed")
        raise GuardrailRefused("not confirmed; the task was cancelled")
    print_task(files, task, output)
    is_done = task.phase is TaskPhase.DONE and not runner.undone
    return Exit.DONE if is_done else Exit.INCOMPLETE


def _print_open(files: TaskFiles, task: BrokerTask, reason: str) -> None:
    """Say how a task that has failed is continued or given up, unless its reason does."""
    with contextlib.suppress(PlimsollError):
        name = task.task_id
        if files.read(name).is_open and "plimsoll task" not in reason:
            print_line(
                f"task {name} stays open: plimsoll task resume {name} continues it, "
                f"plimsoll task cancel {name} gives it up"
            )


def parts_of(settings: Settings, executor: "Executor", options: "ExecutionOptions") -> TaskParts:
    """What a task is worked on with from the command line."""

    def approve(_task: BrokerTask, plan: Plan) -> str:
        if options.yes or plan_confirmed(executor, settings, plan):
            return operator()
        return ""

    return TaskParts(
        files=compose.task_files(settings),
        executor=executor,
        journal_dir=compose.journal_dir(settings),
        observe=lambda: snapshot_of(settings, Origin(), early=True),
        solve=lambda snapshot, goals: find_plan(settings, snapshot, goals),
        goals=settings.goals,
        approve=approve,
        say=print_line,
        watch=RunNarrator(),
        steered=steered_by_signals,
        moves_in_flight=EAGER.moves_in_flight,
        now_ms=now_ms,
        operator=operator(),
    )


def print_line(sentence: str) -> None:
    """Print a sentence on stderr."""
    sys.stderr.write(f"plimsoll: {sentence}\n")


def print_task(files: TaskFiles, task: BrokerTask, output: Form) -> None:
    """Print a task on stdout."""
    sys.stdout.write(answer_text(task_answer(files, task), task_text, output))
