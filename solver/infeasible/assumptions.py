"""The requirements a conflict may consist of, each something a person can name and change."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np

from model.snapshot.snapshot import Bools
from solver.problem.co_location import RackMode, permitted, rack_mode
from solver.problem.problem import Problem

BUDGETS = (
    "replica_moves",
    "bytes",
    "leader_changes",
    "replica_moves_per_topic",
    "replica_moves_in_per_broker",
    "replica_moves_out_per_broker",
    "partitions",
    "partitions_per_topic",
)
"""Budgets by number: the field names of `Budgets`."""


class RequirementKind(IntEnum):
    """Kinds of requirements. Among equally small sets, earlier kinds are preferred."""

    STATE = 0
    """`at` a broker: it takes nothing new, and ends empty if it is leaving."""
    PIN = 1
    """`at` a position in the goals' pins."""
    PLACEMENT = 2
    """`at` a position in the goals' placements."""
    RACKS = 3
    """The rack rule."""
    RETURN = 4
    """No partition returns within the return window to a broker it left."""
    STAYS = 5
    """`at` a number of `FixedReason`: partitions may not move for this reason."""
    BUDGET = 6
    """`at` a position in `BUDGETS`."""
    REPLICA_LIMIT = 7
    """Replicas per broker."""
    CAPACITY = 8
    """`at` a broker, `part` a position in the header's resources."""
    NEW_BROKER = 9
    """`at` a rack: no broker is added there."""
    ROW = 10
    """`at` a row: its replication factor is kept, on distinct brokers."""


@dataclass(frozen=True, slots=True, order=True)
class Requirement:
    """One requirement; brokers, racks and rows are given by position."""

    kind: RequirementKind
    at: int = 0
    part: int = 0


RACKS = Requirement(RequirementKind.RACKS)
RETURN = Requirement(RequirementKind.RETURN)
REPLICA_LIMIT = Requirement(RequirementKind.REPLICA_LIMIT)


@dataclass(frozen=True)
class Barriers:
    """Which requirements forbid what, broker by broker."""

    problem: Problem

    def of(self, row: int, broker: int) -> Iterator[Requirement]:
        """Yield the requirements that forbid a row's replica on a broker after the plan.

        `row` and `broker` are positions; the broker is one of the problem's. Covers states, pins
        and the return window; yields nothing where these allow it.
        """
        may, snapshot = self.problem.may, self.problem.snapshot
        home = broker in self.problem.replicas[row]
        lost = home and snapshot.header.brokers[broker].id in snapshot.lost_on(row)
        if may.leaving[broker] or lost or not (home or may.alive[broker]):
            yield Requirement(RequirementKind.STATE, broker)
        for pin in self._pins_of(row):
            if not self._pinned[pin, broker]:
                yield Requirement(RequirementKind.PIN, pin)
        if not home and broker in may.barred.get(row, ()):
            yield RETURN

    def of_added(self, row: int, rack: int) -> Iterator[Requirement]:
        """Yield pins that forbid a row's replica on a broker added in a rack, both by position.

        An added broker gets a new id, so no pin that lists ids includes it.
        """
        name = self.problem.may.spreading.racks[rack]
        for number in self._pins_of(row):
            pin = self.problem.goals.pins[number]
            if pin.brokers or (pin.racks and name not in pin.racks):
                yield Requirement(RequirementKind.PIN, number)

    def placements_of(self, row: int) -> tuple[Requirement, ...]:
        """List the explicit placements that match a row's topic, in the order of the goals.

        The first one binds the row; empty where the rack rule binds it.
        """
        numbers = self._placements[self._topic(row)]
        return tuple(Requirement(RequirementKind.PLACEMENT, number) for number in numbers)

    @cached_property
    def rack_mode(self) -> RackMode:
        """The rack mode of rows without an explicit placement."""
        return rack_mode(self.problem.snapshot, self.problem.goals)

    def takers(self, row: int) -> Bools:
        """Return (B,) brokers that their state and the pins allow to get a new replica of a row."""
        taking = self.problem.may.alive.copy()
        for pin in self._pins_of(row):
            taking &= self._pinned[pin]
        return taking

    def _topic(self, row: int) -> int:
        return int(self.problem.snapshot.partitions.topic[row])

    def _pins_of(self, row: int) -> tuple[int, ...]:
        number = int(self.problem.snapshot.partitions.partition[row])
        pins = self.problem.goals.pins
        return tuple(
            i
            for i in self._pins_by_topic[self._topic(row)]
            if not pins[i].partitions or number in pins[i].partitions
        )

    @cached_property
    def _pins_by_topic(self) -> tuple[tuple[int, ...], ...]:
        pins = self.problem.goals.pins
        return tuple(
            tuple(i for i, p in enumerate(pins) if p.topics.match(t.name))
            for t in self.problem.snapshot.header.topics
        )

    @cached_property
    def _pinned(self) -> Bools:
        """(pins, B) whether a pin permits a broker."""
        brokers = self.problem.snapshot.header.brokers
        return np.array([permitted(pin, brokers) for pin in self.problem.goals.pins], np.bool_)

    @cached_property
    def _placements(self) -> tuple[tuple[int, ...], ...]:
        """(topics,) positions of the placements that match each topic."""
        rules = self.problem.goals.placements
        return tuple(
            tuple(i for i, r in enumerate(rules) if r.topics.match(t.name))
            for t in self.problem.snapshot.header.topics
        )
