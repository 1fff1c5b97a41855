"""`plimsoll rollback`: restore the assignment from before a run."""

import contextlib
import sys
from typing import TYPE_CHECKING, Annotated

from control.cli.exit_codes import Exit
from control.cli.options import Output, run_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings


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
    """Execute the reverse of a run's plan, then restore settings it left changed."""
    from control import compose
    from control.cli.plan_execution import execute, refuse_read_only, restored_settings

    compose.bootstrap_of(settings)
    refuse_read_only(execution.allow_changes or execution.dry_run)
    with contextlib.closing(compose.executor(settings)) as executor:
        plan, skipped = executor.plan_rollback(compose.journal_dir(settings), run)
        for reason in skipped:
            sys.stderr.write(f"plimsoll: skipped: {reason}\n")
        code: int = Exit.DONE
        if plan.moves:
            code = execute(executor, settings, plan, execution, output)
        else:
            sys.stderr.write("plimsoll: that run has nothing to undo\n")
        if execution.dry_run:
            return code
        restored, remaining = restored_settings(executor, settings)
        for sentence in (*restored, *remaining):
            sys.stderr.write(f"plimsoll: {sentence}\n")
        return Exit.INCOMPLETE if remaining and code == Exit.DONE else code
