"""What happens to a run and its moves, as values.

The run gate and the in-flight moves return events; the run alone journals them and
shows them. An event that announces a request comes before the request is sent, so the
journal has every request first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from executor.run.leader_outage import LeaderOutage
from model.plan.plan import Move
from model.run import MoveState


class RunEvent:
    """Something that has happened, or is about to happen, in a run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Adopted(RunEvent):
    """A move that an earlier process requested is still in progress."""

    move: Move


@dataclass(frozen=True, slots=True)
class NotStarted(RunEvent):
    """A move that was requested has not started, so it is planned again."""

    move: Move


@dataclass(frozen=True, slots=True)
class Requesting(RunEvent):
    """Requests for these moves are about to be sent."""

    moves: Sequence[Move]
    again: bool = False
    """Whether they repeat requests that had no effect."""


@dataclass(frozen=True, slots=True)
class RequestAnswered(RunEvent):
    """The cluster answered the request for a move, or did not answer in time."""

    move: Move
    answer: str
    """A `ResponseStatus`, as the journal spells it."""


@dataclass(frozen=True, slots=True)
class Cancelling(RunEvent):
    """Requests to cancel these moves are about to be sent."""

    moves: Sequence[Move]


@dataclass(frozen=True, slots=True)
class Electing(RunEvent):
    """Preferred leader elections for these moves are about to be requested."""

    moves: Sequence[Move]
    again: bool = False


@dataclass(frozen=True, slots=True)
class Copied(RunEvent):
    """How much of a move has arrived."""

    move: Move
    size_bytes: int | None
    """None where the brokers do not report it."""


@dataclass(frozen=True, slots=True)
class Moved(RunEvent):
    """A move is complete."""

    move: Move
    outage: LeaderOutage | None = None
    """None where this process did not watch the move from its first request."""


@dataclass(frozen=True, slots=True)
class Prepared(RunEvent):
    """What preparing a move found."""

    move: Move
    note: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Noted(RunEvent):
    """A remark on a move, in addition to earlier ones."""

    move: Move
    note: str
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failed(RunEvent):
    """A move was skipped or cancelled, or is stuck."""

    move: Move
    state: MoveState
    """DROPPED or STUCK."""
    reason: str
    unneeded: bool = False
    """Whether it was skipped since nothing is wrong any longer where it would have moved."""


@dataclass(frozen=True, slots=True)
class Paused(RunEvent):
    """The run starts no moves for now."""

    reason: str


@dataclass(frozen=True, slots=True)
class Continued(RunEvent):
    """A pause has ended."""


@dataclass(frozen=True, slots=True)
class Stopping(RunEvent):
    """The run starts no further moves."""

    reason: str


RunEvents = Iterator[RunEvent]
