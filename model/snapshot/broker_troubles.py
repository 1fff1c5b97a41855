"""What is wrong with brokers: they are dead, have a failed disk, or are slow."""

from enum import StrEnum
from typing import Final

from model.snapshot.snapshot import Broker, BrokerState


class Trouble(StrEnum):
    """What is wrong with a broker, the worst first."""

    DEAD = "DEAD"
    """Not registered, or fenced."""
    FAILED_DISK = "DISK FAILED"
    """At least one of its log directories has failed."""
    SLOW = "SLOW"


ORDER: Final = tuple(Trouble)


def trouble_of(broker: Broker) -> Trouble | None:
    """What is wrong with a broker, if anything; being cordoned or demoted is intended."""
    if broker.state is BrokerState.DEAD:
        return Trouble.DEAD
    if broker.disk_failed:
        return Trouble.FAILED_DISK
    return Trouble.SLOW if broker.state is BrokerState.SLOW else None


def rank_of(broker: Broker) -> int:
    """For sorting: 0 for a dead broker, the most for one with nothing wrong."""
    trouble = trouble_of(broker)
    return len(ORDER) if trouble is None else ORDER.index(trouble)
