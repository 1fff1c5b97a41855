"""Clusters with more brokers, topics and partitions than fit a screen."""

import functools
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from control.loop.view import LoopView
from model.ids import BrokerId, TopicName
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    Partitions,
    Resource,
    Snapshot,
    SnapshotHeader,
    Topic,
)
from tests.support.tui.loop_views import AT_MS, CLUSTER_ID, judged, solving


@functools.cache
def crowd(brokers: int, topics: int, partitions: int, load: float = 1e4) -> Snapshot:
    """Partitions of one replica each, evenly over topics with names of 249 letters.

    load: mean of each partition, in bytes per second.
    """
    rng = np.random.default_rng(7)
    topic = np.sort(np.arange(partitions) % topics)
    number = np.arange(partitions) - np.searchsorted(topic, topic)
    homes = rng.integers(0, brokers, partitions)
    loads = rng.exponential(load, (partitions, 2))
    header = SnapshotHeader(
        cluster_id=CLUSTER_ID,
        taken_at_ms=AT_MS,
        brokers=tuple(Broker(id=BrokerId(i), rack=f"rack-{i % 3}") for i in range(brokers)),
        topics=tuple(_topic(i) for i in range(topics)),
        resources=(Resource.NET_IN, Resource.NET_OUT),
    )
    return Snapshot(
        header,
        Partitions(
            topic=topic,
            partition=number,
            replica_start=np.arange(partitions + 1),
            replica_broker=homes,
            leader=homes,
            loads=loads,
            measured=np.ones_like(loads, np.bool_),
            size_bytes=np.full(partitions, 10**6),
            local_bytes=np.full(partitions, 10**6),
        ),
    )


def _topic(number: int) -> Topic:
    name = f"topic-{number:06d}-".ljust(249, "x")
    return Topic(name=TopicName(name), topic_id=f"id-{number}")


def crowded(brokers: int, topics: int, partitions: int, load: float = 1e4) -> LoopView:
    """The loop over such a cluster."""
    snapshot = crowd(brokers, topics, partitions, load)
    return replace(
        solving(), brokers=snapshot.header.brokers, snapshot=snapshot, evaluation=judged(snapshot)
    )


def with_states(states: Mapping[int, BrokerState], view: LoopView) -> LoopView:
    """A view with these states of brokers, by id."""
    assert view.snapshot is not None
    brokers = tuple(
        b.model_copy(update={"state": states.get(b.id, b.state)})
        for b in view.snapshot.header.brokers
    )
    header_ = view.snapshot.header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header_, view.snapshot.partitions)
    return replace(view, brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot))
