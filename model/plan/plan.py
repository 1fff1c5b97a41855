"""A plan: moves with their reasons, the proof, and the hash that is approved."""

import re
from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from model.cpu import Loads, in_cores
from model.errors import ConfigError
from model.files import (
    FileModel,
    VersionedModel,
    digest,
    read_document,
    unless_empty,
    unless_none,
    validate_document,
    write_document,
)
from model.goals.goals import Goals, SolveLimits
from model.ids import MOST_ID, BrokerId, PartitionId, TopicName, is_legal
from model.plan.remaining import OverLimit, RackViolation
from model.plan.replication_change import ReplicationChange
from model.plan.tolerance import OutsideTolerance, outside_tolerance
from model.snapshot.forecast import LoadForecast
from model.snapshot.snapshot import BrokerState, StorageKind, in_words
from model.units import count_text, share_text

KIND: Final = "plimsoll.plan"
SCHEMA_VERSION = "1.4"
"""Of plans that need no field of a newer version, so that they keep their bytes."""
VERSION_WITH_TOLERANCE: Final = "1.5"
"""Of plans that state why brokers stay outside their tolerance."""
VERSION_WITH_EARLIER: Final = "1.6"
"""Of plans that were kept near to an earlier one."""
VERSION_WITH_MIN_LEADERS: Final = "1.7"
"""Of plans whose goals set a minimum of leaders per broker."""
VERSION_WITH_RELIEF: Final = "1.8"
"""Of plans whose goals relieve slow brokers of leaders."""
VERSION_WITH_DEMOTION: Final = "1.9"
"""Of plans with brokers that are demoted or in maintenance."""
VERSION_WITH_REPLICATION: Final = "1.9"
"""Of plans that change the replication factor of topics."""
VERSION_WITH_EMPTIED: Final = "1.10"
"""Of plans that empty log directories."""
VERSION_WITH_NOISE: Final = "1.11"
"""Of plans whose search took the noise of the loads into account."""
VERSION_WITH_BUDGET_PRICES: Final = "1.12"
"""Of plans whose bound follows from prices of budgets, too."""
ANY_DIR: Final = "any"
"""The log directory of a replica whose broker chooses it, or that is not known."""
ROUNDING: Final = 2e-8
"""Most that an objective and its bound lose by rounding, relative to the objective:
both are written with nine significant digits."""


class PlanStatus(StrEnum):
    """The outcome of a solve."""

    OPTIMAL = "optimal"
    IMPROVED = "improved"
    ALREADY_BALANCED = "level already"
    NO_IMPROVEMENT = "no improvement worth its cost"
    INFEASIBLE = "infeasible"
    NONE_IN_TIME = "none in time"
    STOPPED = "stopped"


_LEVEL: Final = re.compile(r"\b(over|under|at) its level\b")
_AVERAGE: Final = {"over": "above average", "under": "below average", "at": "at the average"}


