"""A task: what was requested, its phases, and its plans. Values only."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Final, Literal, Protocol

from pydantic import Field

from control.tasks.broker_marks import BrokerMark
from control.tasks.sealed_files import checksum_of
from model.files import FileModel, VersionedModel
from model.ids import BrokerId, TopicName
from model.units import count_text, listed

KIND: Final = "plimsoll.task"
SCHEMA_VERSION: Final = "1.5"
TASK_ID: Final = r"^[a-z0-9][A-Za-z0-9-]{0,99}$"
MOST_BROKERS: Final = 10_000
"""Brokers of one task."""
MOST_PATHS: Final = 1_000
"""Log directories of one task."""
MOST_TOPICS: Final = 100_000
"""Topics of one task."""
MOST_AT_MIN_ISR: Final = 5
"""Topics named in a sentence on `min.insync.replicas`."""
NAMED: Final = 3
"""Topics and directories named in words."""
MOST_NOTE: Final = 500
"""Characters of the note of a phase."""
MOST_PHASES: Final = 1_000
"""Phases kept; the oldest after the request are removed when there are more."""


class Operation(StrEnum):
    """What a task does."""

    REMOVE = "remove"
    """Move all replicas off brokers, and keep new ones away."""
    DEMOTE = "demote"
    """Let other replicas lead, and keep leaders away."""
    UNDEMOTE = "undemote"
    """Lift a demotion, and elect the leaders back."""
    MAINTENANCE = "maintenance"
    """As `demote`, until maintenance ends."""
    MAINTENANCE_OFF = "maintenance-off"
    ADD = "add"
    """Fill brokers until they are within their tolerance."""
    REPLACE = "replace"
    """Move the replicas of one broker to another, one for one."""
    DISK_REMOVE = "disk-remove"
    """Move all replicas out of log directories of one broker. Since 1.3."""
    DISK_HEAL = "disk-heal"
    """Create the replicas of failed log directories again on other brokers. Since 1.3."""
    SET_REPLICAS = "set-replicas"
    """Change the replication factor of topics. Since 1.3."""
    REPAIR = "repair"
    """Repair whatever is broken on the cluster. Since 1.3."""


class TaskPhase(StrEnum):
    """How far a task is."""

    REQUESTED = "requested"
    PLANNED = "planned"
    """A plan exists and waits for approval."""
    APPROVED = "approved"
    MOVING = "moving"
    """Its run has begun, and may have been interrupted since."""
    VERIFIED = "verified"
    """The cluster itself shows what was requested: of a removal, no replica on the brokers."""
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    """It can be resumed, unless nothing was approved yet."""


class PhaseChange(FileModel):
    """When a task entered a phase."""

    phase: TaskPhase
    at_ms: int
    """Milliseconds since the epoch."""
    note: str = ""
    """Why, or by whom."""


class TaskPlan(FileModel):
    """One plan of a task; the sealed plan lies beside the task."""

    plan_hash: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    moves: Annotated[int, Field(ge=0)]
    bytes_to_copy: int | None
    """None where sizes are unknown."""
    least_bytes: int | None
    """No plan empties the brokers with fewer bytes; None where sizes are unknown, and of
    operations that empty none."""
    replicas: Annotated[int, Field(ge=0)]
    """What was left to do when it was made: replicas to move, or partitions that need another
    leader."""
    approved_by: str = ""
    approved_at_ms: int | None = None
    """None until it is approved."""
    closed: str = ""
    """What became of it, once nothing more is done with it."""


class TaskProgress(FileModel):
    """How far the run of the newest plan is."""

    at_ms: int
    run_id: str
    moves_done: int
    moves: int
    bytes_copied: int
    bytes_to_copy: int | None
    """None where sizes are unknown."""
    seconds_left: float | None
    """Estimated time until the last move ends; None while unknown."""


class TopicAtMinIsr(FileModel):
    """A topic that needs the brokers of a demotion: producers with acks=all get errors without."""

    topic: TopicName
    partitions: Annotated[int, Field(ge=1)]
    """Those that would have fewer in-sync replicas than `min.insync.replicas`."""
    min_insync_replicas: int


class BrokerTask(VersionedModel):
    """One task; immutable: each change makes a new value."""

    kind: Literal["plimsoll.task"] = KIND
    schema_version: str = SCHEMA_VERSION
    task_id: Annotated[str, Field(pattern=TASK_ID)]
    cluster_id: str
    operation: Operation
    brokers: Annotated[tuple[BrokerId, ...], Field(max_length=MOST_BROKERS)]
    """Ascending; empty where the operation names none: `set-replicas`, `repair`, and `disk-heal`
    of all brokers."""
    onto: BrokerId | None = None
    """The broker that replaces them; None but for `replace`. Since 1.1."""
    paths: Annotated[tuple[str, ...], Field(max_length=MOST_PATHS)] = ()
    """Log directories of its broker, sorted; empty but for `disk-remove`. Since 1.3."""
    topics: Annotated[tuple[TopicName, ...], Field(max_length=MOST_TOPICS)] = ()
    """Sorted; empty but for `set-replicas`. Since 1.3."""
    replicas: Annotated[int, Field(ge=1)] | None = None
    """Of each partition of its topics; None but for `set-replicas`. Since 1.3."""
    by: str
    """Who requested it."""
    phases: Annotated[tuple[PhaseChange, ...], Field(min_length=1)]
    """Oldest first."""
    plans: tuple[TaskPlan, ...] = ()
    """Oldest first; all but the last are closed."""
    progress: TaskProgress | None = None
    stopped_by: str = ""
    """Who stopped its run; it then waits for `task resume`. Empty where nobody did. Since 1.2."""
    at_min_isr: Annotated[tuple[TopicAtMinIsr, ...], Field(max_length=MOST_TOPICS)] = ()
    """Topics that its brokers must not be stopped for, by name, as at its end; empty but for
    `demote` and `maintenance`. Since 1.4."""
    replaced: Annotated[tuple[BrokerMark, ...], Field(max_length=MOST_BROKERS)] = ()
    """Marks whose place its own have taken, by broker; they return where its own end before the
    task is done. Since 1.5."""
    cordoned: Annotated[tuple[BrokerId, ...], Field(max_length=MOST_BROKERS)] = ()
    """Its brokers that plimsoll had cordoned before. Since 1.5."""
    checksum: str = ""
    """Of the file without it."""

    @property
    def phase(self) -> TaskPhase:
        """The newest phase."""
        return self.phases[-1].phase

    @property
    def note(self) -> str:
        """Why the newest phase was entered."""
        return self.phases[-1].note

    @property
    def requested_at_ms(self) -> int:
        """Time of the request, milliseconds since the epoch."""
        return self.phases[0].at_ms

    @property
    def approved(self) -> bool:
        """Whether any of its plans was approved, so that replicas may have moved."""
        return any(plan.approved_at_ms is not None for plan in self.plans)

    @property
    def is_open(self) -> bool:
        """Whether it can be resumed or cancelled."""
        if self.phase is TaskPhase.FAILED:
            return self.approved
        return self.phase not in (TaskPhase.DONE, TaskPhase.CANCELLED)

    @property
    def plan(self) -> TaskPlan | None:
        """The plan that is worked on; None where there is none, or the last was closed."""
        newest = self.plans[-1] if self.plans else None
        return None if newest is None or newest.closed else newest

    @classmethod
    def requested(
        cls,
        task_id: str,
        cluster_id: str,
        operation: Operation,
        brokers: tuple[BrokerId, ...],
        *,
        by: str,
        ms: int,
        onto: BrokerId | None = None,
        paths: tuple[str, ...] = (),
        topics: tuple[TopicName, ...] = (),
        replicas: int | None = None,
    ) -> "BrokerTask":
        """A task as it was requested at `ms`, milliseconds since the epoch; not sealed."""
        return cls(
            task_id=task_id,
            cluster_id=cluster_id,
            operation=operation,
            brokers=brokers,
            onto=onto,
            paths=paths,
            topics=topics,
            replicas=replicas,
            by=by,
            phases=(PhaseChange(phase=TaskPhase.REQUESTED, at_ms=ms, note=f"by {by}"),),
        )

    @property
    def named(self) -> tuple[BrokerId, ...]:
        """Every broker that it is about."""
        return self.brokers if self.onto is None else (*self.brokers, self.onto)

    def continues(self, other: "BrokerTask") -> bool:
        """Whether its phases are those of `other` and later ones."""
        before = len(other.phases)
        same = self.task_id == other.task_id and self.cluster_id == other.cluster_id
        return same and len(self.phases) > before and self.phases[:before] == other.phases

    def words(self) -> str:
        """What it does: `remove broker 4`, `set 3 replicas of orders`."""
        return task_words(self)

    @property
    def request(self) -> tuple[object, ...]:
        """What was requested: two tasks for the same have the same."""
        return (self.operation, self.brokers, self.onto, self.paths, self.topics, self.replicas)

    def entered(self, phase: TaskPhase, at_ms: int, note: str = "") -> "BrokerTask":
        """Return the task in another phase; the same phase and note again change nothing."""
        if (self.phase, self.note) == (phase, note[:MOST_NOTE]):
            return self
        change = PhaseChange(phase=phase, at_ms=at_ms, note=note[:MOST_NOTE])
        first, *rest = self.phases
        kept = (*rest, change)[-(MOST_PHASES - 1) :]
        return self.model_copy(update={"phases": (first, *kept)})

    def planned(self, plan: TaskPlan, at_ms: int, note: str) -> "BrokerTask":
        """Return the task with another plan, which waits for approval."""
        task = self.model_copy(update={"plans": (*self.plans, plan), "progress": None})
        return task.entered(TaskPhase.PLANNED, at_ms, note)

    def with_plan(self, **changes: Any) -> "BrokerTask":
        """Return the task with fields of its newest plan changed."""
        *before, newest = self.plans
        plans = (*before, newest.model_copy(update=changes))
        return self.model_copy(update={"plans": plans})

    def sealed(self) -> "BrokerTask":
        """Return the task with its checksum."""
        return self.model_copy(update={"checksum": checksum_of(self.model_dump(mode="json"))})


class Requested(Protocol):
    """What a task was requested for; `BrokerTask` and what is printed of it fit."""

    @property
    def operation(self) -> Operation:
        """What it does."""
        ...

    @property
    def brokers(self) -> Sequence[int]:
        """As `BrokerTask.brokers`; so are the others."""
        ...

    @property
    def onto(self) -> int | None: ...

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def topics(self) -> Sequence[str]: ...

    @property
    def replicas(self) -> int | None: ...


def task_words(task: Requested) -> str:
    """What a task does: `remove broker 4`, `empty /d2 of broker 4`, `set 3 replicas of orders`."""
    if task.operation is Operation.DISK_REMOVE:
        return f"empty {dirs_text(task)}"
    if task.operation is Operation.DISK_HEAL:
        return f"heal the failed directories of {healed_text(task)}"
    if task.operation is Operation.SET_REPLICAS:
        count = count_text(task.replicas or 0, "replica")
        return f"set {count} of {listed(task.topics, NAMED)}"
    if task.operation is Operation.REPAIR:
        return "repair the cluster"
    return request_text(task.operation, task.brokers, task.onto)


def dirs_text(task: Requested) -> str:
    """The log directories of a task: `/d2 of broker 4`."""
    return f"{listed(task.paths, NAMED)} of {brokers_text(task.brokers)}"


def healed_text(task: Requested) -> str:
    """The brokers of a task that may name none: `broker 4`, `all brokers`."""
    return brokers_text(task.brokers) if task.brokers else "all brokers"


def request_text(operation: Operation, brokers: Sequence[int], onto: int | None) -> str:
    """What a task does: `remove broker 4`, `replace broker 4 with 5`."""
    other = "" if onto is None else f" with {onto}"
    return f"{operation} {brokers_text(brokers)}{other}"


def min_isr_text(topics: Sequence[TopicAtMinIsr], brokers: Sequence[int]) -> str:
    """What is lost while the brokers of a demotion are stopped, as a clause; empty for nothing."""
    if not topics:
        return ""
    count = sum(topic.partitions for topic in topics)
    are = "is" if len(brokers) == 1 else "are"
    have = "has" if count == 1 else "have"
    named = [f"{t.topic} {t.partitions:,} (needs {t.min_insync_replicas})" for t in topics]
    return (
        f"while {brokers_text(brokers)} {are} stopped, {count_text(count, 'partition')} {have} "
        "fewer in-sync replicas than min.insync.replicas, so that producers with acks=all get "
        f"errors: {listed(named, MOST_AT_MIN_ISR)}"
    )


def brokers_text(brokers: Sequence[int], most: int = 10) -> str:
    """`broker 4`, `brokers 4, 5`, or `brokers 1, 2 and 8 more`."""
    return f"broker{'s' if len(brokers) > 1 else ''} {listed(brokers, most)}"
