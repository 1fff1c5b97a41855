"""`plimsoll apply`: execute exactly one plan."""

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import Output, PlanFile
from control.cli.output import Form
from model.errors import ConfigError

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings


def apply(
    plan_file: PlanFile,
    *,
    require_signature: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Execute the plan only if a key in this file has signed it (require_signature).",
        ),
    ] = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Check the plan against the cluster, ask, execute it and report.

    Raises
    ------
    ConfigError
        The plan cannot be used, or is the rollback of a run.
    PlanOutdated
        The cluster has changed since the plan was made.
    GuardrailRefused
        Changes are not allowed, or not confirmed, or the plan lacks a signature.
    """
    from control import compose
    from control.cli.plan_execution import execute, refuse_read_only
    from executor.run.rollback_plan import restores
    from model.plan.plan import read_plan

    if require_signature is not None:
        settings = settings.model_copy(update={"require_signature": require_signature})
    plan = read_plan(plan_file)
    if restores(plan):
        raise ConfigError(
            f"{plan_file} rolls a run back and is not checked against the goals; use "
            "rollback and name that run"
        )
    compose.bootstrap_of(settings)
    if not plan.moves:
        sys.stderr.write(f"plimsoll: {plan_file} has no moves; nothing to do\n")
        return Exit.DONE
    refuse_read_only(execution.allow_changes or execution.dry_run)
    with contextlib.closing(compose.executor(settings, plan_file)) as executor:
        return execute(executor, settings, plan, execution, output)
