"""Slow brokers in the snapshot and in the goals of a plan."""

from collections.abc import Collection
from dataclasses import replace

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Snapshot


def with_slow(snapshot: Snapshot, slow: Collection[BrokerId]) -> Snapshot:
    """The snapshot in which these brokers are slow, unless they are in another state already."""
    brokers = tuple(
        broker.model_copy(update={"state": BrokerState.SLOW})
        if broker.id in slow and broker.state is BrokerState.ALIVE
        else broker
        for broker in snapshot.header.brokers
    )
    if brokers == snapshot.header.brokers:
        return snapshot
    return replace(snapshot, header=snapshot.header.model_copy(update={"brokers": brokers}))


def relieving(snapshot: Snapshot, goals: Goals) -> Goals:
    """The goals of a plan after which slow brokers lead nothing; unchanged where none is slow."""
    if all(broker.state is not BrokerState.SLOW for broker in snapshot.header.brokers):
        return goals
    return goals.model_copy(update={"relieve_slow": True})
