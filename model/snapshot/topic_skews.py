"""How all topics are spread over the brokers, in columns; one topic: `topic_skew`."""

from dataclasses import dataclass

import numpy as np

from model.snapshot.snapshot import (
    LEAVING,
    BrokerState,
    Floats,
    Ints,
    Snapshot,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicSkews:
    """One row per topic, (topics,) each, in the header's order; shares are of 1.

    What each column means is told at `topic_skew.TopicSkew`, whose definitions are
    those of CMAK's class `TopicIdentity`. All are 0 for a topic without partitions.
    """

    partitions: Ints
    replicas: Ints
    brokers_skewed: Floats
    leaders_skewed: Floats
    spread: Floats
    preferred_leaders: Floats
    least: Ints
    """Fewest replicas on a broker that may keep load."""
    most: Ints
    """Most replicas on any broker."""
    optimum_least: Ints
    optimum_most: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What each broker has of each topic that it has anything of, sorted by topic."""

    topic: Ints
    broker: Ints
    """Broker ids."""
    count: Ints


def topic_skews(snapshot: Snapshot) -> TopicSkews:
    """The spread of every topic as it stands."""
    columns, n_topics = snapshot.partitions, len(snapshot.header.topics)
    row = np.repeat(np.arange(len(snapshot)), np.diff(columns.replica_start))
    replicas_of = columns.topic[row]
    led = columns.leader >= 0
    held = _held(replicas_of, columns.replica_broker)
    leads = _held(columns.topic[led], columns.leader[led])

    def per_topic(topics: Ints) -> Ints:
        return np.bincount(topics, minlength=n_topics)

    partitions, replicas = per_topic(columns.topic), per_topic(replicas_of)
    holding = per_topic(held.topic)
    some = np.maximum(1, holding)
    first = columns.replica_broker[columns.replica_start[:-1]]
    states = [b.state for b in snapshot.header.brokers]
    live = sum(state is not BrokerState.DEAD for state in states)
    keeping = max(1, sum(state not in LEAVING for state in states))
    least, most = _extremes(snapshot, held, n_topics)
    return TopicSkews(
        partitions=partitions,
        replicas=replicas,
        brokers_skewed=per_topic(_above(held, -(-replicas // some))) / some,
        leaders_skewed=per_topic(_above(leads, -(-partitions // some))) / some,
        spread=holding / max(1, live),
        preferred_leaders=per_topic(columns.topic[columns.leader == first])
        / np.maximum(1, partitions),
        least=least,
        most=most,
        optimum_least=replicas // keeping,
        optimum_most=-(-replicas // keeping),
    )


def _held(topic: Ints, broker: Ints) -> _Held:
    width = int(broker.max(initial=0)) + 1
    pairs, count = np.unique(topic * width + broker, return_counts=True)
    return _Held(topic=pairs // width, broker=pairs % width, count=count)


def _above(held: _Held, most: Ints) -> Ints:
    """The topic of each broker that has more of it than `most` says."""
    above: Ints = held.topic[held.count > most[held.topic]]
    return above


def _extremes(snapshot: Snapshot, held: _Held, n_topics: int) -> tuple[Ints, Ints]:
    """(topics,) fewest and most replicas on a broker."""
    keeping = [b.id for b in snapshot.header.brokers if b.state not in LEAVING]
    most = np.zeros(n_topics, np.int64)
    np.maximum.at(most, held.topic, held.count)
    least = most.copy()
    keeps = np.isin(held.broker, keeping)
    np.minimum.at(least, held.topic[keeps], held.count[keeps])
    # A broker that has nothing of a topic is in no pair.
    least[np.bincount(held.topic[keeps], minlength=n_topics) < len(keeping)] = 0
    return least, most