class Move(FileModel):
    """One partition from its replica list to another, and why."""

    topic: TopicName
    topic_id: str
    partition: int
    storage: StorageKind
    replicas_before: tuple[BrokerId, ...]
    replicas_after: tuple[BrokerId, ...]
    leader_before: BrokerId
    leader_after: BrokerId
    bytes_to_copy: int | None
    """Local bytes that new replicas fetch as the snapshot has them; 0 when shared,
    None where the snapshot does not know the size (since 1.4; 0 before)."""
    gain: float
    """What F would rise by without this move, others kept; 0 where it changes the number of
    replicas."""
    reason: str
    """The broker relieved and the resource served; `its level` is the average."""
    log_dirs_before: tuple[str, ...] = ()
    """Log directory of each replica before the move, in the order of `replicas_before`, `any` where
    it is not known; empty where `log_dirs_after` is. Since 1.1."""
    log_dirs_after: tuple[str, ...] = ()
    """Log directory of each replica after the move, in the order of
    `replicas_after`, `any` where the broker chooses; empty where all do."""
    leader_load: Annotated[Loads, unless_empty] = {}
    """What its leader loads a broker with, by dimension, as the snapshot has it now;
    empty where it is not known. Since 1.2."""
    follower_load: Annotated[Loads, unless_empty] = {}
    """The same of each other replica. Since 1.2."""

    @property
    def id(self) -> PartitionId:
        """The topic and number of the partition."""
        return PartitionId(self.topic, self.partition)

    @property
    def reason_text(self) -> str:
        """The reason as shown: `relieves broker 2 (bytes in 200 % above average); ...`.

        Files keep the older words, so that equal plans keep equal bytes.
        """
        return in_words(_LEVEL.sub(lambda of: _AVERAGE[of[1]], self.reason))

    @property
    def added(self) -> tuple[BrokerId, ...]:
        """Brokers that get a replica, in the order of `replicas_after`."""
        return tuple(b for b in self.replicas_after if b not in self.replicas_before)

    @property
    def removed(self) -> tuple[BrokerId, ...]:
        """Brokers that lose a replica, in the order of `replicas_before`."""
        return tuple(b for b in self.replicas_before if b not in self.replicas_after)

    @property
    def resizes(self) -> bool:
        """Whether it changes the number of replicas."""
        return len(self.replicas_before) != len(self.replicas_after)

    @property
    def changes_nothing(self) -> bool:
        """Whether replicas, leader and log directories stay as they are."""
        before = (self.replicas_before, self.leader_before, self.log_dirs_before)
        after = (self.replicas_after, self.leader_after, self.log_dirs_after)
        return before == after or (before[:2] == after[:2] and not self.log_dirs_after)


def bytes_of(moves: Iterable[Move]) -> int | None:
    """Total bytes that moves copy; None if the size of any of them is unknown."""
    sizes = [m.bytes_to_copy for m in moves]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


class BrokerChange(FileModel):
    """One broker's load before and after, in the units of the resource."""

    id: BrokerId
    rack: str | None
    state: BrokerState
    before: Loads
    """By resource, as the snapshot has it now."""
    after: Loads
    deviation_before: dict[str, float]
    """Utilisation / average - 1 by dimension; only of holding brokers and dimensions that count."""
    deviation_after: dict[str, float]
    bound_prices: dict[str, float] = {}
    """What a unit of deviation is worth in each dimension: the certificate that
    `price_bound` is recomputed from."""
    replicas_before: int
    replicas_after: int
    capacity: Annotated[
        dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]], *in_cores, unless_empty
    ] = {}
    """By resource, where it is known. Since 1.4."""


class LeadersOnly(FileModel):
    """What changes of leader alone would reach; they copy no bytes."""

    leader_changes: int
    objective: float
    """F after them."""


