"""Types of the JSON that commands print with `-o json`; schemas come from them."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel

from control.demo.report import DemoReport
from model.files import FileModel
from model.plan.plan import Plan, PlanStatus
from model.run import RunReport
from model.snapshot.forecast import LoadForecast
from model.snapshot.snapshot import BrokerState, CapacitySource, Source, StorageKind

# ---- configuration


class SettingAnswer(FileModel):
    """One setting."""

    name: str
    """Its name, with dots between a table and its key."""
    value: Any
    """The value in use; secrets are masked as `****`."""
    source: Literal["flag", "environment", "profile", "file", "default"]
    place: str
    """The option, the variable, or the file and its line; empty for a default."""


class ConfigAnswer(FileModel):
    """`config show`."""

    file: str | None
    """The configuration file that was read."""
    profile: str | None
    settings: tuple[SettingAnswer, ...]


# ---- observation


class BrokerAnswer(FileModel):
    """A broker; values by resource, absent if unknown."""

    id: int
    rack: str | None
    state: BrokerState
    capacity: dict[str, float]
    """Bytes, bytes/s, or percent of a core."""
    capacity_from: dict[str, CapacitySource]


class LoadedBroker(BrokerAnswer):
    """A broker with its load."""

    load: dict[str, float]
    deviation: dict[str, float]
    """Deviation from the average, as a share of it."""


class PartitionAnswer(FileModel):
    """A partition and its load; unknown values are absent."""

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    storage: StorageKind
    load: dict[str, float]
    measured: tuple[str, ...]
    """Resources whose load was measured rather than estimated."""


class BrokerOverLimit(FileModel):
    """A broker above the allowed share of a capacity."""

    broker: int
    dimension: str
    load: float
    limit: float
    capacity: float | None


class RackViolationAnswer(FileModel):
    """A partition whose replicas break the rack rule."""

    topic: str
    partition: int
    reason: str
    """Why it cannot be repaired; empty if it can."""


class RackViolationsAnswer(FileModel):
    """Partitions that break the rack rule."""

    count: int
    movable: int
    """Those that a plan can repair."""
    partitions: tuple[RackViolationAnswer, ...]


class StatusAnswer(FileModel):
    """`status` and `replay`; with `--watch`, one document per line."""

    cluster_id: str
    taken_at: str
    age_s: float
    sources: tuple[Source, ...]
    forecast: LoadForecast | None = None
    notes: tuple[str, ...]
    within_band: bool
    """Every broker is within its tolerance band."""
    over_limit: tuple[BrokerOverLimit, ...]
    rack_violations: RackViolationsAnswer
    objective: float
    levels: dict[str, float]
    """Average load of a broker, by resource."""
    brokers: tuple[LoadedBroker, ...]
    partitions: tuple[PartitionAnswer, ...]


class LoadSource(FileModel):
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


class QuantityOrigin(FileModel):
    """A source, the number of partitions whose loads come from it, and the reason."""

    name: str
    partitions: int
    why: str


class Quantity(FileModel):
    """A kind of load and its sources."""

    quantity: str
    by: tuple[QuantityOrigin, ...]


class InfoAnswer(FileModel):
    """`info`."""

    cluster_id: str
    folder: str
    spark_master: str
    sources: tuple[LoadSource, ...]
    quantities: tuple[Quantity, ...]
    reports_passed_over: dict[str, int]
    brokers_without_cores: tuple[int, ...]
    notes: tuple[str, ...]
    brokers: tuple[BrokerAnswer, ...]


class RecordAnswer(FileModel):
    """`record`."""

    folder: str
    duration_s: float
    partitions: int
    batches: int


class GenerateAnswer(FileModel):
    """`generate`."""

    folder: str
    brokers: int
    partitions: int
    days: int


class FileAnswer(FileModel):
    """Output of a command that only wrote a file."""

    file: str


class ServeAnswer(FileModel):
    """`serve`, once the page can be opened."""

    url: str


# ---- plans


class SkewedBroker(FileModel):
    """A broker's share of a topic."""

    id: int
    replicas: int
    leaders: int
    skewed: bool
    leader_skewed: bool


class SkewFigures(FileModel):
    """Spread of a topic over brokers."""

    partitions: int
    optimum: tuple[int, ...]
    leader_optimum: tuple[int, ...]
    brokers_skewed: float
    leaders_skewed: float
    spread: float
    preferred_leaders: float
    brokers: tuple[SkewedBroker, ...]


class SkewAnswer(FileModel):
    """The spread of a topic before and after a plan."""

    before: SkewFigures
    after: SkewFigures


class PlanAnswer(FileModel):
    """`plan`."""

    status: PlanStatus
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    plan: Plan | None
    skew: dict[str, SkewAnswer] = {}
    """By topic; with `--topic`."""


