"""Tasks on brokers over HTTP: list, show, request and cancel them, as `plimsoll task` does."""

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from control.cli.output_types import TaskAnswer, TasksAnswer
from control.planning.disk_request import broker_of, paths_of
from control.planning.replication_request import topics_of
from control.render.task_text import task_answer
from control.render.text import json_text
from control.service.http_access import Client
from control.service.operator_actions import ActionResult, OperatorActions, reading_request
from control.tasks.broker_task import BrokerTask, Operation
from control.tasks.task_files import AmbiguousTask, TaskFiles, UnknownTask
from control.tasks.task_request import NamedBrokers, TaskRequest
from control.tasks.task_runner import cancel
from model.errors import ConfigError, GuardrailRefused, PlimsollError
from model.files import FileModel
from model.ids import BrokerId
from model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from control.loop.loop import Loop
    from control.tasks.operator_tasks import OperatorTasks

MOST: Final = 1_000
"""Brokers, racks, topics or directories of a request."""
MOST_REASON: Final = 200
"""Characters."""
REQUEST: Final = "request task"
CANCEL: Final = "cancel task"
"""Names of the actions, in the audit log."""

_Text = Annotated[str, Field(min_length=1, max_length=4_096)]
_ON_BROKERS: Final = frozenset({"brokers", "racks"})
_FIELDS: Final = dict.fromkeys(Operation, _ON_BROKERS) | {
    Operation.REPLACE: frozenset({"brokers", "onto"}),
    Operation.DISK_REMOVE: frozenset({"brokers", "paths"}),
    Operation.DISK_HEAL: frozenset({"brokers"}),
    Operation.SET_REPLICAS: frozenset({"topics", "replicas"}),
    Operation.REPAIR: frozenset(),
}
"""What each operation takes."""
_NEEDED: Final = {
    Operation.REPLACE: ("brokers", "onto"),
    Operation.DISK_REMOVE: ("brokers", "paths"),
    Operation.SET_REPLICAS: ("topics", "replicas"),
}
"""What it cannot do without."""


class TaskParameters(FileModel):
    """A request for a task; approves its plans."""

    operation: Operation
    brokers: Annotated[tuple[int, ...], Field(max_length=MOST)] = ()
    """Ids; of `disk-heal`, all with a failed directory by default."""
    racks: Annotated[tuple[_Text, ...], Field(max_length=MOST)] = ()
    """Whole racks, besides brokers."""
    onto: int | None = None
    """The broker that takes the place of another, of `replace`."""
    paths: Annotated[tuple[_Text, ...], Field(max_length=MOST)] = ()
    """Log directories of one broker, of `disk-remove`."""
    topics: Annotated[tuple[_Text, ...], Field(max_length=MOST)] = ()
    """Names, or regular expressions of whole names, of `set-replicas`."""
    replicas: Annotated[int, Field(ge=1, lt=2**15)] | None = None
    """Of each partition of the topics."""


def _plain(text: str) -> str:
    if not text.isprintable():
        raise ValueError("takes printable characters on one line")
    return text


class CancelParameters(FileModel):
    """Why a task is cancelled."""

    reason: Annotated[str, Field(max_length=MOST_REASON), AfterValidator(_plain)] = ""


def tasks_of(actions: OperatorActions) -> "OperatorTasks":
    """The tasks of the service. Raises GuardrailRefused while it starts."""
    found = None if actions.loop is None else actions.loop.tasks
    if found is None:
        raise GuardrailRefused("the service is starting; try again")
    return found


def tasks_text(actions: OperatorActions, *, every: bool) -> tuple[str, int]:
    """The tasks as `task list -o json`, and how many files cannot be read.

    every: also those that are over. Raises as `tasks_of`.
    """
    files = tasks_of(actions).continued.files
    tasks, unreadable = files.readable()
    found = (task_answer(files, task) for task in tasks if every or task.is_open)
    return json_text(TasksAnswer(tasks=tuple(found))), len(unreadable)


def task_text(actions: OperatorActions, prefix: str) -> str:
    """One task as `task show -o json`.

    prefix: the beginning of its id. Raises UnknownTask where not one task has it, and as
    `tasks_of`.
    """
    return json_text(_answer(tasks_of(actions), prefix))


def _answer(tasks: "OperatorTasks", prefix: str) -> TaskAnswer:
    files = tasks.continued.files
    return task_answer(files, _named(files, prefix))


def _named(files: TaskFiles, prefix: str) -> BrokerTask:
    """As `TaskFiles.named`, in words for who does not see the state folder."""
    try:
        return files.named(prefix)
    except AmbiguousTask:
        raise
    except UnknownTask:
        raise UnknownTask(f"there is no task {prefix!r}; see all with tasks?all=true") from None


