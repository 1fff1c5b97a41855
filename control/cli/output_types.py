"""Types of the JSON that commands print with `-o json`; schemas come from them."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from control.demo.report import DemoReport
from control.loop.policy import Decision
from control.loop.view import Mode, Phase
from control.service.audit_log import AuditOutcome, AuditVia
from control.service.member_state import MemberState
from control.tasks.broker_marks import BrokerMark
from control.tasks.broker_task import (
    Operation,
    PhaseChange,
    TaskPhase,
    TaskPlan,
    TaskProgress,
    TopicAtMinIsr,
)
from model.cpu import figures_to_file
from model.files import FileModel, rounded
from model.goals.effort import Effort
from model.goals.goals import EmptiedDir
from model.ids import BrokerId
from model.plan.plan import Plan, PlanStatus
from model.plan.replication_change import ReplicationChange
from model.run import RunReport, RunState
from model.snapshot.forecast import LoadForecast
from model.snapshot.snapshot import BrokerState, CapacitySource, Source, StorageKind

Figure = Annotated[float, PlainSerializer(rounded, when_used="json")]
"""A figure, rounded as in files."""
Name = Annotated[str, BeforeValidator(str)]
"""The text of a value: a path, or a partition as `orders-7`."""


def _written(figures: dict[str, float]) -> dict[str, float]:
    return {name: rounded(value) for name, value in figures_to_file(figures).items()}


Figures = Annotated[dict[str, float], PlainSerializer(_written, when_used="json")]
"""Figures by resource, rounded and in the units of files."""


class Answer(FileModel):
    """Base of what commands print."""

    # Of a hundred kinds, a process prints one or two: the others are never built.
    model_config = ConfigDict(from_attributes=True, defer_build=True)

    @classmethod
    def of(cls, source: object = None, /, **others: Any) -> Self:
        """The answer with the attributes of `source` as fields, and with the other fields.

        Inner answers are made of the attributes of inner values in the same way.
        """
        names = [n for n in cls.model_fields if n not in others and hasattr(source, n)]
        fields = {n: getattr(source, n) for n in names} | others
        return cls.model_validate(fields, strict=False)


class PartialAnswer(Answer):
    """Base of answers whose JSON lacks the fields that were not given."""

    @model_serializer(mode="wrap")
    def _given(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {n: v for n, v in whole(self).items() if n in self.model_fields_set}


# ---- configuration


class SettingAnswer(Answer):
    """One setting."""

    name: str
    """Its name, with dots between a table and its key."""
    value: Any
    """The value in use; secrets are masked as `****`."""
    source: Literal["flag", "environment", "profile", "file", "default"]
    place: str
    """The option, the variable, or the file and its line; empty for a default."""


class ConfigAnswer(Answer):
    """`config show`."""

    file: str | None
    """The configuration file that was read."""
    profile: str | None
    settings: tuple[SettingAnswer, ...]


# ---- observation


class BrokerAnswer(Answer):
    """A broker; values by resource, absent if unknown."""

    id: int
    rack: str | None
    state: BrokerState
    capacity: Figures
    """Bytes, bytes/s, or percent of a core."""
    capacity_from: dict[str, CapacitySource]


class LoadedBroker(BrokerAnswer):
    """A broker with its load."""

    load: Figures
    deviation: dict[str, Figure]
    """Deviation from the average, as a share of it."""


class PartitionAnswer(Answer):
    """A partition and its load; unknown values are absent."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    storage: StorageKind
    load: Figures
    measured: tuple[str, ...]
    """Resources whose load was measured rather than estimated."""


class BrokerOverLimit(Answer):
    """A broker above the allowed share of a capacity."""

    broker: int
    dimension: str
    load: float
    limit: float
    capacity: float | None


class RackViolationAnswer(Answer):
    """A partition whose replicas break the rack rule."""

    topic: str
    partition: int
    reason: str
    """Why it cannot be repaired; empty if it can."""


