"""`plimsoll cluster`: repair whatever is broken."""

from typing import TYPE_CHECKING

from control.cli.options import Output
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from control.tasks.broker_task import BrokerTask
    from executor.executor import Executor
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

    return request(settings, "repair the cluster", asked, execution, output, _dry_run)


def _dry_run(
    settings: "Settings",
    snapshot: "Snapshot",
    task: "BrokerTask",
    execution: "ExecutionOptions",
    output: Form,
) -> int:
    """Print the next plan of a task."""
    from functools import partial

    from control.cli.output_types import RepairAnswer
    from control.cli.task_work import DryRun, dry_run, find_plan
    from control.planning.repair_request import plan_repair
    from control.tasks.operations import idle_text

    del execution

    def find(_executor: "Executor") -> DryRun | str:
        found = plan_repair(snapshot, settings.goals, lambda s, g: find_plan(settings, s, g))
        if found is None:
            return idle_text(task)
        answer = partial(
            RepairAnswer.of,
            found,
            dead_brokers=found.dead,
            racks_repaired=tuple(map(str, found.racks)),
            racks_left=tuple(map(str, found.racks_left)),
            bytes_to_copy=None if found.plan is None else found.plan.bytes_to_copy,
            unavailable=tuple(map(str, found.unavailable)),
            placeless=tuple(map(str, found.placeless)),
        )
        text = "\n".join((found.words, *found.bounds))
        return DryRun(plan=found.plan, answer=answer, text=lambda _: text, notes=found.notes)

    return dry_run(settings, find, output)
