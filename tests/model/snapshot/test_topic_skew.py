"""A topic's spread over the brokers, in Kafka Manager's figures."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError
from model.ids import TopicName
from model.snapshot.snapshot import LEAVING, BrokerState, Snapshot
from model.snapshot.topic_skew import TopicSkew, topic_skew, topic_skews
from tests.support.model.clusters import TOPIC, brokers, move, snapshot
from tests.support.solver.random_problems import clusters

UNEVEN = snapshot(
    brokers(4), [(1, 2), (1, 2), (1, 2), (2, 1), (2, 3), (1, 3)], leaders=[1, 1, 1, 2, 2, 3]
)


def counts(skew: TopicSkew) -> list[tuple[int, int]]:
    return [(b.replicas, b.leaders) for b in skew.brokers]


def test_replicas_and_leaders_are_counted_per_broker() -> None:
    """Also on a broker that has none yet."""
    assert counts(topic_skew(UNEVEN, TOPIC)) == [(5, 3), (5, 2), (2, 1), (0, 0)]


def test_a_broker_above_the_average_of_the_topics_brokers_is_skewed() -> None:
    """12 replicas and 6 leaders over the 3 brokers that hold any: 4 and 2 each."""
    result = topic_skew(UNEVEN, TOPIC)
    assert [b.skewed for b in result.brokers] == [True, True, False, False]
    assert [b.leader_skewed for b in result.brokers] == [True, False, False, False]
    assert result.brokers_skewed == pytest.approx(2 / 3)
    assert result.leaders_skewed == pytest.approx(1 / 3)


def test_spread_is_the_share_of_brokers_that_hold_the_topic() -> None:
    assert topic_skew(UNEVEN, TOPIC).spread == pytest.approx(3 / 4)


def test_the_preferred_leader_is_the_first_replica() -> None:
    assert topic_skew(UNEVEN, TOPIC).preferred_leaders == pytest.approx(5 / 6)


def test_the_optimum_is_over_all_brokers_that_may_keep_load() -> None:
    """12 replicas and 6 leaders over 4 brokers."""
    result = topic_skew(UNEVEN, TOPIC)
    assert (result.optimum, result.leader_optimum) == ((3, 3), (1, 2))


def test_the_optimum_ignores_dead_and_draining_brokers() -> None:
    states = {3: BrokerState.DEAD, 4: BrokerState.DRAINING}
    result = topic_skew(snapshot(brokers(4, states=states), [(1, 3)]), TOPIC)
    assert [b.id for b in result.brokers] == [1, 2, 3]
    assert result.optimum == (1, 1)
    assert result.spread == pytest.approx(2 / 3)


def test_moves_count_as_executed() -> None:
    """A move of another topic does not count."""
    moves = [
        move(0, (1, 2), (4, 2)),
        move(5, (1, 3), (4, 3), leader_before=3, leader_after=4),
        move(1, (1, 2), (4, 2), topic=TopicName("other")),
    ]
    result = topic_skew(UNEVEN, TOPIC, moves)
    assert counts(result) == [(3, 2), (5, 2), (2, 0), (2, 2)]
    assert result.spread == 1.0
    assert result.preferred_leaders == 1.0


def test_a_missing_topic_is_named() -> None:
    with pytest.raises(ConfigError, match="the cluster has no topic 'order'"):
        topic_skew(UNEVEN, TopicName("order"))


@st.composite
def placements(draw: st.DrawFn) -> Snapshot:
    count = draw(st.integers(1, 6))
    rf = draw(st.integers(1, count))
    place = st.permutations(range(1, count + 1)).map(lambda p: tuple(p[:rf]))
    return snapshot(brokers(count), draw(st.lists(place, min_size=1, max_size=20)))


@settings(deadline=None)
@given(state=placements())
def test_figures_agree_with_kafka_managers_formulas(state: Snapshot) -> None:
    result = topic_skew(state, TOPIC)
    rows = [state.replicas(i) for i in range(len(state))]
    replicas = sorted({b for r in rows for b in r})
    average = math.ceil(Fraction(len(rows) * len(rows[0]), len(replicas)))
    led = math.ceil(Fraction(len(rows), len(replicas)))
    skewed = [b for b in replicas if sum(b in r for r in rows) > average]
    leading = [b for b in replicas if sum(r[0] == b for r in rows) > led]
    assert [b.id for b in result.brokers if b.skewed] == skewed
    assert [b.id for b in result.brokers if b.leader_skewed] == leading
    low, high = result.optimum
    per_broker = np.array([b.replicas for b in result.brokers])
    assert low * len(per_broker) <= per_broker.sum() <= high * len(per_broker)


@settings(deadline=None)
@given(state=clusters(most_rows=8))
def test_columns_agree_with_one_topic_at_a_time(state: Snapshot) -> None:
    result = topic_skews(state)
    keeping = [b.id for b in state.header.brokers if b.state not in LEAVING]
    for at, topic in enumerate(state.header.topics):
        if not result.partitions[at]:
            continue
        one = topic_skew(state, topic.name)
        assert result.partitions[at] == one.partitions
        assert result.brokers_skewed[at] == pytest.approx(one.brokers_skewed)
        assert result.leaders_skewed[at] == pytest.approx(one.leaders_skewed)
        assert result.preferred_leaders[at] == pytest.approx(one.preferred_leaders)
        assert (result.optimum_least[at], result.optimum_most[at]) == one.optimum
        counts = {b.id: b.replicas for b in one.brokers}
        assert result.most[at] == max(counts.values())
        if keeping:
            assert result.least[at] == min(counts[b] for b in keeping)
        if any(b.state.value != "dead" for b in state.header.brokers):
            assert result.spread[at] == pytest.approx(one.spread)


@settings(deadline=None)
@given(state=clusters(most_rows=2))
def test_a_topic_without_partitions_has_no_skew(state: Snapshot) -> None:
    result = topic_skews(state)
    empty = result.partitions == 0
    for column in (result.brokers_skewed, result.spread, result.most, result.replicas):
        assert not np.any(column[empty])
