"""Faults of calls: lost, slow or refused. Brokers are killed in `cluster`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum


class Lost(Enum):
    """The lost part of a call."""

    REQUEST = "request"
    """The cluster never receives it."""
    ANSWER = "answer"
    """It is executed, but the response is lost."""


def _ignore(call: str, *, made: bool) -> None:
    """Ignore a call."""


@dataclass(slots=True, kw_only=True)
class Faults:
    """Faults in force; may be changed at any time."""

    away: bool = False
    """No broker answers."""
    slow_s: float = 0.0
    """Additional time of every response."""
    denied: set[str] = field(default_factory=set)
    """Names of calls that fail for missing rights."""
    lost: dict[int, Lost] = field(default_factory=dict)
    """Lost part by number of the changing call, from 0."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Error messages of refused calls by name."""
    most_partitions: int | None = None
    """Partitions per reassignment request; more violate a policy. None: no policy."""
    on_call: Callable[..., None] = _ignore
    """Called before (`made=False`) and after each change takes effect; may raise."""
