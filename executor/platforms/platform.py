"""The interface to one kind of platform: how it moves partitions."""

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
    """How far a move is, read from the cluster rather than remembered."""

    NOT_BEGUN = "not begun"
    """Placed as before the move, with no reassignment in progress."""
    MOVING = "moving"
    HALFWAY = "halfway"
    """One replica has been exchanged, added or removed, so the next one may be."""
    ARRIVED = "arrived"
    """Replicas as planned and in sync, but not the leader yet."""
    DONE = "done"
    """Replicas, replicas in sync and leader exactly as planned."""
    REVERTED = "reverted"
    """On the previous brokers, but reordered, as a cancelled reassignment leaves them."""
    LOST = "lost"
    """In no planned state: someone else moved or deleted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMove:
    """A move as seen at one moment."""

    stage: MoveStage
    view: PartitionView | None = None
    """The partition's metadata; None if LOST."""
    bytes_copied: int | None = None
    """Local bytes on added replicas and in new log directories; None where unknown."""
    bytes_left: int | None = None
    """Bytes that the replica being added still lacks; None where unknown."""
    is_settled: bool = False
    """Whether no reassignment of it is in progress, so that replicas grow by new records alone."""
    bytes_inside_brokers: int = 0
    """Bytes so far of all copies between directories of its brokers, which copy one at a time."""
    log_dirs: tuple[str, ...] = ()
    """Directory of each replica of `view`, `any` where unknown; only if the move
    names directories."""
    reason: str = ""
    """What was found instead of the plan; only for LOST."""
    is_gone: bool = False
    """Whether its partition was deleted, or created again, and cannot be moved; only for LOST."""

    def is_as_before(self, move: Move) -> bool:
        """Whether nothing of the move has been done.

        A move that only changes the leader is ARRIVED from the start.
        """
        if self.stage is MoveStage.NOT_BEGUN:
            return True
        is_led_as_before = self.view is not None and (
            self.view.replicas == move.replicas_before and self.view.leader == move.leader_before
        )
        return self.stage is MoveStage.ARRIVED and is_led_as_before


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveFinding:
    """What was found before or after a move."""

    note: str = ""
    """For people; empty if there is nothing to report."""
    detail: Mapping[str, Any] = field(default_factory=dict)
    """For the journal; JSON values only."""


class PlatformReads(Protocol):
    """What may be asked of a platform without changing anything. One thread uses it.

    All methods except `requests` may raise ClusterUnreachable, after which the call may
    be repeated, or RightsMissing.
    """

    def check(self, moves: Sequence[Move]) -> None:
        """Raise GuardrailRefused where the platform forbids these moves."""

    def requests(self, move: Move) -> tuple[str, ...]:
        """The requests of a move, as text."""
        ...

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """Poll started moves."""
        ...

    def placed(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """As `progress`, without byte counts, which cost a request per broker."""
        ...

    def health(self, moves: Sequence[Move], planned: Sequence[Move]) -> BrokenStopRule | None:
        """The first problem with what these moves depend on; None if all is well.

        planned: all moves of the plan, those of other platforms included.
        """
        ...


class Platform(PlatformReads, Protocol):
    """One platform's way to move partitions; raises as `PlatformReads`."""

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, MoveFinding]:
        """Make the moves cheap, in bounded time; ends early once `stop` is set."""
        ...

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Send the next request of each move; returns when answered, not when done."""
        ...

    def cancel(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Cancel started moves, back to where their last step began.

        REFUSED for moves that continue; UNKNOWN where nothing is in progress any more, so that
        only polling shows the outcome. To be repeated for moves that are REVERTED.
        """
        ...

    def finish(self, moves: Sequence[Move]) -> None:
        """Do the last step of moves that have ARRIVED; may be repeated."""

    def after(self, move: Move) -> None:
        """Start examining what a completed move left behind; returns at once."""

    def noted(self) -> Mapping[PartitionId, MoveFinding]:
        """What was found after moves; waits a bounded time, and raises nothing."""
        ...
