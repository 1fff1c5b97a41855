"""`plimsoll broker`: add, replace, demote and remove brokers, and keep replicas away from them."""

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.exit_codes import Exit
from control.cli.options import AllowChanges, Output, broker_argument
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import ExecutionOptions
    from control.settings.settings import Settings
    from control.tasks.broker_marks import BrokerMark
    from control.tasks.broker_task import BrokerTask
    from executor.executor import Executor
    from model.ids import BrokerId
    from model.snapshot.snapshot import Broker, Snapshot

MOST_REASON: Final = 200
"""Characters of the reason of a mark."""

Ids = Annotated[list[int] | None, broker_argument(metavar="ID", help="Broker ids.")]
Racks = Annotated[
    list[str] | None,
    typer.Option("--rack", metavar="RACK", help="All live brokers of this rack. Repeatable."),
]


class Switch(StrEnum):
    """Whether maintenance begins or ends."""

    ON = "on"
    OFF = "off"


def remove(
    ids: Ids = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request the removal of brokers, or continue it, and work on it to its end."""
    return _work("remove", "remove brokers", ids, rack, settings, execution, output)


def add(
    ids: Ids = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request that brokers are filled, or continue it, and work on it to its end."""
    return _work("add", "fill brokers", ids, rack, settings, execution, output)


def demote(
    ids: Ids = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request the demotion of brokers, or continue it, and work on it to its end."""
    return _work("demote", "demote brokers", ids, rack, settings, execution, output)


def undemote(
    ids: Ids = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Lift a demotion, and work on electing the leaders back to its end."""
    return _work("undemote", "elect leaders back", ids, rack, settings, execution, output)


def maintenance(
    ids: Ids = None,
    switch: Annotated[
        Switch | None, typer.Argument(metavar="on|off", help="Begin or end it.")
    ] = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Begin or end the maintenance of brokers, and work on it to its end."""
    from model.errors import ConfigError

    if switch is None:
        raise ConfigError("say whether maintenance is on or off: plimsoll broker maintenance 4 on")
    operation = "maintenance" if switch is Switch.ON else "maintenance-off"
    return _work(operation, f"switch it {switch}", ids, rack, settings, execution, output)


def replace(
    old: Annotated[int, broker_argument(metavar="OLD", help="The broker to be emptied.")],
    new: Annotated[int, broker_argument(metavar="NEW", help="The one that takes its place.")],
    *,
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Output = Form.TABLE,
) -> int:
    """Request the replacement of a broker, or continue it, and work on it to its end."""
    return _work("replace", "replace a broker", [old], None, settings, execution, output, new)


def _work(
    name: str,
    what: str,
    ids: "Sequence[int] | None",
    racks: "Sequence[str] | None",
    settings: "Settings",
    execution: "ExecutionOptions",
    output: Form,
    onto: int | None = None,
) -> int:
    """Request a task or continue it, and work on it to its end; the exit code."""
    from control.cli.console import operator
    from control.cli.task_work import now_ms, request
    from control.tasks.broker_task import Operation
    from control.tasks.demotion import ENDS
    from control.tasks.removal import brokers_of
    from control.tasks.task_request import TaskRequest

    def asked(snapshot: "Snapshot") -> TaskRequest:
        members, operation = snapshot.header.brokers, Operation(name)
        ends = operation in ENDS
        return TaskRequest(
            operation=operation,
            brokers=tuple(brokers_of(members, ids or (), racks or (), ends=ends)),
            onto=None if onto is None else brokers_of(members, [onto], ())[0],
            by=operator(),
            at_ms=now_ms(),
        )

    # A demotion is ended whatever other files hold, since leaders are missed meanwhile.
    tolerant = Operation(name) in ENDS
    return request(settings, what, asked, execution, output, _dry_run, tolerant=tolerant)


def _dry_run(
    settings: "Settings",
    snapshot: "Snapshot",
    task: "BrokerTask",
    execution: "ExecutionOptions",
    output: Form,
) -> int:
    """Print the next plan of a task."""
    from functools import partial

    from control.cli.output_types import RemovalAnswer
    from control.cli.task_work import DryRun, dry_run, parts_of, print_line
    from control.render.task_text import removal_text
    from control.tasks.broker_task import min_isr_text
    from control.tasks.operations import OPERATIONS, idle_text
    from control.tasks.task_parts import NoPlan
    from model.plan.plan import PlanStatus

    def find(executor: "Executor") -> DryRun | str:
        parts, rules = parts_of(settings, executor, execution), OPERATIONS[task.operation]
        at_min_isr = rules.at_min_isr(task, parts)
        left = rules.left(task, parts, lambda: snapshot)
        if not left.count and left.words:
            raise NoPlan(left.words, PlanStatus.NONE_IN_TIME)
        if not left.count:
            return idle_text(task.model_copy(update={"at_min_isr": at_min_isr}))
        if lost := min_isr_text(at_min_isr, task.brokers):
            print_line(f"warning: {lost}")
        found = rules.find(task, snapshot, parts)
        if not found.plan.moves and not rules.rests:
            raise NoPlan(left.words, PlanStatus.NONE_IN_TIME)
        answer = partial(
            RemovalAnswer.of,
            found.entry,
            operation=task.operation,
            brokers=task.brokers,
            onto=task.onto,
            at_min_isr=at_min_isr,
        )
        return DryRun(plan=found.plan, answer=answer, text=removal_text)

    return dry_run(settings, find, output)


# ---- marks


def exclude(
    ids: Ids = None,
    *,
    rack: Racks = None,
    reason: Annotated[
        str, typer.Option(metavar="TEXT", help="Why; shown wherever the mark is.")
    ] = "",
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Mark brokers as excluded in plimsoll's own files, and cordon them where that is allowed."""
    import contextlib

    from control import compose
    from control.cli.console import operator
    from control.cli.task_work import now_ms, print_line
    from control.tasks import exclusion
    from control.tasks.removal import brokers_of
    from control.tasks.task_cordons import cordon
    from model.errors import ConfigError

    if len(reason) > MOST_REASON or (reason and not reason.isprintable()):
        raise ConfigError(f"--reason takes at most {MOST_REASON} printable characters")
    with contextlib.closing(compose.executor(settings)) as executor:
        cluster_id, members = _members(executor)
    brokers = brokers_of(members, ids or (), rack or (), "live broker")
    files = compose.task_files(settings)
    by = operator()
    found = exclusion.exclude(files, cluster_id, brokers, by=by, at_ms=now_ms(), reason=reason)
    for note in exclusion.draining_notes(found, cluster_id, brokers):
        print_line(note)
    if allow_changes:
        with contextlib.closing(compose.executor(settings)) as executor:
            cordon(executor, brokers, compose.journal_dir(settings), cluster_id, by, print_line)
    else:
        print_line(
            "plimsoll puts no replicas there; with --allow-changes, Kafka 4.3 does not either"
        )
    return _print_marks(cluster_id, found, output)


def include(
    ids: Ids = None,
    *,
    rack: Racks = None,
    settings: "Settings",
    allow_changes: AllowChanges = False,
    output: Output = Form.TABLE,
) -> int:
    """Remove the marks of brokers and their cordons, also those that removals have left.

    Raises GuardrailRefused where plimsoll has cordoned one, and changes are not allowed.
    """
    import contextlib

    from control import compose
    from control.cli.console import operator
    from control.cli.plan_execution import refuse_read_only
    from control.cli.task_work import print_line
    from control.tasks import exclusion
    from control.tasks.broker_task import brokers_text
    from control.tasks.removal import brokers_of

    def may_uncordon(cordoned: "Sequence[BrokerId]") -> None:
        refuse_read_only(allow_changes, f"end the cordon of {brokers_text(cordoned)}, too")

    files, journals = compose.task_files(settings), compose.journal_dir(settings)
    with contextlib.closing(compose.executor(settings)) as executor:
        cluster_id, live = _members(executor)
        members = exclusion.includable(live, files.marks(cluster_id), cluster_id)
        found = exclusion.include(
            executor,
            files,
            journals,
            cluster_id,
            brokers_of(members, ids or (), rack or (), exclusion.INCLUDABLE),
            by=operator(),
            say=print_line,
            may_uncordon=may_uncordon,
        )
    return _print_marks(cluster_id, found, output)


def _members(executor: "Executor") -> "tuple[str, list[Broker]]":
    """The cluster's id, and its live brokers with their racks."""
    from model.snapshot.snapshot import Broker

    view = executor.cluster()
    return view.cluster_id, [Broker(id=b, rack=view.racks.get(b)) for b in sorted(view.alive)]


def _print_marks(cluster_id: str, marks: "Sequence[BrokerMark]", output: Form) -> int:
    from control.cli.output_types import MarksAnswer
    from control.render.task_text import marks_text
    from control.render.text import answer_text

    own = tuple(m for m in marks if m.cluster_id == cluster_id)
    answer = MarksAnswer(cluster_id=cluster_id, marks=own)
    sys.stdout.write(answer_text(answer, marks_text, output))
    return Exit.DONE