class Plan(VersionedModel):
    """What would be done to one cluster state, with its proof.

    `seal` gives it its hash; a plan read from a file has had its hash checked.
    """

    kind: Literal["plimsoll.plan"] = KIND
    schema_version: str = SCHEMA_VERSION
    cluster_id: str
    snapshot_fingerprint: str
    snapshot_taken_at_ms: int
    live_brokers: tuple[BrokerId, ...]
    goals: Goals
    limits: SolveLimits
    status: PlanStatus
    objective_before: float
    objective: float
    bound: float
    """No allowed plan has an objective below this."""
    price_bound: float = 0.0
    """The part of the bound that follows from `bound_prices` and `budget_prices` alone, by weak
    duality, so that anyone can recompute it."""
    bound_method: str = "none"
    """What proved `bound`: `exact search`, `prices`, ..."""
    limited_by: str = ""
    """What ended the solve, in words."""
    move_price: float
    """lambda, the price of one move in units of F."""
    levels: Loads
    """Mean load per broker of each dimension that counts."""
    brokers: tuple[BrokerChange, ...]
    moves: tuple[Move, ...]
    forecast: Annotated[LoadForecast | None, unless_none] = None
    """Hours besides now that the plan was made for, and why; None where there is no
    history. Since 1.3."""
    warnings: Annotated[tuple[str, ...], unless_empty] = ()
    """What the plan was made without, such as racks; a sentence each. Since 1.4."""
    leaders_only: Annotated[LeadersOnly | None, unless_none] = None
    """Where the plan moves replicas: how far leader changes alone would get. None where
    they would not help, or were not looked for. Since 1.4."""
    over_limit: Annotated[tuple[OverLimit, ...], unless_empty] = ()
    """Brokers over a limit before the plan or after it. Since 1.4."""
    rack_violations: Annotated[tuple[RackViolation, ...], unless_empty] = ()
    """Partitions that break the rack rule before the plan. Since 1.4."""
    tolerance_unmet: Annotated[str, unless_empty] = ""
    """Why brokers are outside their tolerance after the plan; empty where none is. Since 1.5."""
    near_to: Annotated[str, unless_empty] = ""
    """Hash of the earlier plan that this one was kept near to; empty for none. Since 1.6."""
    budget_prices: Annotated[dict[str, float], unless_empty] = {}
    """Prices of budgets in the proof of `price_bound`, in units of F for one unit: about what one
    more would gain, but only an upper limit of that for a budget of 0. By the names in
    `goals.budgets`; others have none. Since 1.12."""
    replication: Annotated[tuple[ReplicationChange, ...], unless_empty] = ()
    """Topics whose replication factor the plan changes; in all others every move keeps the
    number of replicas. Since 1.9."""
    hash: str = ""

    @property
    def gap(self) -> float:
        """Objective less bound, in units of F; at least 0."""
        return max(0.0, self.objective - self.bound)

    def proves(self, gap: float) -> bool:
        """Whether the gap is at most `gap`, in units of F, allowing for rounding."""
        return self.gap <= gap + ROUNDING * abs(self.objective)

    @property
    def gap_share(self) -> float:
        """The gap as a share of the largest improvement possible; 0 if optimal.

        That is `objective_before` less `bound`; 0 also where it is not above 0.
        """
        if self.proves(self.limits.gap):
            return 0.0
        possible = self.objective_before - self.bound
        return self.gap / possible if possible > 0 else 0.0

    @property
    def raises_objective(self) -> bool:
        """Whether F rises, for what comes before it: forced moves, repairs or the tolerance.

        Then its gap is no share of a possible improvement.
        """
        return self.objective > self.objective_before + ROUNDING * abs(self.objective)

    @property
    def outside(self) -> tuple[OutsideTolerance, ...]:
        """Brokers outside their tolerance after the plan, the furthest first."""
        return outside_tolerance(self.goals, {b.id: b.deviation_after for b in self.brokers})

    @property
    def excess_removed(self) -> float:
        """Share of the deviation beyond the tolerance that the plan removes; 0 without any.

        Negative where the plan adds some.
        """
        before = outside_tolerance(self.goals, {b.id: b.deviation_before for b in self.brokers})
        whole = sum(o.excess for o in before)
        return 1.0 - sum(o.excess for o in self.outside) / whole if whole else 0.0

    @property
    def repaired(self) -> tuple[PartitionId, ...]:
        """Partitions whose rack violation the plan repairs."""
        return tuple(v.id for v in self.rack_violations if v.repaired)

    @property
    def bytes_to_copy(self) -> int | None:
        """Total bytes that the moves copy; None if the size of any is unknown."""
        return bytes_of(self.moves)

    @property
    def leader_changes(self) -> int:
        """Number of moves after which another broker leads."""
        return sum(m.leader_before != m.leader_after for m in self.moves)

    @model_serializer(mode="wrap")
    def _with_old_budgets(self, whole: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Plans of earlier versions keep their bytes, and with them their hash.
        document: dict[str, Any] = whole(self)
        if minor_of(self.schema_version) < 4:
            document["goals"]["budgets"] = self.goals.budgets.document_before_1_4()
        return document

    @property
    def leaders_only_text(self) -> str:
        """`20 leader changes alone, 0 bytes: 71 % of the imbalance`; empty for none."""
        share = self.leaders_only_share
        if self.leaders_only is None or share <= 0:
            return ""
        changes = count_text(self.leaders_only.leader_changes, "leader change")
        return f"{changes} alone, 0 bytes: {share_text(share)} of the imbalance"

    @property
    def leaders_only_share(self) -> float:
        """The share of F that leader changes alone would remove; 0 where none would."""
        if self.leaders_only is None or self.objective_before <= 0:
            return 0.0
        return 1.0 - self.leaders_only.objective / self.objective_before

    def spread(self, resource: str, *, after: bool) -> float:
        """Largest deviation of a broker from the average: 0.08 is 8 % of it.

        0 where no broker has a deviation in this dimension.
        """
        deviations = (b.deviation_after if after else b.deviation_before for b in self.brokers)
        return max((abs(d[resource]) for d in deviations if resource in d), default=0.0)

    def seal(self) -> "Plan":
        """Return a copy of the plan with its hash set."""
        return self.model_copy(update={"hash": plan_hash(self.model_dump(mode="json"))})


def minor_of(schema_version: str) -> int:
    """The minor number of a schema version, 4 of `1.4`; 0 where there is none."""
    tail = schema_version.partition(".")[2]
    return int(tail) if tail.isascii() and tail.isdigit() else 0


def plan_hash(document: dict[str, Any]) -> str:
    """SHA-256, in hex, over the canonical form of a plan without its own hash."""
    return digest({k: v for k, v in document.items() if k != "hash"})


def write_plan(path: Path, plan: Plan) -> None:
    """Write the canonical plan file; equal plans give equal bytes.

    Raises ConfigError where the file cannot be written.
    """
    write_document(path, plan.model_dump(mode="json"))


def read_plan(path: Path) -> Plan:
    """Read a plan and check its hash.

    Raises ConfigError: not a plan, a newer schema, altered since it was written, or with moves that
    cannot be moves.
    """
    document = read_document(path, KIND, major=1)
    if document.get("hash") != plan_hash(document):
        raise ConfigError(
            f"{path} was altered after it was made: its hash does not fit what it "
            "holds; make the plan again"
        )
    return plan_of_document(document, path)


def plan_of_document(document: dict[str, Any], path: Path) -> Plan:
    """Validate a plan file's document, without checking its hash.

    Raises ConfigError if it is not a plan or has impossible moves.
    """
    plan = validate_document(Plan, document, path)
    seen = set()
    for number, move in enumerate(plan.moves, 1):
        fault = _fault(move)
        if fault is None and move.id in seen:
            fault = "another move names the same partition"
        if fault is not None:
            raise ConfigError(
                f"{path} cannot be used: move {number}, of {move.id}: {fault}. Make the plan again"
            )
        seen.add(move.id)
    if fault := _replication_fault(plan):
        raise ConfigError(f"{path} cannot be used: {fault}. Make the plan again")
    return plan


def _replication_fault(plan: Plan) -> str:
    """Why the changes of the replication factor cannot be those of any plan; empty if they can."""
    named = Counter(change.topic for change in plan.replication)
    for change in plan.replication:
        if named[change.topic] > 1:
            return f"replication names the topic {change.topic} twice"
        if change.before == change.after:
            return f"replication leaves {change.topic} at {change.after} replicas"
        if not any(m.topic == change.topic and m.resizes for m in plan.moves):
            return f"replication names {change.topic}, of which no move changes the replicas"
    return ""


def _fault(move: Move) -> str | None:
    """What no move can be, whatever the cluster; rules judge all else."""
    for name in ("replicas_before", "replicas_after"):
        brokers = getattr(move, name)
        if not brokers:
            return f"{name} is empty"
        if min(brokers) < 0:
            return f"{name} names the broker {min(brokers)}; ids are 0 or more"
        if max(brokers) > MOST_ID:
            return f"{name} names the broker {max(brokers)}; ids end at {MOST_ID}"
        if len(set(brokers)) != len(brokers):
            return f"{name} names a broker twice: {list(brokers)}"
    if move.leader_after not in move.replicas_after:
        return f"leader_after, {move.leader_after}, is not in replicas_after"
    if not 0 <= move.partition <= MOST_ID:
        return f"its number is not from 0 to {MOST_ID}"
    if not is_legal(move.topic):
        return "Kafka allows no topic of this name"
    if move.bytes_to_copy is not None and move.bytes_to_copy < 0:
        return "bytes_to_copy is less than 0"
    return None
