"""`plimsoll disk`: empty log directories, and heal failed ones."""

import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, Output, broker_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from control.cli.invocation import ExecutionOptions
    from control.cli.output_types import CordonAnswer
    from control.planning.disk_request import DiskPlan
    from control.settings.settings import Settings
    from control.tasks.broker_task import BrokerTask
    from control.tasks.task_parts import TaskParts
    from executor.executor import Executor
    from model.snapshot.snapshot import Snapshot


def remove(
    broker: Annotated[int, broker_argument(metavar="BROKER", help="The broker's id.")],
    paths: Annotated[
        list[str],
        typer.Argument(metavar="PATH", help="Its log directories, as log.dirs names them."),
    ],
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request that directories hold no replica, or continue it, and work on it to its end.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where the broker or a directory is unknown.
    """
    from control.cli.console import operator
    from control.cli.task_work import now_ms, request
    from control.planning.disk_request import broker_of, paths_of
    from control.tasks.broker_task import Operation
    from control.tasks.log_directories import emptying
    from control.tasks.task_request import TaskRequest

    def asked(snapshot: "Snapshot") -> TaskRequest:
        member = broker_of(snapshot, broker)
        return TaskRequest(
            operation=Operation.DISK_REMOVE,
            brokers=(member.id,),
            paths=paths_of(member, paths),
            by=operator(),
            at_ms=now_ms(),
        )

    show = partial(_dry_run, emptying)
    return request(settings, "empty log directories", asked, execution, output, show)


def _dry_run(
    plan: "Callable[[BrokerTask, Snapshot, TaskParts], DiskPlan | None]",
    settings: "Settings",
    snapshot: "Snapshot",
    task: "BrokerTask",
    execution: "ExecutionOptions",
    output: Form,
) -> int:
    """Print the next plan of a task."""
    from control.cli.output_types import DiskAnswer
    from control.cli.task_work import DryRun, dry_run, parts_of
    from control.tasks.operations import idle_text

    def find(executor: "Executor") -> DryRun | str:
        found = plan(task, snapshot, parts_of(settings, executor, execution))
        if found is None:
            return idle_text(task)
        answer = partial(
            DiskAnswer.of,
            found,
            bytes_to_copy=found.plan.bytes_to_copy,
            unavailable=tuple(map(str, found.unavailable)),
            placeless=tuple(map(str, found.placeless)),
        )
        text = "\n".join((found.words, *found.bounds))
        return DryRun(
            plan=found.plan if found.plan.moves else None,
            answer=answer,
            text=lambda _: text,
            notes=found.notes,
        )

    return dry_run(settings, find, output)


def include(
    broker: Annotated[int, broker_argument(metavar="BROKER", help="The broker's id.")],
    paths: Annotated[
        list[str], typer.Argument(metavar="PATH", help="The log directories, as log.dirs has them.")
    ],
    *,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """End the cordons that `disk remove` has set.

    Raises GuardrailRefused where not allowed, and ConfigError where the broker or a directory is
    unknown.
    """
    import contextlib

    from control import compose
    from control.cli.console import operator
    from control.cli.output_types import CordonAnswer
    from control.cli.plan_execution import refuse_read_only
    from control.render.text import answer_text
    from control.tasks.task_cordons import refuse_unknown_dirs
    from model.ids import BrokerId

    refuse_read_only(allow_changes, "end the cordons of log directories")
    with contextlib.closing(compose.executor(settings)) as executor:
        journals = compose.journal_dir(settings)
        executor.runs(journals, executor.cluster().cluster_id)
        refuse_unknown_dirs(executor, BrokerId(broker), paths, journals)
        change = executor.uncordon_dirs(
            BrokerId(broker), paths, journal_dir=journals, by=operator()
        )
    answer = CordonAnswer(
        broker=BrokerId(broker), paths=tuple(paths), changed=change.changed, note=change.note
    )
    sys.stdout.write(answer_text(answer, _cordon_text, output))
    return Exit.DONE


def _cordon_text(answer: "CordonAnswer") -> str:
    named = f"{', '.join(answer.paths)} of broker {answer.broker}"
    done = "no longer cordoned" if answer.changed else "not changed"
    return f"{named} {done}{f': {answer.note}' if answer.note else ''}\n"


def heal(
    brokers: Annotated[
        list[int] | None,
        broker_argument(metavar="BROKER", help="Ids; by default all with a failed directory."),
    ] = None,
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request that replicas of failed directories are created on other brokers, or continue it.

    Raises GuardrailRefused where it is impossible, not allowed, or not confirmed, and ConfigError
    where a broker is unknown.
    """
    from control.cli.console import operator
    from control.cli.task_work import now_ms, request
    from control.planning.disk_request import broker_of
    from control.tasks.broker_task import Operation
    from control.tasks.log_directories import healing
    from control.tasks.task_request import TaskRequest

    def asked(snapshot: "Snapshot") -> TaskRequest:
        named = {broker_of(snapshot, broker).id for broker in brokers or ()}
        return TaskRequest(
            operation=Operation.DISK_HEAL,
            brokers=tuple(sorted(named)),
            by=operator(),
            at_ms=now_ms(),
        )

    show = partial(_dry_run, healing)
    return request(settings, "create replicas again", asked, execution, output, show)
