"""Dead brokers that still have replicas assigned, and unavailable partitions."""

from model.ids import NO_BROKER, BrokerId, PartitionId
from model.plan.outages import (
    DeadBroker,
    dead_brokers,
    failed_dirs,
    outage_notes,
    unavailable,
    unavailable_text,
)
from model.snapshot.snapshot import BrokerState, Snapshot
from tests.support.model import clusters
from tests.support.model.clusters import TOPIC, brokers
from tests.support.model.failed_disks import with_failed_disks

DEAD = BrokerState.DEAD


def snapshot(*placed: tuple[tuple[int, ...], int]) -> Snapshot:
    """Brokers 1 to 4, the last two dead; partitions as (replicas, leader)."""
    places, leaders = zip(*placed, strict=True)
    return clusters.snapshot(brokers(4, states={3: DEAD, 4: DEAD}), places, leaders=leaders)


def test_replicas_of_dead_brokers_are_counted_and_uncopyable_ones_separately() -> None:
    seen = snapshot(((1, 3), 1), ((3, 2), 2), ((3,), NO_BROKER), ((1, 2), 1))
    assert dead_brokers(seen) == (DeadBroker(id=BrokerId(3), replicas=3, movable=2),)


def test_a_partition_is_unavailable_if_all_its_replicas_are_on_dead_brokers() -> None:
    seen = snapshot(((3,), NO_BROKER), ((3, 4), NO_BROKER), ((1, 3), NO_BROKER))
    assert unavailable(seen) == (PartitionId(TOPIC, 0), PartitionId(TOPIC, 1))


def test_notes_name_the_broker_and_the_partitions() -> None:
    seen = snapshot(((1, 3), 1), ((3,), NO_BROKER))
    first, second = outage_notes(seen)
    assert first == "Broker 3 is dead and holds 2 replicas, 1 of them unavailable."
    assert "1 partition unavailable" in second
    assert "orders-1" in second
    assert outage_notes(snapshot(((1, 2), 1))) == ()


def test_failed_directories_are_named_with_what_is_in_them() -> None:
    seen = with_failed_disks(3, [(1, 2), (3, 2), (2,)], {(0, 2), (2, 2)})
    (found,) = failed_dirs(seen)
    assert (found.path, found.replicas, found.movable) == ("/b", 2, 1)
    assert outage_notes(seen) == (
        "Log directory /b of broker 2 has failed with 2 replicas, 1 of them unavailable.",
        "1 partition unavailable until a failed disk is repaired, which no plan can move: "
        "orders-2.",
    )
    assert unavailable_text(with_failed_disks(2, [(1, 2)], ())) == ""
