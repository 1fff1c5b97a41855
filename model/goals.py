"""What is wanted of a plan: goals, prices and rules as data."""

import re
from typing import Annotated, Literal

from pydantic import Field, field_validator

from model.files import FileModel
from model.snapshot import Resource, StorageKind

MIB: int = 2**20

Share = Annotated[float, Field(gt=0, le=1)]


class Goal(FileModel):
    """Level one resource over the brokers that may hold load."""

    resource: Resource
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    floor: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    """Mean load per broker, bytes/s or bytes, under which the resource is neither
    balanced nor counted: near zero, noise looks like imbalance."""
    tolerance: Share = 0.10
    """A broker within `level * (1 +- tolerance)` is level."""


class Cooldown(FileModel):
    """Rest after a move, by storage kind."""

    rest_s: Annotated[float, Field(ge=0)]
    """A partition moved less than this ago stays."""
    return_window_s: Annotated[float, Field(ge=0)]
    """A partition does not go back to a broker it left less than this ago."""


class Goals(FileModel):
    """Everything that decides what a good plan is; printed with each plan.

    Defaults follow the table in docs/planning.md.
    """

    objective: Literal["variance"] = "variance"
    balance: tuple[Goal, ...] = (
        Goal(resource=Resource.NET_IN, floor=MIB),
        Goal(resource=Resource.NET_OUT, floor=MIB),
    )
    move_price: Annotated[float, Field(gt=0)] | None = None
    """Price of one new replica; default tolerance x brokers / partitions."""
    leader_price_share: Annotated[float, Field(ge=0)] = 0.05
    """Price of a change of leader as a share of the price of a move."""
    capacity_limit: Share = 0.85
    """Highest allowed share of a broker's capacity."""
    replicas_per_broker: Annotated[int, Field(gt=0)] = 10_000
    cooldown: dict[StorageKind, Cooldown] = {
        StorageKind.SHARED: Cooldown(rest_s=600, return_window_s=3600),
        StorageKind.TIERED: Cooldown(rest_s=600, return_window_s=3600),
        StorageKind.REPLICATED: Cooldown(rest_s=3600, return_window_s=86400),
    }
    excluded_topics: tuple[str, ...] = ()
    """Regular expressions; a topic whose whole name matches one stays."""

    @field_validator("balance")
    @classmethod
    def _once(cls, balance: tuple[Goal, ...]) -> tuple[Goal, ...]:
        resources = [goal.resource for goal in balance]
        for resource in resources:
            if resources.count(resource) > 1:
                raise ValueError(f"{resource} stands in two goals; keep one of them")
        return balance

    @field_validator("excluded_topics")
    @classmethod
    def _patterns(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as exc:
                raise ValueError(
                    f"{pattern!r} is no regular expression: {exc}"
                ) from exc
        return patterns

    def excludes(self, topic: str) -> bool:
        """Whether an exclusion covers this topic."""
        return any(re.fullmatch(p, topic) for p in self.excluded_topics)

    def tolerance_of(self, resource: Resource) -> float | None:
        """The band of a resource, None where it is no goal."""
        found = [g.tolerance for g in self.balance if g.resource is resource]
        return found[0] if found else None

    def rest_of(self, storage: StorageKind) -> Cooldown:
        """The cooldown of a storage kind; none where none is given."""
        return self.cooldown.get(storage, Cooldown(rest_s=0, return_window_s=0))


class SolveLimits(FileModel):
    """When a solve ends; counted in deterministic work, so that plans repeat."""

    work: Annotated[float, Field(gt=0)] = 20.0
    """CP-SAT's deterministic time, about seconds of one core."""
    seed: Annotated[int, Field(ge=0)] = 0
    gap: Annotated[float, Field(ge=0)] = 1e-6
    """A plan this close to its bound, in units of F, is called optimal."""
