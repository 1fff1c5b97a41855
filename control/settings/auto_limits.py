"""Limits of `--auto`: budgets for its plans, and what it waits for."""

from collections import Counter
from functools import partial
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from model.errors import ConfigError
from model.files import FileModel, OldNames, with_new_names
from model.goals.goals import Budgets, Goals
from model.plan.plan import Plan
from model.quantities import Duration, as_size
from model.units import percent_text


class AutoLimits(FileModel):
    """Every limit of `--auto`; those of a run are budgets of its plan (`budgets`)."""

    replica_moves: Annotated[int, Field(gt=0)]
    """New replicas of one run."""
    leader_changes: Annotated[int, Field(ge=0)]
    """Partitions that end one run with another leader."""
    bytes: Annotated[int, Field(gt=0), as_size]
    """Bytes that one run may copy."""
    partitions_per_topic: Annotated[int, Field(gt=0)]
    """Partitions of one topic that one run may change."""
    partitions: Annotated[int, Field(gt=0)] | None = None
    """Partitions that one run may change; unset, what the other limits leave."""
    moves_in_flight: Annotated[int, Field(gt=0)]
    min_gain: Annotated[float, Field(ge=0, le=1)]
    """Smallest improvement worth a run, as a share of the objective before; repairs
    need none."""
    pause: Duration
    """Least time between the end of a run and the start of the next."""
    confirm: Duration
    """How long a cluster must have been out of tolerance before a run."""

    old_names: ClassVar[OldNames] = {
        # It counted every changed partition.
        "moves_per_run": ("replica_moves", "leader_changes", "partitions"),
        "bytes_per_run": ("bytes",),
        "least_gain_share": ("min_gain",),
        "pause_s": ("pause",),
        "confirm_s": ("confirm",),
    }

    _renamed = model_validator(mode="before")(partial(with_new_names, names=old_names))

    @property
    def budgets(self) -> Budgets:
        """What the planner keeps of the limits, under the same names."""
        own = set(Budgets.model_fields) & set(type(self).model_fields)
        return Budgets(**{name: getattr(self, name) for name in own})


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
"""For a cluster in production: few moves, rarely, for a clear gain."""

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

NAMED = {"conservative": CONSERVATIVE, "eager": EAGER}


def limits_named(name: str, configured: dict[str, AutoLimits]) -> AutoLimits:
    """The limits of this name, those of the configuration first.

    Raises
    ------
    ConfigError
        There are none of this name.
    """
    known = NAMED | configured
    if name not in known:
        raise ConfigError(
            f"there are no limits named {name!r}; known are "
            f"{', '.join(sorted(known))}, "
            "and further ones come from [limits.NAME] in the configuration"
        )
    return known[name]


def tightened(goals: Goals, limits: AutoLimits) -> Goals:
    """The goals with the tighter of their budgets and the limits."""
    own = goals.budgets.model_dump()
    given = limits.budgets.model_dump()
    both = {
        name: min(v for v in (own.get(name), given.get(name)) if v is not None)
        for name in own.keys() | given.keys()
    }
    return goals.model_copy(update={"budgets": Budgets(**both)})


def refusals(
    plan: Plan, limits: AutoLimits, *, repairs: bool = False
) -> tuple[str, ...]:
    """Why the plan may not be approved without a person; empty if it may.

    repairs: it mends the cluster, whatever it gains in balance.
    """
    spent = spent_of(plan)
    words = [
        f"the plan has {name} = {spent[name]:,}, the limit is {limit:,}"
        for name, limit in limits.budgets.model_dump().items()
        if spent[name] > limit
    ]
    if plan.bytes_to_copy is None and "bytes" in limits.budgets.model_dump():
        words.append(
            "the plan copies partitions of unknown size, and the limits have bytes = "
            f"{limits.bytes:,}"
        )
    gain = 1 - plan.objective / plan.objective_before if plan.objective_before else 0.0
    if gain < limits.min_gain and not repairs:
        reached = binding(plan)
        words.append(
            "the best plan within the limits improves the objective by "
            f"{percent_text(gain)}, less than min_gain ({percent_text(limits.min_gain)}"
            + (f"); limits that bind: {', '.join(reached)}" if reached else ")")
        )
    return tuple(words)


def binding(plan: Plan) -> tuple[str, ...]:
    """Budgets of the plan that leave no room for a further change of their kind."""
    spent = spent_of(plan)
    largest = max((m.bytes_to_copy or 0 for m in plan.moves), default=0)
    return tuple(
        f"{name} ({spent[name]:,} of {limit:,})"
        for name, limit in plan.goals.budgets.model_dump().items()
        if spent.get(name, 0) + (largest if name == "bytes" else 1) > limit
    )


def spent_of(plan: Plan) -> dict[str, int]:
    """What a plan changes, by the names of its budgets; bytes as far as known."""
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
