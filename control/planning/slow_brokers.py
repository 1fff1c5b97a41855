"""Slow brokers in the snapshot and in the goals of a plan."""

from collections.abc import Collection
from dataclasses import replace

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState, Snapshot


def slow_among(brokers: tuple[Broker, ...], slow: Collection[BrokerId]) -> tuple[Broker, ...]:
    """The brokers with these slow, unless they are in another state; the same where none is."""
    found = tuple(
        broker.model_copy(update={"state": BrokerState.SLOW})
        if broker.id in slow and broker.state is BrokerState.ALIVE
        else broker
        for broker in brokers
    )
    return brokers if found == brokers else found


def with_slow(snapshot: Snapshot, slow: Collection[BrokerId]) -> Snapshot:
    """The snapshot in which these brokers are slow, unless they are in another state already."""
    brokers = slow_among(snapshot.header.brokers, slow)
    if brokers is snapshot.header.brokers:
        return snapshot
    return replace(snapshot, header=snapshot.header.model_copy(update={"brokers": brokers}))


def relieving(snapshot: Snapshot, goals: Goals) -> Goals:
    """The goals of a plan after which slow brokers lead nothing; unchanged where none is slow."""
    if all(broker.state is not BrokerState.SLOW for broker in snapshot.header.brokers):
        return goals
    return goals.model_copy(update={"relieve_slow": True})
