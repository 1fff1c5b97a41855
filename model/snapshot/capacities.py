"""What brokers can carry: as an operator gives it, and what is still lacking."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from model.errors import ConfigError
from model.ids import BrokerId
from model.plan.proposal import HOLDING
from model.snapshot.snapshot import (
    Broker,
    CapacitySource,
    LogDir,
    Resource,
    Snapshot,
    SnapshotHeader,
)
from model.units import listed

DEFAULT: Final = -1
"""Stands for all brokers that have no entry of their own."""
_NAMED: Final = 10
"""A sentence names at most so many brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The capacities that an operator gives for one broker."""

    capacity: Mapping[Resource, float]
    """Bytes/s, bytes and cores."""
    log_dirs: tuple[LogDir, ...] = ()
    """By path; empty where the bytes are given of the broker as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacities:
    """Capacities given by an operator; they override what brokers report."""

    source: CapacitySource
    place: str
    """Where it stands, for words: a file's name, or that of a table."""
    by_broker: Mapping[int, Entry]
    """By broker id, `DEFAULT` for all others."""

    def of(self, broker: Broker, paths: Sequence[str] = ()) -> Broker:
        """The broker with its capacity; as it was where none is given.

        paths: all its log directories, where they are known.

        Raises ConfigError: a log directory is given that the broker does not have.
        """
        entry = self.by_broker.get(broker.id, self.by_broker.get(DEFAULT))
        if entry is None:
            return broker
        sources = dict.fromkeys(entry.capacity, self.source)
        update = {
            "capacity": {**broker.capacity, **entry.capacity},
            "capacity_from": {**broker.capacity_from, **sources},
            "log_dirs": self._log_dirs(broker, entry, paths),
        }
        return broker.model_copy(update=update)

    def _log_dirs(self, broker: Broker, entry: Entry, paths: Sequence[str]) -> tuple[LogDir, ...]:
        paths = paths or [d.path for d in broker.log_dirs]
        given = {d.path: d.capacity_bytes for d in entry.log_dirs}
        foreign = [path for path in given if path not in paths]
        if not paths:
            # One alone is none to choose from.
            return entry.log_dirs if len(entry.log_dirs) > 1 else ()
        if foreign:
            raise ConfigError(
                f"{self.place}: broker {broker.id} has no log directory {foreign[0]}; "
                f"it has {', '.join(paths)}"
            )
        return tuple(
            d.model_copy(update={"capacity_bytes": given.get(d.path, d.capacity_bytes)})
            for d in broker.log_dirs
        )


def with_capacities(snapshot: Snapshot, given: Capacities) -> Snapshot:
    """Return the snapshot with the given capacities.

    Raises ConfigError for a log directory that its broker does not have, and
    InvalidCluster for capacities too far apart to be of one unit.
    """
    brokers = tuple(given.of(broker) for broker in snapshot.header.brokers)
    header = snapshot.header.model_copy(update={"brokers": brokers})
    return Snapshot(header, snapshot.partitions)


def capacity_notes(snapshot: Snapshot, given: Capacities | None) -> tuple[str, ...]:
    """Clauses on capacities of absent brokers, missing ones, and unused ones.

    given: None where the operator gives none.
    """
    header = snapshot.header
    return (*_of_nobody(header, given), *_lacking(header), *_of_no_load(header))


def _of_nobody(header: SnapshotHeader, given: Capacities | None) -> Iterator[str]:
    if given is None:
        return
    present = [b.id for b in header.brokers]
    absent = sorted(given.by_broker.keys() - set(present) - {DEFAULT})
    if absent:
        yield (
            f"{given.place}: a capacity is given of {_names(absent)}, but the cluster "
            f"shows only {_names(present)}; correct the id unless the broker is away"
        )


def _lacking(header: SnapshotHeader) -> Iterator[str]:
    holding = [b for b in header.brokers if b.state in HOLDING]
    for resource in header.resources:
        lacking = [b.id for b in holding if resource not in b.capacity]
        if 0 < len(lacking) < len(holding):
            yield (
                f"{resource}: no capacity is known of {_names(lacking)}, so all "
                "brokers count as equal in it; a known one still limits its own broker"
            )


def _of_no_load(header: SnapshotHeader) -> Iterator[str]:
    given = {r for b in header.brokers for r in b.capacity}
    idle = [r.value for r in Resource if r in given and r not in header.resources]
    if idle:
        yield (
            f"{', '.join(idle)}: a capacity is known, but no load, so nothing is "
            "balanced or limited by it"
        )


def _names(brokers: Sequence[int] | Sequence[BrokerId]) -> str:
    return f"{'broker' if len(brokers) == 1 else 'brokers'} {listed(brokers, _NAMED)}"
