"""How topics are spread over the brokers, in the figures of Kafka Manager (CMAK).

`topic_skew` is for one topic, `topic_skews` for all of them as columns. Definitions follow CMAK's
class `TopicIdentity`: a broker is skewed when it holds more replicas of the topic than the average
over the brokers that hold any, rounded up.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from model.errors import ConfigError
from model.ids import BrokerId, TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import LEAVING, BrokerState, Floats, Ints, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSkew:
    """The replicas and leaders of one topic on one broker."""

    id: BrokerId
    replicas: int
    leaders: int
    skewed: bool
    """More replicas than the average over the brokers that hold any, rounded up."""
    leader_skewed: bool
    """The same of leaders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSkew:
    """A topic's spread; shares are of 1."""

    topic: TopicName
    partitions: int
    brokers: tuple[BrokerSkew, ...]
    """By id; all that may keep load, and others that hold a replica."""
    brokers_skewed: float
    """Share of skewed brokers among those that hold the topic."""
    leaders_skewed: float
    """Share of leader-skewed brokers among those that hold the topic."""
    spread: float
    """Share of the brokers that are not dead which hold the topic."""
    preferred_leaders: float
    """Share of the partitions that their preferred leader leads."""
    optimum: tuple[int, int]
    """Least and most replicas per broker where they are as even as can be: the replicas over the
    brokers that may keep load (the optimal number of partitions, ONOP), rounded down and up."""
    leader_optimum: tuple[int, int]
    """The same of leaders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placement:
    """Where one topic lies."""

    first: Ints
    """(partitions,) broker id of the preferred leader."""
    leader: Ints
    """(partitions,) broker id, -1 for none."""
    replica: Ints
    """(replicas,) broker ids."""


def topic_skew(snapshot: Snapshot, topic: TopicName, moves: Iterable[Move] = ()) -> TopicSkew:
    """Compute the skew of a topic after some moves, or as it stands.

    Raises ConfigError for a topic that the snapshot does not have.
    """
    states = {b.id: b.state for b in snapshot.header.brokers}
    keeping = [b for b, state in states.items() if state not in LEAVING]
    live = sum(state is not BrokerState.DEAD for state in states.values())
    placed = _placement(snapshot, topic, moves)
    n, replicas = len(placed.leader), len(placed.replica)
    holding = len(np.unique(placed.replica))
    brokers = tuple(
        broker
        for broker in _brokers(snapshot, placed, -(-replicas // holding), -(-n // holding))
        if broker.id in keeping or broker.replicas
    )
    return TopicSkew(
        topic=topic,
        partitions=n,
        brokers=brokers,
        brokers_skewed=sum(b.skewed for b in brokers) / holding,
        leaders_skewed=sum(b.leader_skewed for b in brokers) / holding,
        spread=holding / live if live else 0.0,
        preferred_leaders=float(np.mean(placed.leader == placed.first)),
        optimum=_even(replicas, len(keeping)),
        leader_optimum=_even(n, len(keeping)),
    )


def _placement(snapshot: Snapshot, topic: TopicName, moves: Iterable[Move]) -> _Placement:
    columns = snapshot.partitions
    names = [t.name for t in snapshot.header.topics]
    position = names.index(topic) if topic in names else -1
    rows = np.flatnonzero(columns.topic == position)
    if not len(rows):
        raise ConfigError(f"the cluster has no topic {topic!r}; name one that it has")
    moved = {m.partition: m for m in moves if m.topic == topic}
    number = columns.partition[rows]
    kept = rows[~np.isin(number, list(moved))]
    # A topic's rows stand together, so their replicas do.
    start, end = columns.replica_start[rows[0]], columns.replica_start[rows[-1] + 1]
    row = np.repeat(rows, snapshot.replica_counts[rows])
    stay = columns.replica_broker[start:end][np.isin(row, kept)]
    new = [b for m in moved.values() for b in m.replicas_after]
    return _Placement(
        first=_joined(
            columns.replica_broker[columns.replica_start[kept]],
            [m.replicas_after[0] for m in moved.values()],
        ),
        leader=_joined(columns.leader[kept], [m.leader_after for m in moved.values()]),
        replica=_joined(stay, new),
    )


def _joined(column: Ints, values: list[BrokerId]) -> Ints:
    return np.concatenate([column, np.array(values, np.int64)])


def _brokers(
    snapshot: Snapshot, placed: _Placement, most: int, most_led: int
) -> Iterable[BrokerSkew]:
    """Every broker, skewed above `most` replicas and above `most_led` leaders."""
    for broker in snapshot.header.brokers:
        replicas = int((placed.replica == broker.id).sum())
        leaders = int((placed.leader == broker.id).sum())
        yield BrokerSkew(
            id=broker.id,
            replicas=replicas,
            leaders=leaders,
            skewed=replicas > most,
            leader_skewed=leaders > most_led,
        )


def _even(count: int, brokers: int) -> tuple[int, int]:
    """A count over so many brokers, rounded down and up; the whole over none."""
    brokers = max(1, brokers)
    return count // brokers, -(-count // brokers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicSkews:
    """One row per topic, (topics,) each, in the header's order; shares are of 1.

    As in `TopicSkew`. All are 0 for a topic without partitions.
    """

    partitions: Ints
    replicas: Ints
    brokers: Ints
    """Brokers that hold any replica."""
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
    """Compute the skew of every topic as it stands, without moves."""
    columns, n_topics = snapshot.partitions, len(snapshot.header.topics)
    replicas_of = columns.topic[snapshot.replica_row]
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
        brokers=holding,
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
