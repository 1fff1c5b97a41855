"""A run: what the executor does with a plan, its journal records, its report."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from model.cpu import Loads
from model.files import FileModel, VersionedModel, unless_empty
from model.goals.goals import Stay
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.plan.remaining import OverLimit, RackViolation
from model.run_health import RunHealth


class MoveState(StrEnum):
    """The state of one move of a run."""

    PLANNED = "planned"
    ISSUED = "issued"
    DONE = "done"
    DROPPED = "dropped"
    STUCK = "stuck"


UNFINISHED = (MoveState.PLANNED, MoveState.ISSUED, MoveState.STUCK)
"""States of moves that a resumed run continues."""


class RunState(StrEnum):
    """The state of a run; values are those of the first journals."""

    CHECKING = "checking"
    RUNNING = "running"
    PAUSED = "paused"
    """Starts no moves for now; in-flight moves continue."""
    STOPPING = "stopping"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "cut off"
    """Interrupted: its process ended before the run did."""
    REFUSED = "refused"
    """It never started: nothing was changed, and no journal exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveProgress:
    """One move of a run, as the screen and the report show it."""

    move: Move
    state: MoveState = MoveState.PLANNED
    issued_at_ms: int | None = None
    done_at_ms: int | None = None
    bytes_copied: int | None = None
    """Bytes that arrived on the new replicas; None where that cannot be seen."""
    stall_s: tuple[float, float] | None = None
    """How long metadata showed no leader, at least and at most; None where that was
    not watched from request to end."""
    requests: int = 0
    """Requests sent for it, elections included."""
    retries: int = 0
    """Of these, repetitions without effect so far; not those of a resumed run."""
    note: str = ""
    """Why it was skipped, cancelled or is stuck; else observations on it."""
    unneeded: bool = False
    """Whether it was skipped since its reason has passed, as that of a dead broker's return."""

    @property
    def seconds(self) -> float | None:
        """Seconds from the first request to the end; None until the move is done."""
        if self.issued_at_ms is None or self.done_at_ms is None:
            return None
        return (self.done_at_ms - self.issued_at_ms) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """A whole run at one moment; immutable, handed to observers."""

    run_id: str
    plan_hash: str
    state: RunState
    moves: tuple[MoveProgress, ...]
    started_at_ms: int
    reason: str = ""
    """Why it stopped or failed, or another remark; usually empty."""
    preparation_s: float = 0.0
    """Seconds before the first move, spent on moving segments into the tier."""
    foreseen_s: float | None = None
    """Estimated seconds for all moves, as of when the first began."""
    left_s: float | None = None
    """Estimated seconds until the moves end; updated every 10 s."""
    left_at_ms: int | None = None
    """Time of that estimate, milliseconds since the epoch."""
    health: RunHealth | None = None
    """The last check of the whole cluster; None before the first, and for previous runs."""

    def count(self, *states: MoveState) -> int:
        """Number of moves in any of these states."""
        return sum(m.state in states for m in self.moves)


class JournalEvent(StrEnum):
    """The kind of event that a journal record reports; values never change."""

    STARTED = "started"
    RESUMED = "resumed"
    """The run was interrupted, and another process resumes it."""
    PREPARED = "prepared"
    THROTTLED = "throttled"
    """Written and synced before a throttle is set."""
    UNTHROTTLED = "unthrottled"
    """All throttles of the run have been removed."""
    BALANCER_SUSPENDED = "balancer stood down"
    """Written and synced before AutoMQ's own balancer is suspended."""
    BALANCER_RESTORED = "balancer restored"
    SEGMENTS_LOWERED = "segments shortened"
    """Written and synced before segment.bytes of topics is lowered."""
    SEGMENTS_RESTORED = "segments restored"
    PAUSED = "paused"
    PAUSE_ENDED = "went on"
    """A pause has ended."""
    ISSUING = "issuing"
    """Written and synced before the request is sent."""
    ISSUED = "issued"
    ELECTING = "electing"
    """Written and synced before a preferred election is requested."""
    CANCELLING = "cancelling"
    """Written and synced before a move is cancelled."""
    MOVED = "moved"
    NOTED = "noted"
    """Observations on a finished move."""
    DROPPED = "dropped"
    STUCK = "stuck"
    ENDED = "ended"
    CREATING = "creating"
    """Written and synced before a topic is created; `detail` says which and how."""
    CORDONING = "cordoning"
    """Written and synced before `cordoned.log.dirs` is set on a broker."""
    UNCORDONING = "uncordoning"
    """Written and synced before it is removed again."""
    UNCORDONED = "uncordoned"
    """It was removed, or someone else has changed it."""
    REPAIRED = "repaired"
    """Damaged lines were removed; `detail` names them and the original file."""


