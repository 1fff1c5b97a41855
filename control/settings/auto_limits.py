"""Limits of `--auto`: budgets of its plans, and waiting times."""

from collections import Counter
from functools import partial
from typing import Annotated, ClassVar, Final, Self

from pydantic import Field, model_validator

from model.errors import ConfigError
from model.files import FileModel, OldNames, with_new_names
from model.goals.effort import Effort
from model.goals.goals import Budgets, Goals
from model.plan.plan import Plan
from model.quantities import Duration, as_size
from model.units import share_text


class AutoLimits(FileModel):
    """Every limit of `--auto`; those per run are budgets of its plan (`budgets`)."""

    replica_moves: Annotated[int, Field(gt=0)]
    """Replicas that one run may add."""
    leader_changes: Annotated[int, Field(ge=0)]
    """Partitions whose leader one run may change."""
    bytes: Annotated[int, Field(gt=0), as_size]
    """Bytes that one run may copy."""
    partitions_per_topic: Annotated[int, Field(gt=0)]
    """Partitions of one topic that one run may change."""
    partitions: Annotated[int, Field(gt=0)] | None = None
    """Partitions that one run may change; by default limited by the others only."""
    moves_in_flight: Annotated[int, Field(gt=0)]
    """Moves in progress at once."""
    min_gain: Annotated[float, Field(ge=0, le=1)]
    """Smallest relative reduction of the imbalance score, or of what brokers are outside their
    tolerance by, that is worth a run; repairs need none."""
    pause: Duration
    """Minimum time between the end of a run and the start of the next; ends with the process."""
    confirm: Duration
    """How long a cluster must have been out of tolerance before a run."""

    runs_per_day: Annotated[int, Field(gt=0)] | None = None
    """Runs on the cluster within 24 hours after which `--auto` starts no further one; by default
    not limited."""
    bytes_per_day: Annotated[int, Field(gt=0), as_size] | None = None
    """Bytes that all runs on the cluster may copy within 24 hours; by default not limited."""

    effort: Effort | None = None
    """How far plans go: `quick` changes leaders only, so that it repairs nothing that has to be
    copied; by default as `solve.effort` says."""

    old_names: ClassVar[OldNames] = {
        # It counted every changed partition.
        "moves_per_run": ("replica_moves", "leader_changes", "partitions"),
        "bytes_per_run": ("bytes",),
        "least_gain_share": ("min_gain",),
        "pause_s": ("pause",),
        "confirm_s": ("confirm",),
    }

    _renamed = model_validator(mode="before")(partial(with_new_names, names=old_names))

    @model_validator(mode="after")
    def _check_day(self) -> Self:
        if self.bytes_per_day is not None and self.bytes_per_day < self.bytes:
            raise ValueError(
                f"bytes_per_day ({self.bytes_per_day:,}) is less than bytes ({self.bytes:,}), "
                "so that a run may be too large for any day; lower bytes"
            )
        return self

    @property
    def budgets(self) -> Budgets:
        """Those limits that the planner enforces, under the same names."""
        return Budgets(**self.model_dump(include=set(Budgets.model_fields)))


CONSERVATIVE = AutoLimits(
    replica_moves=20,
    leader_changes=20,
    bytes=50 * 10**9,
    partitions_per_topic=10,
    moves_in_flight=2,
    min_gain=0.2,
    pause=1800,
    confirm=300,
)
"""For a production cluster: few moves, rarely, for a clear gain."""

EAGER = AutoLimits(
    replica_moves=500,
    leader_changes=500,
    bytes=10**12,
    partitions_per_topic=100,
    moves_in_flight=50,
    min_gain=0.05,
    pause=10,
    confirm=5,
)
"""For the local cluster, and for shared storage where a move takes a second."""

DAY_S: Final = 86_400.0

NAMED = {"conservative": CONSERVATIVE, "eager": EAGER}


