"""Loads of a history, by the hour."""

import numpy as np
import pyarrow as pa
import pytest

from lab.synthetic.shape import ClusterShape
from lab.time_lapse.hourly_loads import HOUR_MS, HourlyLoads, hourly_loads
from lab.time_lapse.varying_loads import synthetic_start
from model.snapshot.snapshot import Resource, Snapshot
from tests.support.model import clusters

FIRST = 490_000
BEGIN_MS = FIRST * HOUR_MS
MB = 1e6


def two_partitions() -> Snapshot:
    """Partitions 0 and 1 of the topic, each with 1 MB/s in and 2 MB/s out."""
    return clusters.snapshot(clusters.brokers(3), [(1,), (2,)], [(MB, 2 * MB)] * 2)


def history(*rows: tuple[str, int, int, float | None]) -> pa.Table:
    """Topic, partition, hours since the first one, and MB/s in; twice as much goes out."""
    return pa.table(
        {
            "topic": [row[0] for row in rows],
            "partition": pa.array([row[1] for row in rows], pa.int32()),
            "hour": pa.array([FIRST + row[2] for row in rows], pa.int32()),
            **{
                f"{name}_mean": pa.array(
                    [None if row[3] is None else row[3] * factor * MB for row in rows], pa.float32()
                )
                for name, factor in {"net_in": 1, "net_out": 2, "disk": 1e6}.items()
            },
        }
    )


def net_in(loads: HourlyLoads, hour: float) -> list[float]:
    """MB/s into each partition at a time, hours after the first one."""
    return [float(x) / MB for x in loads.at(BEGIN_MS + int(hour * HOUR_MS))[:, 0]]


def test_each_hour_has_its_own_loads() -> None:
    own = str(clusters.TOPIC)
    table = history((own, 1, 1, 8), (own, 0, 0, 3), (own, 1, 0, 5), (own, 0, 1, 4))
    loads = hourly_loads(two_partitions(), table, BEGIN_MS, 2)
    assert [net_in(loads, hour) for hour in (0, 0.99, 1)] == [[3, 5], [3, 5], [4, 8]]
    assert loads.at(BEGIN_MS)[:, 1].tolist() == [6 * MB, 10 * MB]
    assert [net_in(loads, hour) for hour in (-5, 9)] == [[3, 5], [4, 8]]


def test_sizes_stay_those_of_the_snapshot() -> None:
    shape = ClusterShape(brokers=2, partitions=4, racks=1, rf=1, young=False)
    snapshot = synthetic_start(shape, BEGIN_MS, 1)
    topic, number = snapshot.id(0)
    loads = hourly_loads(snapshot, history((str(topic), number, 0, 3)), BEGIN_MS, 1)
    changed = loads.at(BEGIN_MS) != snapshot.partitions.loads
    resources = snapshot.header.resources
    assert Resource.DISK in resources
    names = {str(resources[column]) for column in np.flatnonzero(changed[0])}
    assert names == {"net_in", "net_out"}
    assert not changed[1:].any()


@pytest.mark.parametrize("gap", [(), (None,), (float("nan"),)])
def test_hours_without_a_figure_keep_the_one_before(gap: tuple[float | None, ...]) -> None:
    own = str(clusters.TOPIC)
    gaps = [(own, 0, hour, figure) for figure in gap for hour in (0, 2)]
    table = history((own, 0, 1, 3), *gaps, (own, 0, 3, 4))
    loads = hourly_loads(two_partitions(), table, BEGIN_MS, 5)
    assert [net_in(loads, hour)[0] for hour in range(5)] == [3, 3, 3, 4, 4]
    assert [net_in(loads, hour)[1] for hour in range(5)] == [1] * 5, "as in the snapshot"


def test_other_partitions_and_hours_are_left_out() -> None:
    own = str(clusters.TOPIC)
    others = (("other", 0, 0, 9.0), (own, 2, 0, 9.0), (own, 0, -1, 9.0), (own, 0, 1, 9.0))
    loads = hourly_loads(two_partitions(), history(*others), BEGIN_MS, 1)
    assert net_in(loads, 0) == [1, 1]
    assert np.array_equal(loads.at(BEGIN_MS), two_partitions().partitions.loads)
