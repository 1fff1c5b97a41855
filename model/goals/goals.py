"""The goals of a plan: balance targets, costs of moves, and rules, as data."""

from collections import Counter
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, ValidationInfo, field_serializer, field_validator, model_validator

from model.cpu import from_file, to_file
from model.files import FileModel, OldNames, unless_empty, unless_none, with_new_names
from model.goals.rack_placement import PlacementRule
from model.ids import BrokerId, TopicName
from model.names import Names
from model.quantities import ByteSize, Duration, as_rate
from model.snapshot.snapshot import Measure, Resource, StorageKind

MIB: int = 2**20

MOST: float = 1e9
"""Weights and prices above this drown all others in rounding."""

Share = Annotated[float, Field(gt=0, le=1)]
Amount = Annotated[float, Field(ge=0, le=MOST)]
Limit = Annotated[Annotated[int, Field(ge=0)] | None, unless_none]


class ObjectiveKind(StrEnum):
    """The objective that a plan minimises: balance and moves, or moves alone."""

    VARIANCE = "variance"
    """Squared deviations from the average plus the cost of the moves."""
    BAND = "band"
    """The cost of the moves that bring every broker into its band; where that is
    impossible, least excess first."""


class RackRule(StrEnum):
    """How replicas that move are spread over racks."""

    SPREAD = "spread"
    """Over as many racks as possible, as Kafka's own assignment does."""
    EVEN = "even"
    """No rack has more than one replica more than another."""
    OFF = "off"


class Goal(FileModel):
    """Balance one measure over the brokers that may hold load."""

    resource: Measure
    """Resource or count to balance."""
    weight: Amount = 1.0
    """Shared among the time slots."""
    floor: Annotated[float, Field(ge=0, allow_inf_nan=False), as_rate] = 0.0
    """Mean load per broker, in files bytes/s, bytes (also `1MiB`) or percent of one core, under
    which the resource is neither balanced nor counted: near zero, noise looks like imbalance."""
    tolerance: Share = 0.10
    """A broker within `average * (1 +- tolerance)` is balanced."""

    @field_validator("floor")
    @classmethod
    def _read(cls, floor: float, info: ValidationInfo) -> float:
        if info.mode == "python":
            return floor
        return from_file(info.data.get("resource", ""), floor)

    @field_serializer("floor", when_used="json")
    def _written(self, floor: float) -> float:
        return to_file(self.resource, floor)


class Cooldown(FileModel):
    """Rest after a move, by storage kind."""

    rest_s: Duration
    """A partition moved less than this ago stays."""
    return_window_s: Duration
    """Neither a replica nor the leadership goes back to a broker it left less than this ago."""


class Pin(FileModel):
    """Where the replicas of some partitions must lie; what lies elsewhere must move."""

    topics: Names
    partitions: tuple[int, ...] = ()
    """Numbers of those meant; empty for all of the topics'."""
    brokers: tuple[BrokerId, ...] = ()
    """Only these may hold a replica; empty for any."""
    racks: tuple[str, ...] = ()
    """Only brokers of these racks; empty for any."""


class Stay(FileModel):
    """Partitions of one topic that stay as they are, replicas and leader."""

    topic: TopicName
    """Name of the topic."""
    partitions: Annotated[tuple[int, ...], Field(min_length=1)]
    """Numbers of its partitions."""


class EmptiedDir(FileModel):
    """A log directory of a live broker whose replicas leave it."""

    broker: BrokerId
    """Id of the broker."""
    path: str
    """Path of the directory, as `log.dirs` names it."""


class MinLeaders(FileModel):
    """Partitions of some topics that every broker must lead, each topic for itself."""

    topics: Names
    leaders: Annotated[int, Field(gt=0)] = 1
    """Partitions of each of the topics that each broker leads at least."""
    brokers: tuple[BrokerId, ...] = ()
    """Only these brokers; empty for all that may take load."""


