"""The skew of all topics as columns; `model.snapshot.topic_skew` is for one topic."""

from dataclasses import dataclass

import numpy as np

from model.snapshot.snapshot import LEAVING, BrokerState, Floats, Ints, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicSkews:
    """One row per topic, (topics,) each, in the header's order; shares are of 1.

    The columns are defined in `model.snapshot.topic_skew.TopicSkew`, as in CMAK's class
    `TopicIdentity`. All are 0 for a topic without partitions.
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
class _Holdings:
    """What each broker has of each topic that it has anything of, sorted by topic."""

    topic: Ints
    broker: Ints
    """Broker ids."""
    count: Ints


def topic_skews(snapshot: Snapshot) -> TopicSkews:
    """Compute the skew of every topic as it stands, without moves.

    Definitions as in CMAK's class `TopicIdentity`.
    """
    columns, n_topics = snapshot.partitions, len(snapshot.header.topics)
    row = np.repeat(np.arange(len(snapshot)), np.diff(columns.replica_start))
    replicas_of = columns.topic[row]
    led = columns.leader >= 0
    holdings = _holdings(replicas_of, columns.replica_broker)
    leads = _holdings(columns.topic[led], columns.leader[led])

    def per_topic(topics: Ints) -> Ints:
        return np.bincount(topics, minlength=n_topics)

    partitions, replicas = per_topic(columns.topic), per_topic(replicas_of)
    holding = per_topic(holdings.topic)
    some = np.maximum(1, holding)
    first = columns.replica_broker[columns.replica_start[:-1]]
    states = [b.state for b in snapshot.header.brokers]
    live = sum(state is not BrokerState.DEAD for state in states)
    keeping = max(1, sum(state not in LEAVING for state in states))
    least, most = _extremes(snapshot, holdings, n_topics)
    return TopicSkews(
        partitions=partitions,
        replicas=replicas,
        brokers_skewed=per_topic(_above(holdings, -(-replicas // some))) / some,
        leaders_skewed=per_topic(_above(leads, -(-partitions // some))) / some,
        spread=holding / max(1, live),
        preferred_leaders=per_topic(columns.topic[columns.leader == first])
        / np.maximum(1, partitions),
        least=least,
        most=most,
        optimum_least=replicas // keeping,
        optimum_most=-(-replicas // keeping),
    )


def _holdings(topic: Ints, broker: Ints) -> _Holdings:
    width = int(broker.max(initial=0)) + 1
    pairs, count = np.unique(topic * width + broker, return_counts=True)
    return _Holdings(topic=pairs // width, broker=pairs % width, count=count)


def _above(holdings: _Holdings, most: Ints) -> Ints:
    """The topic of each broker that has more of it than `most` says."""
    above: Ints = holdings.topic[holdings.count > most[holdings.topic]]
    return above


def _extremes(snapshot: Snapshot, holdings: _Holdings, n_topics: int) -> tuple[Ints, Ints]:
    """(topics,) fewest and most replicas on a broker."""
    keeping = [b.id for b in snapshot.header.brokers if b.state not in LEAVING]
    most = np.zeros(n_topics, np.int64)
    np.maximum.at(most, holdings.topic, holdings.count)
    least = most.copy()
    keeps = np.isin(holdings.broker, keeping)
    np.minimum.at(least, holdings.topic[keeps], holdings.count[keeps])
    # A broker that has nothing of a topic is in no pair.
    least[np.bincount(holdings.topic[keeps], minlength=n_topics) < len(keeping)] = 0
    return least, most
