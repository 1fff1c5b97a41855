"""What a move occupies while it runs: lanes of brokers, their disks, and time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from executor.platforms.replica_log_dirs import changed_dirs
from executor.schedule.admission import bytes_per_replica, is_internal
from executor.timing import RunLimits
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move

Sizes = Mapping[tuple[PartitionId, BrokerId], int]
"""Bytes of replicas that are to be copied inside their broker."""
NO_SIZES: Final[Sizes] = {}


class CopyDirection(Enum):
    """Which way a copy passes a broker."""

    IN = "in"
    OUT = "out"
    INSIDE = "inside"
    """From one log directory to another: one copy after the other."""


CopyResource = tuple[BrokerId, CopyDirection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """One replica on its way; inside its broker where source and target are one."""

    source: BrokerId
    target: BrokerId
    size: int

    @property
    def resources(self) -> tuple[CopyResource, ...]:
        """What it passes."""
        if self.source == self.target:
            return ((self.target, CopyDirection.INSIDE),)
        return ((self.source, CopyDirection.OUT), (self.target, CopyDirection.IN))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpeed:
    """What brokers copy in a second, and what a move takes apart from its bytes."""

    network: float
    """Bytes into a broker, and out of it, each."""
    inside: float
    """Bytes from one log directory of a broker to another."""
    seconds: float
    """For each replica."""

    def of(self, resource: CopyResource) -> float:
        """Bytes per second through one lane."""
        return self.inside if resource[1] is CopyDirection.INSIDE else self.network


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTask:
    """One move as the schedule sees it."""

    move: Move
    legs: tuple[Copy, ...]
    """Between brokers, one after the other."""
    inside: tuple[Copy, ...]
    """Inside brokers, beside them."""

    @property
    def copies(self) -> tuple[Copy, ...]:
        """All of them."""
        return (*self.legs, *self.inside)

    @property
    def is_alone(self) -> bool:
        """Whether nothing may run beside it."""
        return is_internal(self.move)

    def fixed_s(self, speed: CopySpeed) -> float:
        """What it takes apart from its bytes."""
        return speed.seconds * max(1, len(self.move.added))

    def alone_s(self, speed: CopySpeed) -> float:
        """What it takes where it shares nothing."""
        legs_s = sum(leg.size for leg in self.legs) / speed.network
        inside_s = max((c.size / speed.inside for c in self.inside), default=0.0)
        return max(legs_s, inside_s) + self.fixed_s(speed)

    def resources(self) -> Iterator[tuple[CopyResource, int]]:
        """Bytes that it sends through each lane."""
        for copy in self.copies:
            for resource in copy.resources:
                yield resource, copy.size


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConstraints:
    """What holds for every order of a run."""

    limits: RunLimits
    speed: CopySpeed
    free_bytes: Mapping[BrokerId, int]
    """Room on disks beside the reserve; brokers that do not say have no limit."""
    urgent: frozenset[PartitionId] = frozenset()
    """Moves that leave brokers which are dead or being drained."""


def tasks_of(moves: Iterable[Move], sizes: Sizes = NO_SIZES) -> list[MoveTask]:
    """What each move occupies, in their order."""
    return [_work(move, sizes) for move in moves]


def _work(move: Move, sizes: Sizes) -> MoveTask:
    size = bytes_per_replica(move)
    # In the order of the exchange; the leader comes last.
    added = sorted(move.added, key=lambda broker: broker == move.leader_after)
    inside = {b: sizes.get((move.id, b), 0) for b in changed_dirs(move)}
    return MoveTask(
        move=move,
        legs=tuple(
            Copy(source=move.leader_before, target=broker, size=size)
            for broker in added
            if size
        ),
        inside=tuple(
            Copy(source=broker, target=broker, size=held)
            for broker, held in inside.items()
            if held
        ),
    )