class RackViolationsAnswer(Answer):
    """Partitions that break the rack rule."""

    count: int
    movable: int
    """Those that a plan can repair."""
    partitions: tuple[RackViolationAnswer, ...]


class StatusAnswer(PartialAnswer):
    """`status` and `replay`; with `--watch`, one document per line."""

    cluster_id: str
    taken_at: str
    age_s: float
    sources: tuple[Source, ...]
    forecast: LoadForecast | None = None
    notes: tuple[str, ...]
    offline: int
    """Partitions without a leader."""
    under_replicated: int = 0
    """Partitions with a leader that lack in-sync replicas; absent where that is not known, as are
    those below `min.insync.replicas`."""
    below_min_isr: int = 0
    within_band: bool
    """Every broker is within its tolerance band."""
    over_limit: tuple[BrokerOverLimit, ...]
    rack_violations: RackViolationsAnswer
    objective: Figure
    levels: Figures
    """Average load of a broker, by resource."""
    brokers: tuple[LoadedBroker, ...]
    partitions: tuple[PartitionAnswer, ...]


class LoadSource(PartialAnswer):
    """A metric source."""

    name: str
    place: str = ""
    """A topic or an address."""
    found: bool
    readable: bool
    why_not: str
    newest_age_s: float | None = None
    partitions: int | None = None
    records: int | None = None
    left_out: dict[str, int] = {}
    silent_brokers: tuple[int, ...]
    clocks_ahead_s: dict[str, float] = {}


class QuantityOrigin(Answer):
    """A source, the number of partitions whose loads come from it, and the reason."""

    name: str
    partitions: int
    why: str


class Quantity(Answer):
    """A kind of load and its sources."""

    quantity: str
    by: tuple[QuantityOrigin, ...]


class InfoAnswer(Answer):
    """`info`."""

    cluster_id: str
    folder: Name
    spark_master: str
    sources: tuple[LoadSource, ...]
    quantities: tuple[Quantity, ...]
    reports_passed_over: dict[str, int]
    brokers_without_cores: tuple[int, ...]
    notes: tuple[str, ...]
    brokers: tuple[BrokerAnswer, ...]


class RecordAnswer(Answer):
    """`record`."""

    folder: Name
    duration_s: float
    partitions: int
    batches: int


class GenerateAnswer(Answer):
    """`generate`."""

    folder: Name
    brokers: int
    partitions: int
    days: int


class FileAnswer(Answer):
    """Output of a command that only wrote a file."""

    file: str


class ServeAnswer(Answer):
    """`serve`, once the page can be opened."""

    url: str


# ---- plans


class SkewedBroker(Answer):
    """A broker's share of a topic."""

    id: int
    replicas: int
    leaders: int
    skewed: bool
    leader_skewed: bool


class SkewFigures(Answer):
    """Spread of a topic over brokers."""

    partitions: int
    optimum: tuple[int, ...]
    leader_optimum: tuple[int, ...]
    brokers_skewed: Figure
    leaders_skewed: Figure
    spread: Figure
    preferred_leaders: Figure
    brokers: tuple[SkewedBroker, ...]


class SkewAnswer(Answer):
    """The spread of a topic before and after a plan."""

    before: SkewFigures
    after: SkewFigures


class GainAnswer(Answer):
    """What a plan gains, and at which expense."""

    gain: Figure
    """F before the plan less F after it, moves paid for; may be negative."""
    share: Figure
    """The same as a share of F before."""
    free: Figure
    """The part that leader changes alone would gain; all of it where nothing is copied."""
    bytes_to_copy: int | None
    """Null where the size of a partition is unknown."""
    per_byte: Figure | None
    """F gained per byte copied, beyond what is free; null where nothing is copied."""
    duration_s: Figure | None
    """Estimated duration of a run."""


class StageAnswer(Answer):
    """One effort of `plan --stages`."""

    effort: Effort
    status: PlanStatus | None
    plan: str | None
    """Hash of the plan; null without moves."""
    replica_moves: int
    leader_changes: int
    brokers_outside: int | None
    """Brokers that stay outside their tolerance."""
    gain: GainAnswer | None
    """Null without a plan."""
    notes: tuple[str, ...]


