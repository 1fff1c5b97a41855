"""What a move occupies: resources of brokers, their disks, and time."""

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
"""Bytes of replicas to be copied between directories of one broker."""
NO_SIZES: Final[Sizes] = {}


class CopyDirection(Enum):
    """The direction of a copy through a broker."""

    IN = "in"
    OUT = "out"
    INSIDE = "inside"
    """Between log directories of the broker, one copy at a time."""


CopyResource = tuple[BrokerId, CopyDirection]


@dataclass(frozen=True, slots=True, kw_only=True)
class Copy:
    """A copy of one replica; within a broker if source and target are the same."""

    source: BrokerId
    target: BrokerId
    size: int

    @property
    def resources(self) -> tuple[CopyResource, ...]:
        """The resources that the copy occupies."""
        if self.source == self.target:
            return ((self.target, CopyDirection.INSIDE),)
        return ((self.source, CopyDirection.OUT), (self.target, CopyDirection.IN))


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySpeed:
    """Copy throughput of brokers, and the fixed time of a move."""

    network: float
    """Bytes per second into a broker, and out of it, each."""
    inside: float
    """Bytes per second between log directories of a broker."""
    seconds: float
    """Fixed seconds for each replica."""

    def of(self, resource: CopyResource) -> float:
        """Bytes per second through one resource."""
        return self.inside if resource[1] is CopyDirection.INSIDE else self.network


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveTask:
    """A move as scheduling sees it."""

    move: Move
    legs: tuple[Copy, ...]
    """Copies between brokers, one after the other."""
    inside: tuple[Copy, ...]
    """Copies within brokers, in parallel with the others."""

    @property
    def copies(self) -> tuple[Copy, ...]:
        """All copies."""
        return (*self.legs, *self.inside)

    @property
    def is_alone(self) -> bool:
        """Whether it has to run alone."""
        return is_internal(self.move)

    def fixed_s(self, speed: CopySpeed) -> float:
        """Seconds apart from copying."""
        return speed.seconds * max(1, len(self.move.added))

    def alone_s(self, speed: CopySpeed) -> float:
        """Seconds where it shares no resource."""
        legs_s = sum(leg.size for leg in self.legs) / speed.network
        inside_s = max((c.size / speed.inside for c in self.inside), default=0.0)
        return max(legs_s, inside_s) + self.fixed_s(speed)

    def resources(self) -> Iterator[tuple[CopyResource, int]]:
        """Bytes through each resource."""
        for copy in self.copies:
            for resource in copy.resources:
                yield resource, copy.size

    def spans(self, speed: CopySpeed) -> Iterator[tuple[CopyResource, float, float]]:
        """Each resource, with the seconds from the start of the move to its copy, and of the copy.

        Copies between brokers run one after the other, each at full speed; those within a
        broker begin at once.
        """
        begin_s = 0.0
        for leg in self.legs:
            for resource in leg.resources:
                yield resource, begin_s, leg.size / speed.network
            begin_s += leg.size / speed.network
        for copy in self.inside:
            for resource in copy.resources:
                yield resource, 0.0, copy.size / speed.inside


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleConstraints:
    """The conditions that hold for every order of a run."""

    limits: RunLimits
    speed: CopySpeed
    free_bytes: Mapping[BrokerId, int]
    """Free bytes beyond the reserve, by broker that reports them; others are unlimited."""
    urgent: frozenset[PartitionId] = frozenset()
    """Partitions that leave dead or draining brokers."""


def tasks_of(moves: Iterable[Move], sizes: Sizes = NO_SIZES) -> list[MoveTask]:
    """Return what each move occupies, in order."""
    return [_work(move, sizes) for move in moves]


def _work(move: Move, sizes: Sizes) -> MoveTask:
    size = bytes_per_replica(move)
    # In the order of the exchange; the leader comes last.
    added = sorted(move.added, key=lambda broker: broker == move.leader_after)
    inside = {b: sizes.get((move.id, b), 0) for b in changed_dirs(move)}
    return MoveTask(
        move=move,
        legs=tuple(
            Copy(source=move.leader_before, target=broker, size=size) for broker in added if size
        ),
        inside=tuple(
            Copy(source=broker, target=broker, size=held) for broker, held in inside.items() if held
        ),
    )
