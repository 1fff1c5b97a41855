"""Skew of all topics in columns, against that of one topic at a time."""

import numpy as np
import pytest
from hypothesis import given, settings

from model.snapshot.snapshot import LEAVING, Snapshot
from model.snapshot.topic_skew import topic_skew
from model.snapshot.topic_skews import topic_skews
from tests.support.solver.random_problems import clusters


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
