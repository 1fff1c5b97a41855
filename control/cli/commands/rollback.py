"""`plimsoll rollback`: restore the assignment from before a run."""

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated, cast

from control.cli.exit_codes import Exit
from control.cli.options import Output, run_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from executor.executor import Executor


def rollback(
    run: Annotated[
        str | None,
        run_argument(
            help="The run, or the first characters of its id. By default the most recent run."
        ),
    ] = None,
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Execute the reverse of a run's plan, then restore settings it left changed.

    The marks and cordons that a task has set end with the rollback of its run.
    """
    from control import compose
    from control.cli.console import operator
    from control.cli.plan_execution import execute, refuse_read_only, restored_settings, say
    from control.cli.task_work import print_line

    compose.bootstrap_of(settings)
    refuse_read_only(execution.allow_changes or execution.dry_run)
    with contextlib.closing(compose.executor(settings)) as executor:
        aware = compose.task_aware(settings, executor, print_line)
        plan, skipped = aware.plan_rollback(compose.journal_dir(settings), run)
        for reason in skipped:
            sys.stderr.write(f"plimsoll: skipped: {reason}\n")
        also = aware.notes(plan)
        code: int = Exit.DONE
        if plan.moves:
            acting = cast("Executor", aware)
            code = execute(acting, settings, plan, execution, output, also=also)
        else:
            say(also)
            sys.stderr.write("plimsoll: that run has nothing to undo\n")
        if execution.dry_run:
            return code
        if not plan.moves:
            aware.end(plan, operator())
        restored, remaining = restored_settings(executor, settings)
        for sentence in (*restored, *remaining):
            sys.stderr.write(f"plimsoll: {sentence}\n")
        return Exit.INCOMPLETE if remaining and code == Exit.DONE else code