class StagesAnswer(Answer):
    """`plan --stages`: the efforts, the cheapest first."""

    stages: tuple[StageAnswer, ...]


class PlanAnswer(PartialAnswer):
    """`plan`; with `--stages`, see `StagesAnswer`."""

    status: PlanStatus
    effort: Effort = Effort.GOOD
    gain: GainAnswer | None = None
    """Null without a plan."""
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    plan: Plan | None
    skew: dict[str, SkewAnswer] = {}
    """By topic; with `--topic`."""


class ClaimAnswer(Answer):
    """One claim of a plan."""

    name: str
    holds: bool | None
    """None if it was not checked."""
    words: str


class VerifyAnswer(Answer):
    """`verify PLAN`."""

    plan: str
    """Its hash."""
    holds: bool
    objective: float
    bound: float
    gap: Figure
    bound_method: str
    claims: tuple[ClaimAnswer, ...]


class BrokenRule(Answer):
    """A rule that moves break."""

    rule: str
    words: str


class ReassignmentAnswer(Answer):
    """`verify --reassignment`."""

    changes: int
    objective_before: Figure
    objective: Figure
    deviation: Figure
    prices: Figure
    bound: Figure
    bound_by: str
    gap: Figure
    gained_share: Figure
    plimsoll_objective: Figure | None
    violations: tuple[BrokenRule, ...]


class EffectAnswer(Answer):
    """Deviation of a broker now, after the plan, and after it without the move."""

    broker: int
    dimension: str
    before: Figure
    after: Figure
    without: Figure


class MoveAnswer(Answer):
    """`explain PLAN NUMBER`: gain, cost and effects of a move."""

    number: int
    partition: Name
    gain: Figure
    price: Figure
    relieved: int | None
    goal: str | None
    reason: str
    effects: tuple[EffectAnswer, ...]


class LeftAnswer(Answer):
    """A part of the imbalance that the plan leaves, and its cause."""

    deviation: Figure
    cause: str


class ExplainAnswer(Answer):
    """`explain PLAN`."""

    plan: str
    """Its hash."""
    status: PlanStatus
    imbalance_before: Figure
    imbalance_after: Figure
    left: tuple[LeftAnswer, ...]
    moves: tuple[MoveAnswer, ...]


class NotMade(Answer):
    """A move that the plan does not make."""

    partition: Name
    broker: int
    forbidden: tuple[str, ...]
    cost: Figure
    price: Figure
    words: tuple[str, ...]


class NotMadeAnswer(Answer):
    """`explain PLAN PARTITION` for a partition that is not moved, and `--to`."""

    not_made: tuple[NotMade, ...]


