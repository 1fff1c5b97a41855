"""A run: what the executor does with a plan, its journal records, its report."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pydantic import SerializerFunctionWrapHandler, model_serializer

from model.files import FileModel, VersionedModel
from model.goals.goals import Stay
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.plan.remaining import OverLimit, RackViolation


class MoveState(StrEnum):
    """Where one move stands."""

    PLANNED = "planned"
    ISSUED = "issued"
    DONE = "done"
    DROPPED = "dropped"
    STUCK = "stuck"


UNFINISHED = (MoveState.PLANNED, MoveState.ISSUED, MoveState.STUCK)
"""States of moves that a resumed run continues."""


class RunState(StrEnum):
    """Where a run stands."""

    CHECKING = "checking"
    RUNNING = "running"
    PAUSED = "paused"
    """Nothing is started for now; what runs goes on."""
    STOPPING = "stopping"
    DONE = "done"
    STOPPED = "stopped"
    FAILED = "failed"
    INTERRUPTED = "cut off"
    """Its process ended before it did."""
    REFUSED = "refused"
    """It was not begun: nothing was changed, and there is no journal."""


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
    """How often the cluster was asked for it, elections too."""
    retries: int = 0
    """Of these, repeated since nothing followed; without what a resumed run sends."""
    note: str = ""
    """Why it was dropped or is stuck; else what was found before or after it."""

    @property
    def seconds(self) -> float | None:
        """From request to done."""
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
    """Why it stopped or failed, or what else is to be known of it; mostly empty."""
    preparation_s: float = 0.0
    """Time spent before the first move, on getting segments into the tier."""
    foreseen_s: float | None = None
    """Seconds that the moves were expected to take when the first had begun."""
    left_s: float | None = None
    """Seconds that they are expected to take yet; estimated anew every 10 s."""
    left_at_ms: int | None = None
    """When that was estimated."""

    def count(self, *states: MoveState) -> int:
        """Moves in any of these states."""
        return sum(m.state in states for m in self.moves)


class JournalEvent(StrEnum):
    """What a journal record says."""

    STARTED = "started"
    RESUMED = "resumed"
    """The run was cut off, and another process goes on with it."""
    PREPARED = "prepared"
    THROTTLED = "throttled"
    """Written and synced before a throttle is set."""
    UNTHROTTLED = "unthrottled"
    """All of it was taken away."""
    BALANCER_SUSPENDED = "balancer stood down"
    """Written and synced before AutoMQ's own balancer is."""
    BALANCER_RESTORED = "balancer restored"
    SEGMENTS_LOWERED = "segments shortened"
    """Written and synced before topics' segments are."""
    SEGMENTS_RESTORED = "segments restored"
    PAUSED = "paused"
    PAUSE_ENDED = "went on"
    """A pause has ended."""
    ISSUING = "issuing"
    """Written and synced before the request is sent."""
    ISSUED = "issued"
    ELECTING = "electing"
    """Written and synced before a preferred election is asked for."""
    CANCELLING = "cancelling"
    """Written and synced before a move is cancelled."""
    MOVED = "moved"
    NOTED = "noted"
    """What was found out after a move that is done."""
    DROPPED = "dropped"
    STUCK = "stuck"
    ENDED = "ended"
    CREATING = "creating"
    """Written and synced before a topic is created; `detail` says which and how."""
    REPAIRED = "repaired"
    """Damaged lines were taken out; `detail` names them and the original file."""


class JournalRecord(VersionedModel):
    """One line of a run's journal; `records` says how lines are chained."""

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
        """The partition it is about, if any."""
        if self.topic is None or self.partition is None:
            return None
        return PartitionId(self.topic, self.partition)


class MoveReport(FileModel):
    """What one move took."""

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
    """How long they may have shown none, with what passed unseen between two looks."""
    requests: int = 0
    """How often the cluster was asked for it, elections too."""
    retries: int = 0
    """Of these, repeated since nothing followed; without what a resumed run sends."""
    note: str = ""


class BrokerBalance(FileModel):
    """One broker's load as the plan found it, wanted it, and got it.

    By dimension, with the loads of partitions that the plan was made with; deviations
    are utilisation / level - 1.
    """

    id: BrokerId
    before: dict[str, float]
    planned: dict[str, float]
    achieved: dict[str, float]
    """With the placement that metadata showed at the end."""
    deviation_before: dict[str, float]
    deviation_planned: dict[str, float]
    deviation_achieved: dict[str, float]


class RunReport(FileModel):
    """How a run ended."""

    run_id: str
    plan_hash: str
    state: RunState
    reason: str
    started_at_ms: int
    duration_s: float
    preparation_s: float
    foreseen_s: float | None = None
    """Seconds that the moves were expected to take when the first had begun."""
    moves: tuple[MoveReport, ...]
    brokers: tuple[BrokerBalance, ...] = ()
    """Empty where the plan does not tell what its partitions weigh."""
    over_limit: tuple[OverLimit, ...] = ()
    """Limits of the plan that remain exceeded, with the load achieved as `after`."""
    rack_violations: tuple[RackViolation, ...] = ()
    """Rack violations of the plan that remain."""
    deferred: tuple[Stay, ...] = ()
    """Partitions that had to move and that the plan left to a later one."""
    rollback: "RunReport | None" = None
    """Of the run that moved back what this one had finished, where a rule asks so."""

    @model_serializer(mode="wrap")
    def _without_empty(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        document: dict[str, Any] = whole(self)
        for name in ("over_limit", "rack_violations", "deferred"):
            if not document.get(name, True):
                del document[name]
        return document
