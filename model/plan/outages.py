"""Dead brokers that still have replicas assigned, and unavailable partitions."""

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


def unavailable(snapshot: Snapshot) -> tuple[PartitionId, ...]:
    """Partitions without a leader, all of whose replicas are on dead brokers."""
    dead = snapshot.in_state({BrokerState.DEAD})[snapshot.replica_position]
    lost = np.bincount(snapshot.replica_row[dead], minlength=len(snapshot))
    gone = (lost == snapshot.replica_counts) & (snapshot.partitions.leader == NO_BROKER)
    return tuple(snapshot.id(int(at)) for at in np.flatnonzero(gone))


def outage_notes(snapshot: Snapshot) -> tuple[str, ...]:
    """Sentences on dead brokers that hold replicas and on unavailable partitions.

    At most `MOST_NAMED` partitions are named; empty where nothing is dead.
    """
    notes = [f"{b.words().capitalize()}." for b in dead_brokers(snapshot)]
    lost = unavailable(snapshot)
    if lost:
        notes.append(
            f"{count_text(len(lost), 'partition')} unavailable until a dead broker "
            f"returns, which no plan can move: {listed(lost, MOST_NAMED)}."
        )
    return tuple(notes)