class AssignedPartition(Answer):
    """A partition in Kafka reassignment JSON."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


class AssignmentAnswer(Answer):
    """Kafka reassignment JSON."""

    version: int
    partitions: tuple[AssignedPartition, ...]


class Spread(Answer):
    """Smallest and largest count per broker, and their proved limits."""

    least: int
    most: int
    greatest_lowest: int
    least_highest: int
    proved: bool


class PlacedLoad(Answer):
    """Imbalance of the expected load."""

    cost: Figure
    bound: Figure
    proved: bool


class AssignAnswer(PartialAnswer):
    """`assign`."""

    topic: str
    partitions: int
    replication_factor: int
    reasons: tuple[str, ...]
    assignment: AssignmentAnswer | None
    replica_assignment: str | None
    """For `kafka-topics --create --replica-assignment`."""
    replicas_per_broker: Spread | None
    leaders_per_broker: Spread | None
    load: PlacedLoad | None
    limited_by: str = ""
    """The reason why the search ended before the proof."""


# ---- changes


class RequestsAnswer(Answer):
    """`apply`, `rollback` and `elect-leaders` with `--dry-run`."""

    requests: tuple[str, ...]
    also: tuple[str, ...] = ()
    """What ends with the rollback of a task's run besides, such as marks of brokers, and what
    stays, in sentences."""


class CleanupAnswer(Answer):
    """`cleanup`."""

    done: tuple[str, ...]
    """Settings that were restored."""
    left: tuple[str, ...]
    """Settings of ended runs that are still in force, with the reason."""


class ElectedPartition(Answer):
    """A partition that another replica than the preferred one leads."""

    topic: str
    partition: int
    led_by: int
    preferred: int
    elected: bool
    note: str


class ElectLeadersAnswer(Answer):
    """`elect-leaders`."""

    cluster_id: str
    partitions_looked_at: int
    elections: tuple[ElectedPartition, ...]


class RepairedLine(Answer):
    """A line that a repair removed."""

    line: int
    problem: str


class DamagedLine(RepairedLine):
    """A line of a journal that cannot be used."""

    may_lose_records: bool


class JournalSummary(Answer):
    """The journal of one run."""

    run_id: str
    path: Name
    cluster_id: str | None
    state: str
    """`intact`, `no records`, `damaged`, `repaired` or `cut off at the end`."""
    records: int
    cut_off_bytes: int
    damage: tuple[DamagedLine, ...]
    repaired: tuple[RepairedLine, ...]
    plan_problem: str | None
    may_be_set: tuple[str, ...]


class TopicAnswer(Answer):
    """A topic in the figures of Kafka Manager (CMAK); shares are of 1."""

    topic: str
    internal: bool
    excluded: bool
    """Whether the goals exclude it from plans."""
    partitions: int
    replicas: int
    """Of all partitions."""
    brokers: int
    """Brokers that hold any replica."""
    brokers_spread: Figure
    """Share of the brokers that are not dead which hold any replica."""
    brokers_skew: Figure
    """Share of the holding brokers that have more replicas than the average over them, rounded
    up."""
    leader_skew: Figure
    """The same of leaders."""
    preferred_leaders: Figure
    """Share of the partitions that their preferred leader leads."""
    replicas_per_broker: tuple[int, int]
    """Fewest and most."""
    even_replicas_per_broker: tuple[int, int]
    """The same, were they spread evenly."""
    offline_partitions: int
    """Partitions without a leader."""
    under_replicated: Figure | None = None
    """Share of the partitions that have fewer replicas in sync than replicas; None where the
    cluster was not asked, as for a snapshot file."""
    load: Figures
    """Bytes/s from producers and to consumers."""
    size_bytes: int
    """Of all partitions, one replica each."""


class TopicsAnswer(Answer):
    """`topics`."""

    cluster_id: str
    taken_at: str
    topics: tuple[TopicAnswer, ...]
    """By name."""


class JournalAnswer(Answer):
    """`journal verify` and `journal repair`."""

    journals: tuple[JournalSummary, ...]


class DecisionAnswer(Answer):
    """One decision of `run --auto`."""

    at: str
    at_ms: int
    """When it was first taken; repetitions that differ in remaining times and loads alone are not
    recorded."""
    age_s: Figure
    cluster_id: str
    decision: Decision
    trigger: str
    """The most urgent reason for a plan; empty if none is needed."""
    reason: str
    """Why this was decided."""
    reconsidered: str
    """When, in words."""
    until: str | None
    until_ms: int | None
    """Earliest time at which waiting alone can change it; None where it cannot."""
    plan_hash: str
    trigger_name: str
    """The setting in `[triggers]` of that reason; empty if none fired."""


class DecidingAnswer(Answer):
    """Whether `run --auto`, or a service, decides about a cluster on this machine."""

    cluster_id: str
    running: bool | None
    """None where that is not known."""
    last_seen: str | None
    last_seen_ms: int | None
    """When it ended, or last gave a sign of life; None while it runs, or where not known."""


class WhyAnswer(Answer):
    """`why`."""

    decisions: tuple[DecisionAnswer, ...]
    clusters: tuple[DecidingAnswer, ...] = ()
    """All that decisions are recorded of, by id."""


class WaitingAnswer(Answer):
    """A plan of `run --auto` that waits for a person."""

    plan_hash: str
    cluster_id: str
    trigger_name: str
    """The setting in `[triggers]` that it is for."""
    reason: str
    """Why it waits."""
    moves: int
    bytes_to_copy: int | None
    asked_at: str
    asked_at_ms: int
    age_s: Figure
    plan: str
    """The file of the sealed plan."""
    approved_by: str | None
    """None until someone approves it; afterwards it waits for its run alone."""


class ApproveAnswer(Answer):
    """`approve`: the plan that was approved; without a hash, all that wait."""

    plans: tuple[WaitingAnswer, ...]


class SignAnswer(Answer):
    """`sign`: the signature that was added."""

    plan_hash: str
    signer: str
    """Fingerprint of the key: SHA-256 of its public half in DER, in hex."""
    signature: str
    """In base64."""
    file: str
    """The file that it was added to."""


class PauseAnswer(Answer):
    """A pause of the service."""

    by: str
    at: str
    at_ms: int


class CtlRunAnswer(Answer):
    """The run in progress."""

    run_id: str
    plan_hash: str
    state: RunState
    reason: str
    started_at: str
    moves: int
    done: int
    in_flight: int
    left_s: Figure | None
    """Estimated time until the moves end; None where that is not known."""
    paused: bool
    """Whether a person has paused it."""


class InterruptedAnswer(Answer):
    """The newest run, whose process ended before it did."""

    run_id: str
    plan_hash: str
    started_at: str
    moves: int
    done: int


class StandbyAnswer(Answer):
    """Which of several services leads."""

    leads: bool
    """Whether this one does."""
    leader: str
    """The process that does; empty where that is not known."""
    message: str
    """Why this service does not act; empty where it leads."""
    other_policy: bool
    """Whether the leader acts by another policy or version than this service would."""


class CtlStatusAnswer(Answer):
    """`ctl status`."""

    version: str
    pid: int
    settings_read_at: str
    cluster_id: str
    """Empty before the first observation."""
    name: str
    mode: Mode | None
    """Who approves plans; None before the loop begins, as is the phase."""
    phase: Phase | None
    message: str
    not_ready: str
    """Why the cluster is not observed now; empty where it is."""
    paused: PauseAnswer | None
    waiting: tuple[WaitingAnswer, ...]
    """Plans that wait for a person."""
    run: CtlRunAnswer | None
    interrupted: InterruptedAnswer | None
    """A run that an earlier process left, and that was not resumed."""
    standby: StandbyAnswer | None = None
    """None where no other service stands by."""


class WorstBrokerAnswer(Answer):
    """The broker of a cluster that needs attention most."""

    broker: int
    state: BrokerState
    """A dead one comes first, then one with a failed disk, then a slow one, then all others."""
    disk_failed: bool = False
    """Whether at least one of its log directories has failed."""
    resource: str | None
    """That of the greatest deviation of a balanced resource; None for a broker with something
    wrong, as is the next."""
    deviation: Figure | None
    """Its utilisation divided by the average of all brokers, minus 1."""
    outside: bool | None = None
    """Whether that is outside the tolerance band; None for a broker with something
    wrong."""


class FleetRunAnswer(Answer):
    """The run in progress on a cluster."""

    run_id: str
    state: RunState
    moves: int
    done: int
    left_s: Figure | None
    """Estimated time until the moves end; None where that is not known."""


class FleetClusterAnswer(Answer):
    """A row of the fleet's table."""

    name: str
    service: MemberState
    message: str
    """What its loop does, or why its service is not ready or does not run."""
    cluster_id: str
    """Empty before the first observation."""
    state_dir: str
    """Where `ctl` finds its service; empty before its settings could be read."""
    phase: Phase | None
    """None before its loop begins, as are the next two."""
    mode: Mode | None
    decision: Decision | None
    rule: str
    """What holds an action back; empty for nothing."""
    reason: str
    """Why it was decided."""
    paused: bool
    """Whether a person has paused it."""
    worst_broker: WorstBrokerAnswer | None
    """None before the first observation."""
    run: FleetRunAnswer | None
    """None while none is in progress."""
    data_age_s: Figure | None
    """Seconds since loads arrived last; None before the first ones."""


