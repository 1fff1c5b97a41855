from dataclasses import replace

import numpy as np

from collector.metadata import build_state
from model.ids import PartitionId, TopicName
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState, StorageKind
from tests.support.collector.sample_rows import cluster, topic


def test_partitions_are_sorted_by_topic_and_number() -> None:
    described = topic("b", [[1], [2], [3]])
    described["partitions"].reverse()
    state = cluster(described, topic("a", [[2, 1]]))
    assert [t.name for t in state.topics] == ["a", "b"]
    assert state.topic.tolist() == [0, 1, 1, 1]
    assert state.partition.tolist() == [0, 0, 1, 2]
    assert state.replica_start.tolist() == [0, 2, 3, 4, 5]
    assert state.replica_broker.tolist() == [2, 1, 1, 2, 3]
    assert state.leader.tolist() == [2, 1, 2, 3]


def test_missing_or_fenced_brokers_are_dead() -> None:
    described = {
        "cluster_id": "c1",
        "brokers": [
            {"broker_id": 1, "rack": "a", "is_fenced": False},
            {"broker_id": 2, "rack": None, "is_fenced": True},
        ],
    }
    state = build_state(
        described,
        [topic("a", [[1, 7]])],
        {"a": StorageKind.TIERED},
        [("a", 0)],
        placements={},
        adding={},
        taken_at_ms=5,
    )
    alive, dead = BrokerState.ALIVE, BrokerState.DEAD
    assert [(b.id, b.state) for b in state.brokers] == [(1, alive), (2, dead), (7, dead)]
    assert state.moving.tolist() == [True]
    assert state.topics[0].storage is StorageKind.TIERED


def test_topics_with_two_underscores_are_internal() -> None:
    state = cluster(topic("__plimsoll_samples", [[1]]), topic("_users", [[1], [2]]))
    assert state.internal.tolist() == [True, False, False]


def test_an_empty_cluster_gives_a_state() -> None:
    state = cluster()
    assert len(state) == 0
    assert len(state.brokers) == 3
    assert state.replica_start.dtype == np.int64
    assert state.replica_start.tolist() == [0]


def test_the_right_to_describe_is_read_from_the_answer() -> None:
    assert cluster(authorized_operations=["DESCRIBE"]).may_describe
    assert not cluster(authorized_operations=["ALTER"]).may_describe
    assert cluster().may_describe


def test_under_replicated_and_offline_partitions_are_counted_separately() -> None:
    orders = topic(
        "orders",
        [[1, 2, 3], [1, 2, 3], [1, 2, 3], [1]],
        leaders=[1, 1, -1, -1],
        in_sync=[[1, 2, 3], [1], [2], [1]],
    )
    behind, *offline = (PartitionId(TopicName("orders"), number) for number in (1, 2, 3))
    assert cluster(orders).replication == Replication(
        under_replicated=1,
        offline=2,
        behind_ids=(behind,),
        offline_ids=tuple(offline),
        # One that was led by its only replica is not behind, as in CMAK.
        behind_of=((TopicName("orders"), 2),),
    )


def test_partitions_below_min_isr_are_counted_while_they_have_a_leader() -> None:
    """A topic that asks for more replicas in sync than it has is not below for that."""
    orders = topic(
        "orders", [[1, 2, 3], [1, 2, 3], [1, 2, 3]], leaders=[1, 1, -1], in_sync=[[1, 2], [1], [2]]
    )
    single = topic("single", [[1]])
    state = replace(cluster(orders, single), min_isr={"orders": 2, "single": 2})
    found = state.replication
    assert found.below_min_isr == 1
    assert found.below_ids == (PartitionId(TopicName("orders"), 1),)
    assert cluster(orders, single).replication.below_min_isr == 0


def test_replicas_that_a_move_adds_need_not_be_in_sync() -> None:
    moved = topic("a", [[1, 2, 3, 4], [1, 2, 3, 4]], in_sync=[[1, 2], [1]])
    adding = {("a", 0): 2, ("a", 1): 2}
    assert cluster(moved, adding=adding).replication.under_replicated == 1


def test_partitions_that_are_being_reassigned_are_counted() -> None:
    moved = topic("a", [[1, 2, 3], [1, 2]])
    assert cluster(moved, moving=[("a", 0)]).replication.moving == 1


def test_an_empty_cluster_lacks_no_replica() -> None:
    assert cluster().replication == Replication(under_replicated=0, offline=0)
