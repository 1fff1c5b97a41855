"""Dead brokers and failed log directories with replicas, and unavailable partitions."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from model.ids import NO_BROKER, BrokerId, PartitionId
from model.snapshot.snapshot import BrokerState, Snapshot
from model.units import count_text, listed

MOST_NAMED: Final = 10
"""Unavailable partitions that are named; further ones are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadBroker:
    """A broker that is unregistered or fenced, and what is still assigned to it."""

    id: BrokerId
    replicas: int
    movable: int
    """Of these, replicas of partitions with a leader, which others can copy."""

    def words(self) -> str:
        """Describe it in a clause: `broker 3 is dead and holds 22 replicas`.

        Replicas that are not movable are counted as unavailable: `..., 4 of them unavailable`.
        """
        replicas = count_text(self.replicas, "replica")
        message = f"broker {self.id} is dead and holds {replicas}"
        left = self.replicas - self.movable
        return f"{message}, {left:,} of them unavailable" if left else message


def dead_brokers(snapshot: Snapshot) -> tuple[DeadBroker, ...]:
    """Dead brokers that still have replicas assigned, sorted by id."""
    led = (snapshot.partitions.leader != NO_BROKER)[snapshot.replica_row]
    size = len(snapshot.header.brokers)
    every = np.bincount(snapshot.replica_position, minlength=size).tolist()
    movable = np.bincount(snapshot.replica_position[led], minlength=size).tolist()
    return tuple(
        DeadBroker(id=b.id, replicas=every[at], movable=movable[at])
        for at, b in enumerate(snapshot.header.brokers)
        if b.state is BrokerState.DEAD and every[at]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedDir:
    """A log directory of a live broker that has failed, and what is still assigned to it."""

    broker: BrokerId
    path: str
    replicas: int
    movable: int
    """As in `DeadBroker`."""

    def words(self) -> str:
        """Describe it in a clause, as `DeadBroker.words` does."""
        replicas = count_text(self.replicas, "replica")
        message = f"log directory {self.path} of broker {self.broker} has failed with {replicas}"
        left = self.replicas - self.movable
        return f"{message}, {left:,} of them unavailable" if left else message


def failed_dirs(snapshot: Snapshot) -> tuple[FailedDir, ...]:
    """Failed log directories of live brokers that hold replicas, by broker and path."""
    lost, dirs = snapshot.in_failed_dir, snapshot.partitions.replica_dir
    if dirs is None or not lost.any():
        return ()
    led = (snapshot.partitions.leader != NO_BROKER)[snapshot.replica_row]
    found = []
    for at, broker in enumerate(snapshot.header.brokers):
        for number, entry in enumerate(broker.log_dirs):
            here = lost & (snapshot.replica_position == at) & (dirs == number)
            if here.any() and broker.state is not BrokerState.DEAD:
                found.append(
                    FailedDir(
                        broker=broker.id,
                        path=entry.path,
                        replicas=int(here.sum()),
                        movable=int((here & led).sum()),
                    )
                )
    return tuple(found)


def unavailable(snapshot: Snapshot) -> tuple[PartitionId, ...]:
    """Partitions without a leader, all of whose replicas are on dead brokers or failed disks."""
    dead = snapshot.in_state({BrokerState.DEAD})[snapshot.replica_position]
    dead |= snapshot.in_failed_dir
    lost = np.bincount(snapshot.replica_row[dead], minlength=len(snapshot))
    gone = (lost == snapshot.replica_counts) & (snapshot.partitions.leader == NO_BROKER)
    return tuple(snapshot.id(int(at)) for at in np.flatnonzero(gone))


def outage_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """Sentences on dead brokers and failed directories, and on unavailable partitions.

    At most `MOST_NAMED` partitions are named; empty where nothing is dead.
    """
    broken = [b.words() for b in dead_brokers(snapshot)]
    broken += [entry.words() for entry in failed_dirs(snapshot)]
    notes = [f"{clause[0].upper()}{clause[1:]}." for clause in broken]
    words = unavailable_text(snapshot)
    return (*notes, f"{words}.") if words else tuple(notes)


def unavailable_text(snapshot: Snapshot) -> str:
    """Clause on unavailable partitions, the first `MOST_NAMED` by name; empty without any."""
    lost = unavailable(snapshot)
    if not lost:
        return ""
    rows = [row for row in map(snapshot.find, lost) if row is not None]
    holders = {b for row in rows for b in snapshot.replicas(row)}
    dead = any(snapshot.broker[b].state is BrokerState.DEAD for b in holders)
    until = "a dead broker returns" if dead else "a failed disk is repaired"
    return (
        f"{count_text(len(lost), 'partition')} unavailable until {until}, "
        f"which no plan can move: {listed(lost, MOST_NAMED)}"
    )
