import numpy as np
import pyarrow as pa

from collector.assemble import FRESH_MS, assemble, newest_vectors
from collector.metadata import ClusterState
from collector.vectors import VECTORS
from model.snapshot import Snapshot, StorageKind
from tests.collector.rows import START_MS, cluster, figures, load_table, topic, vector


def vectors(*rows: tuple[str, int, int], net_in: float = 5.0) -> pa.Table:
    """Of (topic, partition, time in ms after the start)."""
    return load_table(
        vector(topic=name, partition=number, time_ms=START_MS + late_ms, net_in=net_in)
        for name, number, late_ms in rows
    )


def snapshot(state: ClusterState, found: pa.Table) -> Snapshot:
    return assemble(state, found, window_s=15.0)


def test_loads_stand_beside_their_partitions() -> None:
    state = cluster(topic("a", [[1], [2]]), topic("b", [[3, 1]]))
    found = snapshot(state, vectors(("b", 0, 0), ("a", 1, 0)))
    assert found.partitions.loads[1:].tolist() == [[5.0, 7.0, 1000.0]] * 2
    assert np.isnan(found.partitions.loads[0]).all()
    assert found.partitions.measured.tolist() == [
        [False] * 3,
        [True, False, True],
        [True, False, True],
    ]
    assert found.partitions.size_bytes.tolist() == [-1, 9000, 9000]
    assert found.partitions.local_bytes.tolist() == [-1, 1000, 1000]
    assert found.replicas(2) == (3, 1)


def test_age_and_measured_share_are_stated() -> None:
    state = cluster(topic("a", [[1], [2]]), topic("__own", [[1]]))
    source = snapshot(state, vectors(("a", 0, 0), ("a", 1, 500))).header.sources[0]
    assert source.name == "probe"
    assert source.newest_sample_ms == START_MS + 500
    assert source.samples == 32
    # Two of three loads of users' partitions; plimsoll's own do not count.
    assert source.measured_share == 4 / 6


def test_a_cluster_without_partitions_has_a_snapshot() -> None:
    found = snapshot(cluster(), VECTORS.empty_table())
    assert len(found) == 0
    assert found.header.taken_at_ms == START_MS
    assert found.header.sources[0].measured_share == 1.0


def test_a_shared_log_lies_on_no_disk() -> None:
    state = cluster(topic("a", [[1]]), storage=StorageKind.SHARED)
    found = snapshot(state, vectors(("a", 0, 0)))
    assert found.partitions.loads.tolist() == [[5.0, 7.0, 0.0]]
    assert found.partitions.local_bytes.tolist() == [0]
    assert found.partitions.size_bytes.tolist() == [9000]


def test_a_partition_without_fresh_vector_keeps_its_last_for_a_minute() -> None:
    known = vectors(("a", 0, 0), ("a", 1, 0))
    found = newest_vectors(known, vectors(("a", 0, FRESH_MS), net_in=6.0))
    assert found["net_in"].to_pylist() == [6.0, 5.0]
    found = newest_vectors(known, vectors(("a", 0, FRESH_MS + 1), net_in=6.0))
    assert found["net_in"].to_pylist() == [6.0]


def test_a_load_older_than_the_window_is_an_estimate() -> None:
    state = cluster(topic("a", [[1], [2]]))
    found = snapshot(state, vectors(("a", 0, 0), ("a", 1, 15_001)))
    assert found.partitions.measured[:, 0].tolist() == [False, True]


def test_known_vectors_stay_when_nothing_new_comes() -> None:
    known = vectors(("a", 0, 0))
    assert figures(newest_vectors(known, VECTORS.empty_table())) == figures(known)
    assert newest_vectors(VECTORS.empty_table(), VECTORS.empty_table()).num_rows == 0