class FleetAnswer(Answer):
    """`fleet`."""

    version: str
    pid: int
    clusters: tuple[FleetClusterAnswer, ...]
    """In the order of the fleet's file."""


class ActionAnswer(Answer):
    """`ctl pause`, `resume`, `stop`, `abort`, `throttle`, `approve`, `reject` and `reload`."""

    action: str
    message: str
    """What was done."""
    plan_hash: str
    """The plan that it was about; empty without one."""
    run_id: str
    """The run that it was about; empty without one."""


class AuditEntryAnswer(Answer):
    """One action of a person or client."""

    at: str
    at_ms: int
    """When it was requested."""
    id: str
    action: str
    by: str
    """The name that the client gave; empty for signals."""
    user: str
    """Login name of the client's process; empty if unknown."""
    uid: int | None
    pid: int | None
    client: str
    """Address of a client over HTTP, where `by` is its login; empty for all else."""
    via: AuditVia
    plan_hash: str
    detail: str
    """What was requested beyond the action's name, such as a rate."""
    outcome: AuditOutcome
    """`requested` where how it ended is not known: its process may have been killed."""
    message: str
    """What was done, or why not."""
    ended_at_ms: int | None


class AuditAnswer(Answer):
    """`ctl audit`."""

    actions: tuple[AuditEntryAnswer, ...]
    """Oldest first."""