def limits_named(name: str, configured: dict[str, AutoLimits]) -> AutoLimits:
    """The limits with this name; configured ones take precedence.

    Raises
    ------
    ConfigError
        There are no limits with this name.
    """
    known = NAMED | configured
    if name not in known:
        raise ConfigError(
            f"there are no limits named {name!r}; known: "
            f"{', '.join(sorted(known))}, "
            "and further ones come from [limits.NAME] in the configuration"
        )
    return known[name]


def limits_at_effort(
    name: str, configured: dict[str, AutoLimits], effort: Effort | None
) -> AutoLimits:
    """The limits with this name, with the given effort in place of their own.

    Raises ConfigError as `limits_named`.
    """
    found = limits_named(name, configured)
    return found if effort is None else found.model_copy(update={"effort": effort})


def tightened(goals: Goals, limits: AutoLimits) -> Goals:
    """The goals, each budget lowered to the limit if that is tighter."""
    own = goals.budgets.model_dump()
    tighter = {n: min(v, own.get(n, v)) for n, v in limits.budgets.model_dump().items()}
    return goals.model_copy(update={"budgets": Budgets(**(own | tighter))})


def unattended(goals: Goals) -> Goals:
    """The goals of `--auto`: nothing returns within a day, also on shared and tiered storage.

    Loads that change all the time would move partitions to and fro there every hour. Cooldowns that
    were set stay as they are.
    """
    if "cooldown" in goals.model_fields_set:
        return goals
    cooldown = {
        kind: rest.model_copy(update={"return_window_s": max(DAY_S, rest.return_window_s)})
        for kind, rest in goals.cooldown.items()
    }
    return goals.model_copy(update={"cooldown": cooldown})


def refusals(plan: Plan, limits: AutoLimits, *, repairs: bool = False) -> tuple[str, ...]:
    """Reasons against automatic approval of the plan; empty if it may be approved.

    repairs: the plan repairs the cluster, so that `min_gain` does not apply.
    """
    spent = spent_of(plan)
    words = [
        f"the plan has {name} = {spent[name]:,}, the limit is {limit:,}"
        for name, limit in limits.budgets.model_dump().items()
        if spent[name] > limit
    ]
    if plan.bytes_to_copy is None:
        words.append(
            "the plan copies partitions of unknown size, and the limits have bytes = "
            f"{limits.bytes:,}"
        )
    gain = 1 - plan.objective / plan.objective_before if plan.objective_before else 0.0
    if plan.goals.tolerance_first:
        # Moves into the tolerance may cost more of the score than they gain.
        gain = max(gain, plan.excess_removed)
    if gain < limits.min_gain and not repairs:
        reached = binding(plan)
        words.append(
            "the best plan within the limits reduces the imbalance score by "
            f"{share_text(gain)}, less than min_gain ({share_text(limits.min_gain)}"
            + (f"); limits reached: {', '.join(reached)}" if reached else ")")
        )
    return tuple(words)


def binding(plan: Plan) -> tuple[str, ...]:
    """Budgets of the plan that do not allow one more change of their kind."""
    spent = spent_of(plan)
    largest = max((m.bytes_to_copy or 0 for m in plan.moves), default=0)
    return tuple(
        f"{name} ({spent[name]:,} of {limit:,})"
        for name, limit in plan.goals.budgets.model_dump().items()
        if spent.get(name, 0) + (largest if name == "bytes" else 1) > limit
    )


def spent_of(plan: Plan) -> dict[str, int]:
    """How much of each budget a plan uses; bytes as far as known."""
    per_topic = Counter(m.topic for m in plan.moves)
    new_of = Counter[str]()
    into, out_of = Counter[int](), Counter[int]()
    for move in plan.moves:
        new_of[move.topic] += len(move.added)
        into.update(move.added)
        out_of.update(move.removed)
    return {
        "replica_moves": new_of.total(),
        "bytes": sum(m.bytes_to_copy or 0 for m in plan.moves),
        "leader_changes": plan.leader_changes,
        "partitions": len(plan.moves),
        "partitions_per_topic": max(per_topic.values(), default=0),
        "replica_moves_per_topic": max(new_of.values(), default=0),
        "replica_moves_in_per_broker": max(into.values(), default=0),
        "replica_moves_out_per_broker": max(out_of.values(), default=0),
    }