class Budgets(FileModel):
    """The most that one plan may change; None where nothing limits."""

    replica_moves: Limit = None
    """Replicas on new brokers."""
    bytes: Annotated[ByteSize | None, unless_none] = None
    """Local bytes that new replicas copy."""
    leader_changes: Limit = None
    """Partitions that end with another leader."""
    replica_moves_per_topic: Limit = None
    """New replicas of one topic."""
    replica_moves_in_per_broker: Limit = None
    """New replicas on one broker."""
    replica_moves_out_per_broker: Limit = None
    """Replicas that leave one broker."""
    partitions: Limit = None
    """Partitions that get a new replica or another leader."""
    partitions_per_topic: Limit = None
    """The same of one topic."""

    # What the fields were called in plans before 1.4, and in goals of that time.
    old_names: ClassVar[OldNames] = {
        "moves": ("replica_moves",),
        "moves_per_topic": ("replica_moves_per_topic",),
        "moves_in_per_broker": ("replica_moves_in_per_broker",),
        "moves_out_per_broker": ("replica_moves_out_per_broker",),
    }

    _renamed = model_validator(mode="before")(partial(with_new_names, names=old_names))

    def document_before_1_4(self) -> dict[str, int | None]:
        """As plans of an older schema have it, so that they keep their hash."""
        old = {new: name for name, (new,) in self.old_names.items()}
        since_1_4 = ("partitions", "partitions_per_topic")
        return {
            old.get(name, name): getattr(self, name)
            for name in type(self).model_fields
            if name not in since_1_4
        }


