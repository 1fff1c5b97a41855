"""Dead brokers that still have replicas assigned, and unavailable partitions."""

import numpy as np

from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.plan.outages import DeadBroker, dead_brokers, outage_notes, unavailable
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)

T = TopicName("t")


def snapshot(*placed: tuple[tuple[int, ...], int]) -> Snapshot:
    """Brokers 1 to 4, the last two dead; partitions as (replicas, leader)."""
    topic = Topic(name=T, topic_id="1")
    header = SnapshotHeader(
        cluster_id="c",
        taken_at_ms=0,
        brokers=tuple(
            Broker(id=BrokerId(i), state=BrokerState.DEAD if i > 2 else BrokerState.ALIVE)
            for i in (1, 2, 3, 4)
        ),
        topics=(topic,),
        resources=(Resource.NET_IN,),
    )
    rows = [
        PartitionRow(
            id=PartitionId(T, number),
            topic_id="1",
            storage=StorageKind.REPLICATED,
            internal=False,
            replicas=tuple(map(BrokerId, replicas)),
            leader=BrokerId(leader),
            size_bytes=1,
            local_bytes=1,
        )
        for number, (replicas, leader) in enumerate(placed)
    ]
    return Snapshot(header, partitions_from_rows((topic,), rows, np.ones((len(rows), 1))))


def test_replicas_of_dead_brokers_are_counted_and_uncopyable_ones_separately() -> None:
    seen = snapshot(((1, 3), 1), ((3, 2), 2), ((3,), NO_BROKER), ((1, 2), 1))
    assert dead_brokers(seen) == (DeadBroker(id=BrokerId(3), replicas=3, movable=2),)


def test_a_partition_is_unavailable_if_all_its_replicas_are_on_dead_brokers() -> None:
    seen = snapshot(((3,), NO_BROKER), ((3, 4), NO_BROKER), ((1, 3), NO_BROKER))
    assert unavailable(seen) == (PartitionId(T, 0), PartitionId(T, 1))


def test_notes_name_the_broker_and_the_partitions() -> None:
    seen = snapshot(((1, 3), 1), ((3,), NO_BROKER))
    first, second = outage_notes(seen)
    assert first == "Broker 3 is dead and holds 2 replicas, 1 of them unavailable."
    assert "1 partition unavailable" in second
    assert "t-1" in second
    assert outage_notes(snapshot(((1, 2), 1))) == ()
