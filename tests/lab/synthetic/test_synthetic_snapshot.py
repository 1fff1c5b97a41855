"""Synthetic clusters are as skewed as documented, and consistent."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.synthetic.observe import Order, SyntheticCluster
from lab.synthetic.shape import ClusterShape, young_brokers
from model.errors import ConfigError
from model.snapshot.snapshot import Resource, Snapshot, StorageKind
from tests.support.lab.synthetic_orders import order


def mean(spec: Order) -> Snapshot:
    return SyntheticCluster(spec).mean


def slope(values: np.ndarray) -> float:
    """Slope of a straight line through values by rank, both as logarithms."""
    ranks = np.arange(1, len(values) + 1)
    return float(np.polyfit(np.log(ranks), np.log(values), 1)[0])


@st.composite
def shapes(draw: st.DrawFn) -> ClusterShape:
    brokers = draw(st.integers(1, 40))
    racks = draw(st.integers(1, min(6, brokers)))
    return ClusterShape(
        brokers=brokers,
        partitions=draw(st.integers(1, 300)),
        racks=racks,
        rf=draw(st.integers(1, min(4, racks))),
        topic_skew=draw(st.floats(0, 3)),
        partition_skew=draw(st.floats(0, 3)),
        young=brokers - young_brokers(brokers) >= racks,
        unequal=draw(st.booleans()),
    )


@settings(max_examples=60, deadline=None)
@given(shape=shapes(), seed=st.integers(0, 2**32))
def test_replicas_lie_in_different_racks_whatever_the_shape(shape: ClusterShape, seed: int) -> None:
    """Other contradictions are checked when the snapshot is made."""
    made = mean(order(**{f: getattr(shape, f) for f in shape.__slots__}, seed=seed))
    columns = made.partitions
    assert len(made) == shape.partitions
    racks = np.array([int((b.rack or "")[5:]) for b in made.header.brokers])
    rows = racks[columns.replica_broker].reshape(-1, shape.rf)
    assert all(len(set(row)) == shape.rf for row in rows.tolist())
    assert (columns.loads >= 0).all()


@pytest.mark.parametrize(("brokers", "young"), [(3, False), (1000, True)])
def test_each_old_broker_holds_replicas_at_any_cluster_size(brokers: int, young: bool) -> None:
    made = mean(order(brokers, 20 * brokers, young=young))
    counts = np.bincount(made.partitions.replica_broker, minlength=brokers)
    assert len(made.header.brokers) == len(counts) == brokers
    assert counts[: brokers - young * young_brokers(brokers)].min() > 0


def test_rates_of_topics_fall_by_zipfs_law() -> None:
    made = mean(order(50, 5000, topic_skew=0.7, partition_skew=0.0))
    columns = made.partitions
    by_topic = np.bincount(columns.topic, columns.loads[:, 0])
    assert slope(by_topic) == pytest.approx(-0.7, abs=0.01)


def test_rates_of_the_partitions_of_a_topic_fall_by_zipfs_law() -> None:
    made = mean(order(50, 5000, topic_skew=0.5, partition_skew=0.6))
    columns = made.partitions
    largest = columns.loads[columns.topic == 0, 0]
    assert slope(np.sort(largest)[::-1]) == pytest.approx(-0.6, abs=0.01)


def test_without_skew_all_partitions_have_equal_rates() -> None:
    made = mean(order(6, 60, topic_skew=0.0, partition_skew=0.0))
    columns = made.partitions
    topics = columns.loads[:, 0] * np.bincount(columns.topic)[columns.topic]
    assert topics.max() - topics.min() <= np.bincount(columns.topic).max()


def test_unequal_brokers_have_three_capacities() -> None:
    brokers = mean(order(30, 300, unequal=True)).header.brokers
    capacities = {b.capacity[Resource.NET_IN] for b in brokers}
    assert {c / min(capacities) for c in capacities} == {1.0, 1.5, 2.0}


def test_every_other_broker_has_twice_the_capacity() -> None:
    brokers = mean(order(5, 50, two_sizes=True)).header.brokers
    capacities = [b.capacity[Resource.NET_IN] for b in brokers]
    assert [c / capacities[0] for c in capacities] == [1.0, 2.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize("storage", list(StorageKind))
def test_a_cluster_has_the_requested_storage(storage: StorageKind) -> None:
    made = mean(order(storage=storage))
    columns = made.partitions
    assert {t.storage for t in made.header.topics} == {storage}
    local = {
        StorageKind.REPLICATED: columns.size_bytes,
        StorageKind.TIERED: columns.size_bytes // 20,
        StorageKind.SHARED: np.zeros_like(columns.size_bytes),
    }[storage]
    assert (columns.local_bytes == local).all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"rf": 4}, "4 replicas need as many racks, but there are 3"),
        ({"brokers": 3}, "3 racks need as many brokers that are not young"),
        ({"rf": 0}, "0 replicas need"),
    ],
)
def test_impossible_properties_are_rejected(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        order(**spec)


def test_shared_storage_has_one_replica() -> None:
    shape = ClusterShape(brokers=6, partitions=6, racks=3, rf=3)
    spec = order()
    with pytest.raises(ConfigError, match="on shared storage a partition has one"):
        Order(shape=shape, storage=StorageKind.SHARED, rhythm=spec.rhythm, seed=1)
