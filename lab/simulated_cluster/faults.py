"""What is to go wrong between the executor and a simulated cluster."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Lost(Enum):
    """What of a call does not arrive."""

    REQUEST = "request"
    """The cluster never hears of it."""
    ANSWER = "answer"
    """It is done, and nobody is told."""


def _ignore(call: str, *, made: bool) -> None:
    """By default nobody listens."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """Filled in by whoever runs the cluster; may be changed at any time."""

    away: bool = False
    """No broker answers."""
    slow_s: float = 0.0
    """What every answer takes longer."""
    denied: set[str] = field(default_factory=set)
    """Names of calls that the rights do not suffice for."""
    lost: dict[int, Lost] = field(default_factory=dict)
    """Of the n-th call that changes something, counted from 0."""
    refusals: dict[str, str] = field(default_factory=dict)
    """The words with which a call is refused, by its name."""
    most_partitions: int | None = None
    """A request for more replica lists violates a policy."""
    on_call: Callable[..., None] = _ignore
    """Told of every call before (`made=False`) and after it has effect; may raise."""