class JournalRecord(VersionedModel):
    """One line of a run's journal; `executor.journal.records` chains the lines."""

    schema_version: str = "2.0"
    at_ms: int
    checksum: str = ""
    """Of the line without it; empty in schema 1, which had none."""
    previous: str = ""
    """Checksum of the previous record; empty in the first one."""
    sequence: int | None = None
    """Position in the journal, from 1; None in schema 1."""
    event: JournalEvent
    run_id: str
    plan_hash: str
    cluster_id: str
    topic: TopicName | None = None
    partition: int | None = None
    replicas_before: tuple[BrokerId, ...] = ()
    replicas_after: tuple[BrokerId, ...] = ()
    detail: dict[str, Any] = {}

    @property
    def id(self) -> PartitionId | None:
        """The partition that the record is about; None if it is about the whole run."""
        if self.topic is None or self.partition is None:
            return None
        return PartitionId(self.topic, self.partition)


class MoveReport(FileModel):
    """The outcome of one move: its state, duration, bytes, stall and requests."""

    topic: TopicName
    partition: int
    replicas_before: tuple[BrokerId, ...]
    replicas_after: tuple[BrokerId, ...]
    state: MoveState
    duration_s: float | None
    bytes_copied: int | None
    stall_at_least_s: float | None = None
    """How long metadata certainly showed no leader; None where that was not watched
    from request to end."""
    stall_at_most_s: float | None = None
    """How long they may have shown none, including time between two polls."""
    requests: int = 0
    """Requests sent for it, elections included."""
    retries: int = 0
    """Of these, repetitions without effect so far; not those of a resumed run."""
    note: str = ""


class BrokerBalance(FileModel):
    """One broker's load before the plan, as planned, and as achieved.

    By dimension, with the loads of partitions that the plan was made with; deviations
    are utilisation / average - 1.
    """

    id: BrokerId
    before: Loads
    planned: Loads
    achieved: Loads
    """With the placement that metadata showed at the end."""
    deviation_before: dict[str, float]
    deviation_planned: dict[str, float]
    deviation_achieved: dict[str, float]


class RunReport(FileModel):
    """The outcome of a run: its state, its moves, and the balance achieved."""

    run_id: str
    plan_hash: str
    state: RunState
    reason: str
    started_at_ms: int
    duration_s: float
    preparation_s: float
    foreseen_s: float | None = None
    """Estimated seconds for all moves, as of when the first began."""
    moves: tuple[MoveReport, ...]
    outdated: Annotated[bool, unless_empty] = False
    """Whether moves of a resumed run no longer fit the cluster, so that only another plan helps."""
    brokers: tuple[BrokerBalance, ...] = ()
    """Empty where the plan does not state the loads of its partitions."""
    over_limit: Annotated[tuple[OverLimit, ...], unless_empty] = ()
    """Limits of the plan that remain exceeded, with the load achieved as `after`."""
    rack_violations: Annotated[tuple[RackViolation, ...], unless_empty] = ()
    """Rack violations of the plan that remain."""
    deferred: Annotated[tuple[Stay, ...], unless_empty] = ()
    """Partitions that had to move and that the plan left to a later one."""
    rollback: "RunReport | None" = None
    """Report of the rollback of this run, where a stop rule requires one."""
