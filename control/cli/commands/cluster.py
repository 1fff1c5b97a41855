"""`plimsoll cluster`: repair whatever is broken."""

import sys
from typing import TYPE_CHECKING

from control.cli.exit_codes import Exit
from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from control.tasks.broker_task import BrokerTask
    from model.snapshot.snapshot import Snapshot


def repair(
    *, settings: "Settings", execution: "ExecutionOptions", output: Output = Form.TABLE
) -> int:
    """Request that whatever is broken is repaired, or continue it, and work on it to its end.

    Raises GuardrailRefused where there is no plan, or it is not allowed or not confirmed.
    """
    from control.cli.console import operator
    from control.cli.task_work import now_ms, request
    from control.tasks.broker_task import Operation
    from control.tasks.task_request import TaskRequest

    def asked(snapshot: "Snapshot") -> TaskRequest:
        del snapshot
        return TaskRequest(operation=Operation.REPAIR, brokers=(), by=operator(), at_ms=now_ms())

    return request(settings, "repair the cluster", asked, execution, output, _rehearse)


def _rehearse(
    settings: "Settings",
    snapshot: "Snapshot",
    task: "BrokerTask",
    execution: "ExecutionOptions",
    output: Form,
) -> int:
    """Print the plan, its waves, peaks and duration, and its requests as JSON."""
    import contextlib

    from control import compose
    from control.cli.output_types import RepairAnswer
    from control.cli.plan_execution import rehearse
    from control.cli.task_work import find_plan, print_line
    from control.planning.repair_request import plan_repair
    from control.render.text import answer_text
    from control.tasks.operations import OPERATIONS

    del execution
    found = plan_repair(snapshot, settings.goals, lambda s, g: find_plan(settings, s, g))
    if found is None:
        print_line(f"{OPERATIONS[task.operation].verified(task)}; nothing to do")
        return Exit.DONE
    for sentence in found.notes:
        print_line(sentence)
    if found.plan is None:
        return Exit.INCOMPLETE
    with contextlib.closing(compose.executor(settings)) as executor:
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