class NotifiedAnswer(Answer):
    """One receiver of notifications."""

    receiver: str
    """Its kind, and the number of its table."""
    problem: str
    """Why it was not notified; empty if it was."""


class NotifyAnswer(Answer):
    """`notify test`."""

    receivers: tuple[NotifiedAnswer, ...]


class LoginAnswer(Answer):
    """`login`: what the file of logins has of one client."""

    name: str
    role: str
    password: str | None
    """A hash of it; null for a token."""
    token: str | None
    """A hash of it; null for a password."""


class LimitsAnswer(Answer):
    """What `run --auto` may do under one set of limits."""

    limits: str
    allows: tuple[str, ...]
    """Sentences."""
    faults: tuple[str, ...]
    """Why it can never act, or has no bounds; empty for a sound policy."""


class PolicyAnswer(Answer):
    """`policy check`."""

    policies: tuple[LimitsAnswer, ...]


class HourAnswer(Answer):
    """One hour of a simulation; means over time."""

    at_ms: int
    """Its beginning, milliseconds since the epoch."""
    outside: Figure
    """Share of it in which a broker was outside its tolerance."""
    imbalance: Figure
    """Mean imbalance score."""
    deviation: Figure
    """Mean of the largest deviation of a broker from the average, as a share of it."""


class DayAnswer(Answer):
    """One day of a simulation."""

    at_ms: int
    outside: Figure
    imbalance: Figure
    runs: int
    moves: int
    bytes_copied: int
    undone: int
    """Moves that undid one of the 24 hours before."""
    regret: Figure
    """Mean imbalance score above that of one plan at the beginning of the day by a planner that
    knew the day, with the budgets of one run, or of what the day used where that is more."""


class HeldAnswer(Answer):
    """How often and how long a rule held actions back."""

    times: int
    seconds: Figure


class TrialAnswer(Answer):
    """What one policy did in a simulation."""

    policy: str
    outside: Figure
    """Share of the time in which a broker was outside its tolerance."""
    imbalance: Figure
    worst: HourAnswer
    """The hour with the largest mean imbalance score."""
    runs: int
    stopped_runs: int
    """Runs that ended before their plan was done."""
    moves: int
    leader_changes: int
    """Moves that change leaders alone."""
    bytes_copied: int
    undone: int
    """Moves that returned a replica, or leadership alone, to where it was within 24 hours."""
    regret: Figure
    """Mean over the days."""
    held: dict[str, HeldAnswer]
    """By the rule."""
    solves: int
    turns: int
    """How often the loop looked at the cluster."""
    days: tuple[DayAnswer, ...]
    hours: tuple[HourAnswer, ...]