def request_task(actions: OperatorActions, asked: TaskParameters, client: Client) -> str:
    """Request a task, which then plans and moves by itself; the task as `task show -o json`.

    Raises BadRequest for what does not exist or makes no sense, and GuardrailRefused where it is
    not possible, not allowed, or not now; then no task is left.
    """
    made: list[str] = []

    def approving(task: BrokerTask, plan_hash: str) -> None:
        actions.note_approval(client, f"task {task.task_id}", plan_hash)

    def act(loop: "Loop") -> ActionResult:
        tasks, snapshot = tasks_of(actions), loop.view.snapshot
        if snapshot is None:
            raise GuardrailRefused("no loads have been measured yet; wait a moment")
        with reading_request():
            wanted = _request(asked, snapshot, client.name, tasks.continued.now_ms())
        if loop.running:
            raise GuardrailRefused("a run is in progress; wait until it ends, or stop it")
        requested = tasks.store(wanted, snapshot)
        task = requested.task
        try:
            loop.work_on(replace(requested, approving=partial(approving, task)))
        except PlimsollError:
            files, now_ms = tasks.continued.files, tasks.continued.now_ms()
            cancel(files, task, client.name, now_ms, "its work could not begin")
            raise
        made.append(task.task_id)
        return ActionResult(message=f"task {task.task_id} ({task.words()}) is worked on")

    detail = " ".join(filter(None, (asked.operation, _words(asked))))
    actions.audited(REQUEST, client, detail, act)
    return task_text(actions, made[0])


def cancel_task(
    actions: OperatorActions, prefix: str, asked: CancelParameters, client: Client
) -> str:
    """Cancel an open task, whose run stops after its in-flight moves; the task.

    Raises UnknownTask where not one task begins with `prefix`, and as `OperatorTasks.cancel`.
    """
    tasks = tasks_of(actions)
    task = _named(tasks.continued.files, prefix)
    task_id, plan_hash = task.task_id, "" if task.plan is None else task.plan.plan_hash

    def act(_loop: "Loop") -> ActionResult:
        words = tasks.cancel(task_id, client.name, asked.reason)
        message = "; ".join(filter(None, (f"task {task_id} is cancelled", words)))
        return ActionResult(message=message, plan_hash=plan_hash)

    detail = " ".join(filter(None, (task_id, asked.reason)))
    actions.audited(CANCEL, client, detail, act, plan_hash=plan_hash)
    return task_text(actions, task_id)


def _request(asked: TaskParameters, snapshot: Snapshot, by: str, now_ms: int) -> TaskRequest:
    """The request as the commands make it. Raises ConfigError for what does not exist or fit."""
    given = {n for n in asked.model_fields_set if getattr(asked, n) not in ((), None)}
    given.discard("operation")
    for name in sorted(given - _FIELDS[asked.operation]):
        raise ConfigError(f"{asked.operation} takes no {name}")
    for name in _NEEDED.get(asked.operation, ()):
        if name not in given:
            raise ConfigError(f"{asked.operation} needs {name}")
    if _FIELDS[asked.operation] == _ON_BROKERS and not given:
        raise ConfigError(f"{asked.operation} needs brokers or racks")
    operation, members = asked.operation, snapshot.header.brokers
    brokers: tuple[BrokerId, ...] = ()
    paths: tuple[str, ...] = ()
    if operation in (Operation.DISK_REMOVE, Operation.DISK_HEAL):
        # Dead brokers are among them.
        named = [broker_of(snapshot, broker) for broker in asked.brokers]
        brokers = tuple(sorted({member.id for member in named}))
        if operation is Operation.DISK_REMOVE:
            if len(named) != 1:
                raise ConfigError("disk-remove takes the directories of one broker")
            paths = paths_of(named[0], asked.paths)
    elif "brokers" in _FIELDS[operation]:
        brokers = NamedBrokers(asked.brokers, asked.racks).among(members, operation)
        if operation is Operation.REPLACE and len(brokers) != 1:
            raise ConfigError(f"replace takes one broker at a time, not {len(brokers)}")
    return TaskRequest(
        operation=operation,
        brokers=brokers,
        onto=None if asked.onto is None else NamedBrokers((asked.onto,)).among(members)[0],
        paths=paths,
        topics=topics_of(snapshot, asked.topics) if asked.topics else (),
        replicas=asked.replicas,
        by=by,
        at_ms=now_ms,
    )


def _words(asked: TaskParameters) -> str:
    """What a request names, for the audit log."""
    found = [*map(str, asked.brokers), *asked.racks, *asked.paths, *asked.topics]
    found += [] if asked.onto is None else [f"onto {asked.onto}"]
    found += [] if asked.replicas is None else [f"{asked.replicas} replicas"]
    return " ".join(found)
