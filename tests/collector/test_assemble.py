import math
from typing import Any

import numpy as np
import pyarrow as pa

from collector.assemble import FRESH_MS, RESOURCES, assemble, cores_of, newest_vectors
from collector.metadata import ClusterState
from collector.spark.vectors import NOBODY, ORIGINS, VECTORS
from model.ids import BrokerId
from model.snapshot.snapshot import Broker, Resource, Snapshot, StorageKind
from tests.support.collector.sample_rows import (
    START_MS,
    cluster,
    figures,
    load_table,
    topic,
    vector,
)


def vectors(*rows: tuple[str, int, int], net_in: float = 5.0) -> pa.Table:
    """Of (topic, partition, time in ms after the start)."""
    return load_table(
        vector(topic=name, partition=number, time_ms=START_MS + late_ms, net_in=net_in)
        for name, number, late_ms in rows
    )


def snapshot(state: ClusterState, result: pa.Table) -> Snapshot:
    return assemble(state, result, window_s=15.0)


def test_loads_belong_to_their_partitions() -> None:
    state = cluster(topic("a", [[1], [2]]), topic("b", [[3, 1]]))
    result = snapshot(state, vectors(("b", 0, 0), ("a", 1, 0)))
    assert result.partitions.loads[1:].tolist() == [[5.0, 7.0, 1000.0]] * 2
    assert np.isnan(result.partitions.loads[0]).all()
    assert result.partitions.measured.tolist() == [
        [False] * 3,
        [True, False, True],
        [True, False, True],
    ]
    assert result.partitions.size_bytes.tolist() == [-1, 9000, 9000]
    assert result.partitions.local_bytes.tolist() == [-1, 1000, 1000]
    assert result.replicas(2) == (3, 1)


def test_age_and_measured_share_are_stated() -> None:
    state = cluster(topic("a", [[1], [2]]), topic("__own", [[1]]))
    source = snapshot(state, vectors(("a", 0, 0), ("a", 1, 500))).header.sources[0]
    assert source.name == "probe"
    assert source.newest_sample_ms == START_MS + 500
    assert source.samples == 32
    # Two of three loads of users' partitions; plimsoll's own do not count.
    assert source.measured_share == 4 / 6


def test_a_cluster_without_partitions_gives_a_snapshot() -> None:
    result = snapshot(cluster(), VECTORS.empty_table())
    assert len(result) == 0
    assert result.header.taken_at_ms == START_MS
    assert result.header.sources[0].measured_share == 1.0


def test_a_shared_log_uses_no_disk() -> None:
    state = cluster(topic("a", [[1]]), storage=StorageKind.SHARED)
    result = snapshot(state, vectors(("a", 0, 0)))
    assert result.partitions.loads.tolist() == [[5.0, 7.0, 0.0]]
    assert result.partitions.local_bytes.tolist() == [0]
    assert result.partitions.size_bytes.tolist() == [9000]


def test_a_partition_without_a_fresh_vector_keeps_its_last_for_a_minute() -> None:
    known = vectors(("a", 0, 0), ("a", 1, 0))
    result = newest_vectors(known, vectors(("a", 0, FRESH_MS), net_in=6.0))
    assert result["net_in"].to_pylist() == [6.0, 5.0]
    result = newest_vectors(known, vectors(("a", 0, FRESH_MS + 1), net_in=6.0))
    assert result["net_in"].to_pylist() == [6.0]


def test_vectors_from_before_the_clock_was_set_back_give_way() -> None:
    known = vectors(("a", 0, 3_600_000), ("a", 1, 3_600_000))
    result = newest_vectors(known, vectors(("a", 0, 0), net_in=6.0))
    assert result["net_in"].to_pylist() == [6.0]


def test_a_load_older_than_the_window_is_an_estimate() -> None:
    state = cluster(topic("a", [[1], [2]]))
    result = snapshot(state, vectors(("a", 0, 0), ("a", 1, 15_001)))
    assert result.partitions.measured[:, 0].tolist() == [False, True]


def test_known_vectors_stay_when_no_new_ones_arrive() -> None:
    known = vectors(("a", 0, 0))
    assert figures(newest_vectors(known, VECTORS.empty_table())) == figures(known)
    assert newest_vectors(VECTORS.empty_table(), VECTORS.empty_table()).num_rows == 0


def reported(number: int, **other: object) -> dict[str, Any]:
    """A partition with bytes out by AutoMQ, CPU and requests by Cruise Control."""
    of_reporters = {
        "cpu": 0.25,
        "requests": 30.0,
        "out_measured": True,
        "in_by": ORIGINS.index("probe"),
        "out_by": ORIGINS.index("automq"),
        "cpu_by": ORIGINS.index("cruise-control"),
        "requests_by": ORIGINS.index("cruise-control"),
        "requests_measured": False,
        "automq_ms": START_MS - 10_000 * number,
        "cruise_control_ms": START_MS - 50_000,
    }
    return vector(topic="a", partition=number, **(of_reporters | other))


def test_cpu_and_requests_are_present_if_any_partition_has_them() -> None:
    state = cluster(topic("a", [[1], [2]]))
    unknown = {"cpu": math.nan, "requests": math.nan}
    nobody = dict.fromkeys(("cpu_by", "requests_by"), NOBODY)
    result = snapshot(state, load_table([reported(0), reported(1, **unknown, **nobody)]))
    assert result.header.resources == (*RESOURCES, Resource.CPU, Resource.REQUESTS)
    assert result.partitions.loads[0].tolist() == [5.0, 7.0, 1000.0, 0.25, 30.0]
    assert np.isnan(result.partitions.loads[1, 3:]).all()
    assert result.partitions.measured.tolist() == [[True, True, True, False, False]] * 2
    alone = snapshot(state, load_table([reported(0, cpu=math.nan), reported(1, cpu=math.nan)]))
    assert alone.header.resources == (*RESOURCES, Resource.REQUESTS)


def test_each_source_has_its_own_age_samples_and_share() -> None:
    state = cluster(topic("a", [[1], [2]]), topic("__own", [[1]]))
    result = snapshot(state, load_table([reported(0), reported(1, in_measured=False)]))
    probe, automq, cruise = result.header.sources
    assert [s.name for s in result.header.sources] == ["probe", "automq", "cruise-control"]
    assert [s.newest_sample_ms - START_MS for s in result.header.sources] == [0, 0, -50_000]
    assert (probe.samples, automq.samples, cruise.samples) == (32, 2, 2)
    # Of ten loads: bytes in of one partition and both disks; bytes out; nothing.
    assert [s.measured_share for s in result.header.sources] == [0.3, 0.2, 0.0]


def test_cores_are_known_for_brokers_with_a_capacity() -> None:
    brokers = [
        Broker(id=BrokerId(1), capacity={Resource.CPU: 4.0}),
        Broker(id=BrokerId(2), capacity={Resource.DISK: 1e12}),
    ]
    assert cores_of(brokers) == {1: 4.0}