class SimulateAnswer(Answer):
    """`simulate`."""

    cluster_id: str
    brokers: int
    partitions: int
    begin_ms: int
    """Begin of the simulation, milliseconds since the epoch."""
    days: int
    seed: int
    policies: tuple[TrialAnswer, ...]


# ---- tasks and marks of brokers


class TaskAnswer(Answer):
    """`task show` and every command that works on a task."""

    task_id: str
    cluster_id: str
    operation: Operation
    brokers: tuple[int, ...]
    onto: int | None
    """The broker that replaces them; None but for `replace`."""
    paths: tuple[str, ...]
    """Log directories of its broker; empty but for `disk-remove`."""
    topics: tuple[str, ...]
    """Empty but for `set-replicas`."""
    replicas: int | None
    """Of each partition of its topics; None but for `set-replicas`."""
    by: str
    phase: TaskPhase
    note: str
    """Why the phase was entered."""
    open: bool
    """Whether it can be resumed or cancelled."""
    stopped_by: str
    """Who has stopped it, so that `task resume` alone continues it; empty if it was not stopped."""
    worked_on: bool
    """Whether a process of this machine works on it."""
    phases: tuple[PhaseChange, ...]
    """Oldest first."""
    plans: tuple[TaskPlan, ...]
    """Oldest first."""
    progress: TaskProgress | None
    """Of the run of the newest plan; None before it begins."""
    at_min_isr: tuple[TopicAtMinIsr, ...]
    """Topics that its brokers must not be stopped for, as at its end; empty but for `demote` and
    `maintenance`."""


class TasksAnswer(Answer):
    """`task list`."""

    tasks: tuple[TaskAnswer, ...]
    """Oldest first."""


class BrokerPeakAnswer(Answer):
    """The peak load of a broker during a run."""

    broker: int
    more_bytes: int
    """Additional bytes on its disk, at most."""
    free_bytes: int | None
    """Free bytes beyond the reserve; None where the broker does not report them."""


class RehearsedAnswer(Answer):
    """Base of what `--dry-run` prints of a plan."""

    bytes_to_copy: int | None
    """Copied to other brokers; None where a size is unknown."""
    seconds: Figure
    """Estimated duration of the run."""
    moves_at_once: int
    """Most moves in flight."""
    waves: int
    """Moves over `moves_at_once`, rounded up."""
    peaks: tuple[BrokerPeakAnswer, ...]
    plan: Plan
    requests: tuple[str, ...]


class RemovalAnswer(RehearsedAnswer):
    """`--dry-run` of the commands that work on a task."""

    operation: Operation
    brokers: tuple[int, ...]
    onto: int | None
    """The broker that replaces them; None but for `replace`."""
    replicas: int
    """What is left to do: replicas to move, or partitions that need another leader."""
    least_bytes: int | None
    """No plan empties them with fewer bytes; None where sizes are unknown, and of operations that
    empty none."""
    at_min_isr: tuple[TopicAtMinIsr, ...]
    """Topics that the brokers must not be stopped for afterwards; empty but for `demote` and
    `maintenance`."""


class ReplicationAnswer(RehearsedAnswer):
    """`topic set-replicas --dry-run`."""

    topics: tuple[ReplicationChange, ...]
    added: int
    """Replicas."""
    removed: int
    least_bytes: int | None
    """No plan for the request copies fewer bytes; None where a size is unknown."""
    racks: int | None
    """Racks with live brokers; None where they are unknown, or do not count."""
    beyond_racks: int
    """Replicas of each partition beyond one per rack; 0 where racks are unknown, too."""


