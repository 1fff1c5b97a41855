"""The probe against brokers of chosen versions and states."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from kafka.protocol.admin import DescribeClusterRequest, DescribeLogDirsRequest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest

from clients.connection import Connection
from collector.brokers.fetch import GROUPS_AGE_S
from collector.metadata import CONFIG_AGE_S, ClusterReader, ClusterState
from collector.probe import Probe
from model.snapshot.snapshot import StorageKind
from tests.support.collector.fake_brokers import Brokers

PLACES = {("orders", 0): 1, ("orders", 1): 2, ("orders", 2): 3, ("a.b_c", 0): 1}
LATEST = {place: 100 + 7 * broker for place, broker in PLACES.items()}
FIRST = ("orders", 0)
OLD = {
    ListOffsetsRequest: 7,
    OffsetFetchRequest: 5,
    DescribeLogDirsRequest: 1,
    MetadataRequest: 9,
    DescribeClusterRequest: -1,
}
"""Kafka 2.7."""


def brokers(**other: Any) -> Brokers:
    return Brokers(
        leaders=dict(PLACES),
        offsets={-1: dict(LATEST), -2: dict.fromkeys(PLACES, 10), -4: dict.fromkeys(PLACES, 20)},
        sizes=dict.fromkeys(PLACES, 7000),
        groups={1: {"g": {FIRST: 90}}, 3: {"h": {FIRST: 80}, "idle": {}}},
        **other,
    )


class Watch:
    """A reader and a probe with a clock set by the test."""

    def __init__(self, cluster: Brokers, timeout_s: float) -> None:
        connection = Connection(cluster.bootstrap, timeout_s)
        self.now_s = 1000.0
        self.reader = ClusterReader(connection, lambda: self.now_s)
        self.probe = Probe(connection, lambda: self.now_s)

    def sample(self, state: ClusterState | None = None) -> pa.Table:
        return self.probe.sample(self.reader.read() if state is None else state)


@contextmanager
def watching(cluster: Brokers, timeout_s: float = 10.0) -> Iterator[Watch]:
    with cluster.running():
        watch = Watch(cluster, timeout_s)
        with watch.reader, watch.probe:
            yield watch


def row(result: pa.Table, topic: str, partition: int) -> dict[str, Any]:
    (one,) = [r for r in result.to_pylist() if (r["topic"], r["partition"]) == (topic, partition)]
    return dict(one)


def test_samples_of_several_brokers_are_merged() -> None:
    with watching(brokers()) as watch:
        result = watch.sample()
    assert result.num_rows == len(PLACES)
    assert row(result, "orders", 0) == {
        "topic": "orders",
        "partition": 0,
        "time_ms": 1_000_000,
        "broker": 1,
        "flags": 0,
        "groups": 2,
        "latest": 107,
        "earliest_local": 20,
        "earliest": 20,
        "local_bytes": 7000,
        "total_bytes": 7000,
        "group_offsets": 170,
    }
    assert row(result, "orders", 2)["latest"] == 121
    assert row(result, "a.b_c", 0)["groups"] == 0


def test_old_brokers_give_the_same_sample_except_for_fields_they_lack() -> None:
    with watching(brokers()) as watch:
        new = watch.sample().to_pylist()
    with watching(brokers(newest=OLD)) as watch:
        old = watch.sample().to_pylist()
    assert old == [{**r, "earliest_local": 10, "earliest": 10} for r in new]


def test_later_samples_have_current_figures() -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        watch.sample()
        cluster.offsets[-1][FIRST] = 5000
        cluster.sizes[FIRST] = 9
        result = row(watch.sample(), *FIRST)
    assert (result["latest"], result["local_bytes"]) == (5000, 9)


def test_a_topic_deleted_during_a_sample_is_omitted() -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        state = watch.reader.read()
        for number in range(3):
            del cluster.leaders["orders", number]
        result = watch.sample(state)
    assert result["topic"].to_pylist() == ["a.b_c"]
    assert watch.probe.silent == ()


def test_a_leader_that_moved_is_queried_in_the_next_sample() -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        watch.sample()
        cluster.leaders[FIRST] = 3
        assert row(watch.sample(), *FIRST)["broker"] == 3


def test_a_broker_that_hangs_is_named_until_it_answers() -> None:
    cluster = brokers()
    with watching(cluster, timeout_s=6.0) as watch:
        state = watch.reader.read()
        watch.sample(state)
        cluster.hangs.add(2)
        result = watch.sample(state)
        assert sorted(set(result["broker"].to_pylist())) == [1, 3]
        (silence,) = watch.probe.silent
        assert (silence.broker, silence.since_ms) == (2, 1_000_000)
        cluster.hangs.clear()
        while watch.probe.silent:
            result = watch.sample(state)
    assert sorted(set(result["broker"].to_pylist())) == [1, 2, 3]


def test_commits_behind_a_silent_coordinator_are_absent_and_not_zero() -> None:
    cluster = brokers()
    with watching(cluster, timeout_s=6.0) as watch:
        watch.sample()
        cluster.hangs.add(3)
        result = watch.sample(watch.reader.read())
    assert set(result["groups"].to_pylist()) == {-1}


def test_a_silent_broker_that_coordinates_no_group_leaves_the_commits_known() -> None:
    cluster = brokers()
    with watching(cluster, timeout_s=6.0) as watch:
        watch.sample()
        cluster.hangs.add(2)
        result = watch.sample(watch.reader.read())
    assert row(result, *FIRST)["groups"] == 2


def test_a_group_is_followed_to_another_coordinator() -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        watch.sample()
        cluster.groups = {2: {"g": {FIRST: 95}}, 3: cluster.groups[3]}
        assert row(watch.sample(), *FIRST)["groups"] == -1
        watch.now_s += GROUPS_AGE_S
        result = row(watch.sample(), *FIRST)
    assert (result["groups"], result["group_offsets"]) == (2, 175)


def test_metadata_continue_despite_a_hanging_broker() -> None:
    cluster = brokers()
    with watching(cluster, timeout_s=6.0) as watch:
        before = watch.reader.read()
        for broker in (1, 2, 3):
            cluster.hangs = {broker}
            after = watch.reader.read()
            assert replace(after, taken_at_ms=0) == replace(before, taken_at_ms=0)


def test_a_placement_does_not_depend_on_the_order_in_an_answer() -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        states = [watch.reader.read()]
        for broker in (1, 2):
            cluster.hangs = {broker}
            states.append(watch.reader.read())
    queried = {broker for broker, name in cluster.asked if name == "MetadataRequest"}
    assert len(queried) > 1
    assert all(state.leader is states[0].leader for state in states)


@pytest.mark.parametrize("change", ["made", "gone"])
def test_a_created_or_deleted_topic_is_seen_in_the_next_poll(change: str) -> None:
    cluster = brokers()
    with watching(cluster) as watch:
        watch.reader.read()
        if change == "made":
            cluster.leaders["added", 0] = 1
        else:
            del cluster.leaders["a.b_c", 0]
        result = [str(t.name) for t in watch.reader.read().topics]
    expected = ["a.b_c", "added", "orders"] if change == "made" else ["orders"]
    assert result == expected


def test_a_hanging_server_does_not_block_other_servers() -> None:
    cluster = brokers()
    with watching(cluster, timeout_s=6.0) as watch:
        cluster.hangs.add(1)
        assert len(watch.reader.read()) == len(PLACES)


@pytest.mark.parametrize("newest", [{}, OLD], ids=["new", "old"])
def test_one_answer_has_two_configs_of_each_topic(newest: dict[type, int]) -> None:
    value = '{"version":1,"replicas":[{"count":1,"constraints":{"rack":"a"}}]}'
    configs = {
        "orders": {"confluent.placement.constraints": value, "retention.ms": "1"},
        "a.b_c": {"remote.storage.enable": "true"},
    }
    cluster = brokers(newest=newest, configs=configs)
    with watching(cluster) as watch:
        state = watch.reader.read()
        cluster.configs["orders"] = {}
        watch.now_s += 2 * CONFIG_AGE_S
        later = watch.reader.read()
    result = {str(t.name): (t.storage, t.placement) for t in state.topics}
    assert result["orders"] == (StorageKind.REPLICATED, value)
    assert result["a.b_c"] == (StorageKind.TIERED, "")
    assert not any(t.placement for t in later.topics)
    asked = [name for _, name in cluster.asked if name == "DescribeConfigsRequest"]
    assert len(asked) == 3  # the broker's own, and the topics' twice
