"""Where the replicas of each partition may lie, as far as pins and placements say."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.goals.goals import Goals, Pin
from model.goals.rack_placement import PlacementRule
from model.snapshot.snapshot import Bools, Broker, Ints, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """The brokers and the placement rule that apply to a group of partitions."""

    allowed: Bools
    """(brokers,) True where every pin permits a replica, in the header's order."""
    placement: PlacementRule | None
    """The placement that replaces the rack rule."""


@dataclass(frozen=True)
class Domains:
    """The domain of every row: rows with equal pins and placement share one."""

    snapshot: Snapshot
    goals: Goals

    @cached_property
    def of_row(self) -> Ints:
        """(n,) position of each row's domain in `each`."""
        return self._found[0]

    @cached_property
    def each(self) -> tuple[Domain, ...]:
        """The distinct domains, in the order of their numbers in `of_row`."""
        return tuple(self._domain(int(row)) for row in self._found[1].tolist())

    def of(self, row: int) -> Domain:
        """Return the domain of one row of the snapshot."""
        return self.each[int(self.of_row[row])]

    @cached_property
    def _found(self) -> tuple[Ints, Ints]:
        """(n,) the number of each row's domain, and one row of each domain."""
        n = len(self.snapshot)
        code = np.zeros(n, np.int64)
        columns: list[Ints | Bools] = [*self._pinned_rows]
        if self.goals.placements:
            columns.append(self._placement_number[self.snapshot.partitions.topic])
        for column in columns:
            # Renumbered each time, so that many pins cannot overflow.
            code = np.unique(code * (len(self.goals.placements) + 2) + column, return_inverse=True)[
                1
            ].reshape(n)
        first = np.unique(code, return_index=True)[1]
        return code, first.astype(np.int64)

    @cached_property
    def _pinned_rows(self) -> tuple[Bools, ...]:
        """(n,) for each pin, True for the rows that it is about."""
        return tuple(map(self._rows_of, self.goals.pins))

    def _rows_of(self, pin: Pin) -> Bools:
        columns = self.snapshot.partitions
        named = np.array([pin.topics.match(t.name) for t in self.snapshot.header.topics], np.bool_)
        rows: Bools = named[columns.topic]
        if pin.partitions:
            rows &= np.isin(columns.partition, pin.partitions)
        return rows

    @cached_property
    def _placement_number(self) -> Ints:
        """(topics,) 1 + the position of the topic's placement; 0 for none."""
        rules = self.goals.placements
        found = [
            next((i for i, r in enumerate(rules, 1) if r.topics.match(t.name)), 0)
            for t in self.snapshot.header.topics
        ]
        return np.array(found, np.int64)

    def _domain(self, row: int) -> Domain:
        pins = [p for p, rows in zip(self.goals.pins, self._pinned_rows, strict=True) if rows[row]]
        brokers = self.snapshot.header.brokers
        return Domain(
            allowed=np.array([all(_permits(p, b) for p in pins) for b in brokers], np.bool_),
            placement=self.goals.placement_of(self.snapshot.id(row).topic),
        )


def _permits(pin: Pin, broker: Broker) -> bool:
    return (not pin.brokers or broker.id in pin.brokers) and (
        not pin.racks or broker.rack in pin.racks
    )
