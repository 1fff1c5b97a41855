"""The port: how one kind of platform moves partitions."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from executor.client.responses import PartitionResponse, PartitionView
from executor.health.health_rules import BrokenStopRule
from model.ids import PartitionId
from model.plan.plan import Move


class MoveStage(Enum):
    """How far a move is, read from the cluster and not from memory."""

    NOT_BEGUN = "not begun"
    """Placed as before the move, and nothing is under way."""
    MOVING = "moving"
    HALFWAY = "halfway"
    """One replica has been exchanged, and the next may be."""
    ARRIVED = "arrived"
    """Replicas as planned and in sync; the planned leader does not lead yet."""
    DONE = "done"
    """Replicas, replicas in sync and leader exactly as planned."""
    REVERTED = "reverted"
    """On the brokers of before, in another order, as Kafka leaves it on a cancel."""
    LOST = "lost"
    """Neither here nor there: somebody else moved or removed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMove:
    """One move at one moment."""

    stage: MoveStage
    view: PartitionView | None = None
    """What metadata show, unless it is LOST."""
    bytes_copied: int | None = None
    """Local bytes on the added replicas and in the new log directories; None where
    that cannot be seen."""
    bytes_left: int | None = None
    """What the replica being added still lacks; None where that cannot be seen."""
    bytes_inside_brokers: int = 0
    """Bytes so far of all that its brokers copy into other directories, which they do
    one after the other."""
    log_dirs: tuple[str, ...] = ()
    """Directory of each replica of `view`, `any` where it is not known; of moves that
    name directories."""
    reason: str = ""
    """What was found in place of the plan; only for LOST."""

    def is_as_before(self, move: Move) -> bool:
        """Whether nothing of a move is made.

        One that only elects another leader is ARRIVED from the beginning.
        """
        if self.stage is MoveStage.NOT_BEGUN:
            return True
        is_led_as_before = self.view is not None and (
            self.view.replicas == move.replicas_before
            and self.view.leader == move.leader_before
        )
        return self.stage is MoveStage.ARRIVED and is_led_as_before


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What was done and found before a move."""

    note: str = ""
    """For people; empty where there is nothing to say."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """For the journal; JSON values only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFinding:
    """What was found out after a move."""

    note: str
    """For people."""
    detail: Mapping[str, Any]
    """For the journal; JSON values only."""


class Platform(Protocol):
    """One platform's way to move partitions. One thread uses it.

    All but `requests` may raise ClusterUnreachable, after which the call may be
    repeated, or RightsMissing.
    """

    def check(self, moves: Sequence[Move]) -> None:
        """Raise GuardrailRefused where the platform forbids these moves."""

    def requests(self, move: Move) -> tuple[str, ...]:
        """The requests that the move takes, as text."""
        ...

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, Preparation]:
        """Make the moves cheap; bounded, and ends early when `stop` is set."""
        ...

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Send the next request of each; returns when they are answered, not done."""
        ...

    def cancel(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Bring moves that were started back to where their last step began.

        Refused for those that go on; unknown where nothing is under way any more, and
        only a look tells how it ended. To be repeated for those that are REVERTED.
        """
        ...

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """Look at moves that were started."""
        ...

    def placed(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """As `progress`, without the bytes that cost a request to each broker."""
        ...

    def finish(self, moves: Sequence[Move]) -> None:
        """Take the step that moves which have ARRIVED still lack; may be repeated."""

    def health(self, moves: Sequence[Move]) -> BrokenStopRule | None:
        """What is wrong with what the moves of the plan need; None if all is well."""
        ...

    def after(self, move: Move) -> None:
        """Begin to look at what a move has left behind; returns at once."""

    def noted(self) -> Mapping[PartitionId, MoveFinding]:
        """What was found out after moves; waits a bounded time, and raises nothing."""
        ...
