"""How a topic is spread over the brokers, in the figures of Kafka Manager (CMAK).

Definitions follow CMAK's class `TopicIdentity`: a broker is skewed when it holds more
replicas of the topic than the average over the brokers that hold any, rounded up.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from model.errors import ConfigError
from model.ids import BrokerId, TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import LEAVING, BrokerState, Ints, Snapshot


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
    row = np.repeat(rows, np.diff(columns.replica_start)[rows])
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