class Goals(FileModel):
    """Everything that decides what a good plan is; printed with each plan.

    Defaults follow the table in docs/explanation/planning.md.
    """

    objective: ObjectiveKind = ObjectiveKind.VARIANCE
    """What plans minimise: squared deviations, or moves into the tolerance band."""
    balance: tuple[Goal, ...] = (
        Goal(resource=Resource.NET_IN, floor=MIB),
        Goal(resource=Resource.NET_OUT, floor=MIB),
    )
    move_price: Annotated[float, Field(gt=0, le=MOST)] | None = None
    """Price of one new replica. Default: tolerance x brokers / partitions where the
    objective is `variance`, 1 where it is `band`."""
    storage_price: dict[StorageKind, Amount] = {}
    """Factor on the price of a move, by storage kind; 1 where none is given."""
    leader_price_share: Amount = 0.05
    """Price of a change of leader as a share of the price of a move."""
    tolerance_first: Annotated[bool, Field(exclude_if=bool)] = True
    """`variance` alone: bring every broker inside its tolerance first, or as close to it as
    possible; the cost of moves decides only among such plans."""
    excess_price: Annotated[float, Field(gt=0, le=MOST)] = 10_000.0
    """`band` alone: what a deviation of the whole average beyond the band costs, in
    prices of a move; 1 % of the average outweighs 100 moves."""
    capacity_limit: Share = 0.85
    """Highest allowed share of a broker's capacity."""
    capacity_limits: dict[Resource, Share] = {}
    """The same for single resources."""
    replicas_per_broker: Annotated[int, Field(gt=0)] = 10_000
    """Most replicas that one broker may hold."""
    rack_rule: RackRule = RackRule.SPREAD
    """How the replicas of a partition are spread over racks."""
    repair_racks: Annotated[bool, Field(exclude_if=bool)] = True
    """Also move partitions for no other reason than that they break the rack rule."""
    cooldown: dict[StorageKind, Cooldown] = {
        StorageKind.SHARED: Cooldown(rest_s=600, return_window_s=3600),
        StorageKind.TIERED: Cooldown(rest_s=600, return_window_s=3600),
        StorageKind.REPLICATED: Cooldown(rest_s=3600, return_window_s=86400),
    }
    excluded_topics: Names = Names()
    """Topics that stay; their load counts. A bare list holds regular expressions."""
    stay: Annotated[tuple[Stay, ...], unless_empty] = ()
    """Partitions that stay, unless a rule forces them to move; their load counts."""
    deferred: Annotated[tuple[Stay, ...], unless_empty] = ()
    """Partitions that stay even if a rule forces them to move: a later plan's."""
    pins: tuple[Pin, ...] = ()
    placements: tuple[PlacementRule, ...] = ()
    """The first rule that matches a topic replaces the rack rule for it."""
    min_leaders: Annotated[tuple[MinLeaders, ...], unless_empty] = ()
    """Leaders of a topic that every broker must have; the first entry that matches it counts.
    Since plan schema 1.7."""
    relieve_slow: Annotated[bool, unless_empty] = False
    """Brokers in the state `slow` end without leaders that another replica can replace, except of
    topics with placement constraints. Since plan schema 1.8."""
    emptied: Annotated[tuple[EmptiedDir, ...], unless_empty] = ()
    """Log directories of live brokers that a plan empties, whatever else holds of the partitions
    in them. `disk remove` names them. Since plan schema 1.10."""
    budgets: Budgets = Budgets()
    level_directories: bool = False
    """Balance the log directories inside brokers too (JBOD), on replicated storage."""

    @field_validator("balance")
    @classmethod
    def _once(cls, balance: tuple[Goal, ...]) -> tuple[Goal, ...]:
        for resource, count in Counter(goal.resource for goal in balance).items():
            if count > 1:
                raise ValueError(f"{resource} is in two goals; keep one of them")
        return balance

    @field_validator("excluded_topics", mode="before")
    @classmethod
    def _bare_list(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            value = {"regex": value}
        # pydantic no longer takes this value for JSON, and would refuse a list for a tuple.
        return Names.model_validate(value, strict=False)

    @property
    def needed_resources(self) -> frozenset[Resource]:
        """The resources whose load must be known before a partition is moved.

        Those that a goal balances; `leader_net_in` needs `net_in`, `potential_net_out` needs
        `net_out`.
        """
        measures = (g.resource for g in self.balance)
        needed = (m if isinstance(m, Resource) else m.resource for m in measures)
        return frozenset(resource for resource in needed if resource is not None)

    def keeps(self, topic: str, partition: int) -> bool:
        """Whether `stay` or `deferred` names a partition, so that it must not move."""
        stays = (*self.stay, *self.deferred)
        return any(s.topic == topic and partition in s.partitions for s in stays)

    def excludes(self, topic: str) -> bool:
        """Whether `excluded_topics` matches a topic, so that it must not move."""
        return self.excluded_topics.match(topic)

    def placement_of(self, topic: str) -> PlacementRule | None:
        """The first placement rule that matches a topic; None if there is none."""
        return next((p for p in self.placements if p.topics.match(topic)), None)

    def min_leaders_of(self, topic: str) -> MinLeaders | None:
        """The first entry of `min_leaders` that matches a topic; None if there is none."""
        return next((m for m in self.min_leaders if m.topics.match(topic)), None)

    def limit_of(self, resource: Resource) -> float:
        """Highest allowed share of a broker's capacity of one resource, at most 1."""
        return self.capacity_limits.get(resource, self.capacity_limit)

    def tolerance_of(self, resource: Measure | str) -> float | None:
        """The tolerance of a measure as a share of its average; None without a goal."""
        return next((g.tolerance for g in self.balance if g.resource == resource), None)

    def rest_of(self, storage: StorageKind) -> Cooldown:
        """The cooldown of a storage kind, in seconds; zero if none is set."""
        return self.cooldown.get(storage, Cooldown(rest_s=0, return_window_s=0))


GAP_SHARE: Final = 1e-3
"""Gap at which a solve ends unless told otherwise, as a share of F."""

_share_unless_default: Final = Field(
    ge=0, le=1, allow_inf_nan=False, exclude_if=lambda share: share == GAP_SHARE
)


_amount_unless_zero: Final = Field(ge=0, allow_inf_nan=False, exclude_if=lambda noise: noise == 0)

MOST_SEED: Final = 2**63 - 1
"""The largest whole number of a file."""


class SolveLimits(FileModel):
    """When a solve ends; counted in deterministic work, so that plans repeat."""

    work: Annotated[float, Field(gt=0, le=MOST)] = 20.0
    """Deterministic work, about seconds of one core."""
    seed: Annotated[int, Field(ge=0, le=MOST_SEED)] = 0
    """Seed of the search; equal seeds give equal plans."""
    gap: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1e-6
    """A plan this close to its bound, in units of F, is called optimal."""
    gap_share: Annotated[float, _share_unless_default] = GAP_SHARE
    """A solve past its first twentieth ends with a plan this close to its bound, as a
    share of F; 0 to search on until the plan is optimal. Plan files have it since 1.4,
    where it is not the default."""
    noise: Annotated[float, _amount_unless_zero] = 0.0
    """What the noise of measured loads adds to F: past its first twentieth, a solve also ends
    with a plan this close to its bound, if that is less than a move costs. The loop sets it
    from its samples. Plan files have it since 1.11, where it is not 0."""


def without_replica_moves(goals: Goals) -> Goals:
    """The same goals with a budget of no new replicas, so that only leaders change."""
    budgets = goals.budgets.model_copy(update={"replica_moves": 0})
    return goals.model_copy(update={"budgets": budgets})
