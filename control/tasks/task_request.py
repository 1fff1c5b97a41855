"""A request for a task: refused as a whole, or a task that is not kept yet."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from control.tasks.broker_task import MOST_BROKERS, MOST_PATHS, MOST_TOPICS, BrokerTask, Operation
from control.tasks.demotion import ENDS, refuse_undemoted
from control.tasks.operations import OPERATIONS, refuse_marked
from control.tasks.removal import brokers_of, refuse_contradictions
from control.tasks.task_files import TaskFiles
from model.errors import ConfigError
from model.goals.goals import Goals
from model.ids import BrokerId, TopicName, is_broker_id
from model.snapshot.snapshot import Broker, Snapshot

UNSIGNED: Final = (
    "plans need a signature (require_signature), and a task makes its plans while it runs; save "
    'the field "plan" of what --dry-run -o json prints, sign it with plimsoll sign, and execute it '
    "with plimsoll apply"
)
"""Why no task is worked on where signatures are required, and what to do instead."""


@dataclass(frozen=True, slots=True)
class NamedBrokers:
    """Brokers as a person names them: ids and whole racks."""

    ids: tuple[int, ...] = ()
    racks: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> "NamedBrokers":
        """Read `4 5 --rack az-1`, as the commands take them; commas may separate ids.

        Raises ConfigError for any other word.
        """
        try:
            words = shlex.split(text)
        except ValueError as exc:
            raise ConfigError(f"brokers: {str(exc).lower()}") from exc
        ids: list[int] = []
        racks: list[str] = []
        while words:
            word = words.pop(0)
            name, is_given, rack = word.partition("=")
            if name == "--rack":
                if not is_given and not words:
                    raise ConfigError("brokers: --rack needs the name of a rack")
                racks.append(rack if is_given else words.pop(0))
                continue
            for part in filter(None, word.split(",")):
                if not is_broker_id(part):
                    raise ConfigError(f"brokers: {part!r} is not a broker id, nor --rack RACK")
                ids.append(int(part))
        if not ids and not racks:
            raise ConfigError("no broker is named; give ids or --rack RACK")
        return cls(tuple(ids), tuple(racks))

    def among(
        self, members: Sequence[Broker], asked: Operation | None = None, noun: str = "broker"
    ) -> tuple[BrokerId, ...]:
        """Their ids, ascending. Raises ConfigError as `brokers_of`.

        asked: what is requested for them, if that is known. noun: as of `brokers_of`.
        """
        return tuple(brokers_of(members, self.ids, self.racks, noun, ends=asked in ENDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequest:
    """What a person asks for."""

    operation: Operation
    brokers: tuple[BrokerId, ...]
    """Ascending."""
    onto: BrokerId | None = None
    """The broker that replaces them; None but for `replace`."""
    paths: tuple[str, ...] = ()
    """Log directories of the broker, sorted."""
    topics: tuple[TopicName, ...] = ()
    """Sorted."""
    replicas: int | None = None
    """Of each partition of the topics."""
    by: str
    """Who asks."""
    at_ms: int
    """Milliseconds since the epoch."""


def requested_task(
    files: TaskFiles, snapshot: Snapshot, goals: Goals, asked: TaskRequest
) -> tuple[BrokerTask, bool]:
    """The open task of this request, or one that is not kept yet; whether it is not new.

    Raises GuardrailRefused where other tasks, marks, or the state of the cluster forbid it, and
    ConfigError where it names more than a task may.
    """
    _refuse_many(asked)
    cluster_id = snapshot.header.cluster_id
    tasks = _tasks_of(files, cluster_id, asked)
    task = BrokerTask.requested(
        f"{asked.operation}-new",
        cluster_id,
        asked.operation,
        asked.brokers,
        by=asked.by,
        ms=asked.at_ms,
        onto=asked.onto,
        paths=asked.paths,
        topics=asked.topics,
        replicas=asked.replicas,
    )
    for other in tasks:
        if other.is_open and other.request == task.request:
            return other, True
    refuse_contradictions(tasks, task)
    if OPERATIONS[asked.operation].marks:
        _refuse_marks(files, snapshot, tasks, asked)
    OPERATIONS[asked.operation].refuse(task, snapshot, goals)
    return task, False


def _refuse_many(asked: TaskRequest) -> None:
    most = {
        "broker": (asked.brokers, MOST_BROKERS),
        "log directory": (asked.paths, MOST_PATHS),
        "topic": (asked.topics, MOST_TOPICS),
    }
    for noun, (named, limit) in most.items():
        if len(named) > limit:
            many = "log directories" if noun == "log directory" else f"{noun}s"
            raise ConfigError(
                f"one task takes at most {limit:,} {many}, and {len(named):,} are named; request "
                "several tasks, one after the other"
            )


def _tasks_of(files: TaskFiles, cluster_id: str, asked: TaskRequest) -> list[BrokerTask]:
    """The tasks of a cluster, oldest first.

    Raises ConfigError for a file that cannot be read: it may be about the same brokers. The end
    of a demotion needs that of the demotion alone, which marks name.
    """
    if asked.operation not in ENDS:
        return files.of(cluster_id)
    tasks, unreadable = files.readable(cluster_id)
    known = {task.task_id for task in tasks}
    named = {m.task_id for m in files.marks(cluster_id) if m.broker in asked.brokers}
    if unreadable and named - known - {""}:
        raise ConfigError(unreadable[0])
    return tasks


def _refuse_marks(
    files: TaskFiles, snapshot: Snapshot, tasks: Sequence[BrokerTask], asked: TaskRequest
) -> None:
    cluster_id = snapshot.header.cluster_id
    marks = files.marks(cluster_id)
    refuse_marked(marks, cluster_id, asked.brokers, OPERATIONS[asked.operation].replaces)
    if asked.operation in ENDS:
        refuse_undemoted(tasks, asked.brokers, marks)