class ClaimAnswer(FileModel):
    """One claim of a plan."""

    name: str
    holds: bool | None
    """None if it was not checked."""
    words: str


class VerifyAnswer(FileModel):
    """`verify PLAN`."""

    plan: str
    """Its hash."""
    holds: bool
    objective: float
    bound: float
    gap: float
    bound_method: str
    claims: tuple[ClaimAnswer, ...]


class BrokenRule(FileModel):
    """A rule that moves break."""

    rule: str
    words: str


class ReassignmentAnswer(FileModel):
    """`verify --reassignment`."""

    changes: int
    objective_before: float
    objective: float
    deviation: float
    prices: float
    bound: float
    bound_by: str
    gap: float
    gained_share: float
    plimsoll_objective: float | None
    violations: tuple[BrokenRule, ...]


class EffectAnswer(FileModel):
    """Deviation of a broker now, after the plan, and after it without the move."""

    broker: int
    dimension: str
    before: float
    after: float
    without: float


class MoveAnswer(FileModel):
    """`explain PLAN NUMBER`: gain, cost and effects of a move."""

    number: int
    partition: str
    gain: float
    price: float
    relieved: int | None
    goal: str | None
    reason: str
    effects: tuple[EffectAnswer, ...]


class LeftAnswer(FileModel):
    """A part of the imbalance that the plan leaves, and its cause."""

    deviation: float
    cause: str


class ExplainAnswer(FileModel):
    """`explain PLAN`."""

    plan: str
    """Its hash."""
    status: PlanStatus
    imbalance_before: float
    imbalance_after: float
    left: tuple[LeftAnswer, ...]
    moves: tuple[MoveAnswer, ...]


class NotMade(FileModel):
    """A move that the plan does not make."""

    partition: str
    broker: int
    forbidden: tuple[str, ...]
    cost: float
    price: float
    words: tuple[str, ...]


class NotMadeAnswer(FileModel):
    """`explain PLAN PARTITION` for a partition that is not moved, and `--to`."""

    not_made: tuple[NotMade, ...]


class AssignedPartition(FileModel):
    """A partition in Kafka reassignment JSON."""

    topic: str
    partition: int
    replicas: tuple[int, ...]


class AssignmentAnswer(FileModel):
    """Kafka reassignment JSON."""

    version: int
    partitions: tuple[AssignedPartition, ...]


class Spread(FileModel):
    """Smallest and largest count per broker, and their proved limits."""

    least: int
    most: int
    greatest_lowest: int
    least_highest: int
    proved: bool


class PlacedLoad(FileModel):
    """Imbalance of the expected load."""

    cost: float
    bound: float
    proved: bool


class AssignAnswer(FileModel):
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


class RequestsAnswer(FileModel):
    """`apply`, `rollback` and `elect-leaders` with `--dry-run`."""

    requests: tuple[str, ...]


class CleanupAnswer(FileModel):
    """`cleanup`."""

    done: tuple[str, ...]
    """Settings that were restored."""
    left: tuple[str, ...]
    """Settings of ended runs that are still in force, with the reason."""


class ElectedPartition(FileModel):
    """A partition that another replica than the preferred one leads."""

    topic: str
    partition: int
    led_by: int
    preferred: int
    elected: bool
    note: str


class ElectLeadersAnswer(FileModel):
    """`elect-leaders`."""

    cluster_id: str
    partitions_looked_at: int
    elections: tuple[ElectedPartition, ...]


class DamagedLine(FileModel):
    """A line of a journal that cannot be used."""

    line: int
    problem: str
    may_lose_records: bool


class RepairedLine(FileModel):
    """A line that a repair removed."""

    line: int
    problem: str


class JournalSummary(FileModel):
    """The journal of one run."""

    run_id: str
    path: str
    cluster_id: str | None
    state: str
    """`intact`, `no records`, `damaged`, `repaired` or `cut off at the end`."""
    records: int
    cut_off_bytes: int
    damage: tuple[DamagedLine, ...]
    repaired: tuple[RepairedLine, ...]
    plan_problem: str | None
    may_be_set: tuple[str, ...]


class JournalAnswer(FileModel):
    """`journal verify` and `journal repair`."""

    journals: tuple[JournalSummary, ...]


ANSWERS: Final[Mapping[str, type[BaseModel]]] = {
    "status-output": StatusAnswer,
    "info-output": InfoAnswer,
    "record-output": RecordAnswer,
    "generate-output": GenerateAnswer,
    "config-output": ConfigAnswer,
    "plan-output": PlanAnswer,
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
}
"""By the name of the schema. `frontier` and `what-if` print what they write."""

FORMER_ANSWERS: Final[Mapping[str, str]] = {
    "synthesise-output": "generate-output",
    "place-output": "assign-output",
    "elect-output": "elect-leaders-output",
}
"""Former names of schemas, and their present ones."""