class DiskAnswer(RehearsedAnswer):
    """`disk remove --dry-run`, `disk heal --dry-run`."""

    directories: tuple[EmptiedDir, ...]
    """The log directories that replicas leave."""
    inside: int
    """Replicas that go to other directories of their broker."""
    outside: int
    """Replicas that go to other brokers."""
    bytes_inside: int | None
    """Copied inside the broker; None where a size is unknown."""
    later: int
    """Partitions that budgets leave to the next plan."""
    unavailable: tuple[str, ...]
    """Partitions without a leader, of which no broker has a copy."""
    placeless: tuple[str, ...]
    """Partitions that no other broker may hold."""
    least_bytes: int | None
    """No plan does it with fewer bytes, inside the broker and to others together; None where a
    size is unknown."""
    least_outside: int | None
    """No plan does it with fewer bytes to other brokers; None where a size is unknown."""


class RepairAnswer(RehearsedAnswer):
    """`cluster repair --dry-run`."""

    dead_brokers: tuple[BrokerId, ...]
    """Those that hold replicas."""
    directories: tuple[EmptiedDir, ...]
    """Failed log directories that hold replicas."""
    misplaced: int
    """Partitions that pins or placement constraints want elsewhere."""
    racks_repaired: tuple[str, ...]
    """Partitions that no longer break the rack rule after the plan."""
    racks_left: tuple[str, ...]
    """Partitions that still break it."""
    later: int
    """Partitions that budgets leave to the next plan."""
    unavailable: tuple[str, ...]
    """Partitions without a leader, of which no broker has a copy."""
    placeless: tuple[str, ...]
    """Partitions that have to move and that too few brokers may hold."""
    least_bytes: int | None
    """No plan that repairs the same copies fewer bytes; None where a size is unknown."""


class MarksAnswer(Answer):
    """`broker exclude`, `broker include`: all marks of the cluster afterwards."""

    cluster_id: str
    marks: tuple[BrokerMark, ...]


class CordonAnswer(Answer):
    """`disk include`: what became of the cordons of log directories."""

    broker: BrokerId
    paths: tuple[str, ...]
    changed: bool
    """Whether a cordon was ended."""
    note: str
    """Why nothing was changed, or a remark; for people."""


ANSWERS: Final[Mapping[str, type[BaseModel]]] = {
    "status-output": StatusAnswer,
    "topics-output": TopicsAnswer,
    "info-output": InfoAnswer,
    "record-output": RecordAnswer,
    "generate-output": GenerateAnswer,
    "config-output": ConfigAnswer,
    "plan-output": PlanAnswer,
    "plan-stages-output": StagesAnswer,
    "assign-output": AssignAnswer,
    "verify-output": VerifyAnswer,
    "verify-reassignment-output": ReassignmentAnswer,
    "explain-output": ExplainAnswer,
    "explain-move-output": MoveAnswer,
    "explain-not-made-output": NotMadeAnswer,
    "run-output": RunReport,
    "dry-run-output": RequestsAnswer,
    "cleanup-output": CleanupAnswer,
    "elect-leaders-output": ElectLeadersAnswer,
    "journal-output": JournalAnswer,
    "demo-output": DemoReport,
    "file-output": FileAnswer,
    "serve-output": ServeAnswer,
    "why-output": WhyAnswer,
    "approve-output": ApproveAnswer,
    "sign-output": SignAnswer,
    "ctl-status-output": CtlStatusAnswer,
    "ctl-output": ActionAnswer,
    "fleet-output": FleetAnswer,
    "audit-output": AuditAnswer,
    "policy-output": PolicyAnswer,
    "login-output": LoginAnswer,
    "notify-output": NotifyAnswer,
    "simulate-output": SimulateAnswer,
    "task-output": TaskAnswer,
    "tasks-output": TasksAnswer,
    "removal-output": RemovalAnswer,
    "replication-output": ReplicationAnswer,
    "disk-output": DiskAnswer,
    "repair-output": RepairAnswer,
    "marks-output": MarksAnswer,
    "cordon-output": CordonAnswer,
}
"""By the name of the schema. `frontier` and `what-if` print what they write."""

FORMER_ANSWERS: Final[Mapping[str, str]] = {
    "synthesise-output": "generate-output",
    "place-output": "assign-output",
    "elect-output": "elect-leaders-output",
}
"""Former names of schemas, and their present ones."""
