"""`plimsoll cluster`: repair whatever is broken."""

import sys
from typing import TYPE_CHECKING

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.planning.repair_request import RepairPlan
    from control.settings.settings import Settings
    from executor.executor import Executor


def repair(
    *, settings: "Settings", execution: "ExecutionOptions", output: Output = Form.TABLE
) -> int:
    """Plan repairs alone, ask, execute the plan and report.

    Raises GuardrailRefused where there is no plan, or it is not allowed or not confirmed.
    """
    import contextlib

    from control import compose
    from control.cli.input_source import snapshot_of
    from control.cli.invocation import Origin
    from control.cli.plan_execution import execute, refuse_read_only
    from control.cli.task_work import find_plan, print_line, refuse_unasked
    from control.planning.repair_request import plan_repair

    refuse_read_only(
        execution.allow_changes or execution.dry_run,
        "repair the cluster, or --dry-run to see the plan",
    )
    if not execution.dry_run:
        refuse_unasked(execution)
    snapshot = snapshot_of(settings, Origin())
    found = plan_repair(snapshot, settings.goals, lambda s, g: find_plan(settings, s, g))
    if found is None:
        print_line("nothing is broken: no dead broker or failed directory holds a replica")
        return Exit.DONE
    for sentence in found.notes:
        print_line(sentence)
    if found.plan is None:
        return Exit.INCOMPLETE
    with contextlib.closing(compose.executor(settings)) as executor:
        if execution.dry_run:
            return _dry_run(executor, settings, found, output)
        code = execute(executor, settings, found.plan, execution, output)
    return Exit.INCOMPLETE if code == Exit.DONE and found.notes else code


def _dry_run(executor: "Executor", settings: "Settings", found: "RepairPlan", output: Form) -> int:
    """Print the plan, its waves, peaks and duration, and its requests as JSON."""
    from control.cli.output_types import RepairAnswer
    from control.cli.plan_execution import rehearse
    from control.render.text import answer_text

    if found.plan is None:
        return Exit.INCOMPLETE
    rehearsal = rehearse(executor, settings, found.plan)
    answer = RepairAnswer.of(
        found,
        dead_brokers=found.dead,
        racks_repaired=tuple(map(str, found.racks)),
        racks_left=tuple(map(str, found.racks_left)),
        bytes_to_copy=found.plan.bytes_to_copy,
        unavailable=tuple(map(str, found.unavailable)),
        placeless=tuple(map(str, found.placeless)),
        **rehearsal.figures,
    )
    shown = "\n".join((found.words, *found.bounds, rehearsal.text))
    sys.stdout.write(answer_text(answer, lambda _: shown, output))
    return Exit.DONE
