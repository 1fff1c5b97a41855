"""Log directories reported by brokers, in the columns of a snapshot."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from collector.broker_log_dirs import (
    SAME_ROOM,
    BrokerLogDirs,
    read_directories,
    with_capacities,
    with_directories,
)
from collector.brokers.response_layout import log_dirs
from collector.metadata import ClusterState
from model.errors import ConfigError, InvalidCluster
from model.ids import BrokerId
from model.snapshot.capacities import DEFAULT, Capacities, Entry
from model.snapshot.snapshot import BrokerState, CapacitySource, LogDir, Resource, StorageKind
from tests.support.collector import admin_responses
from tests.support.collector.sample_rows import cluster, topic


def folder(
    path: str, *partitions: tuple[int, bool], total: int = 1000, **other: object
) -> dict[str, Any]:
    """As `answers.log_dirs` takes one; (number, whether it is being copied in)."""
    return {
        "path": path,
        "total_bytes": total,
        "sizes": {("orders", number): 7 for number, _ in partitions},
        "future": [("orders", number) for number, coming in partitions if coming],
        **other,
    }


def read(folders: Sequence[Mapping[str, Any]]) -> BrokerLogDirs:
    return read_directories(log_dirs(admin_responses.log_dirs(folders)))


def test_directories_are_in_the_order_of_their_paths() -> None:
    result = read([folder("/b", (1, False)), folder("/a", (0, False))])
    assert [d.path for d in result.listed] == ["/a", "/b"]
    assert result.home == {("orders", 0): 0, ("orders", 1): 1}


def test_a_copy_in_progress_is_not_the_directory_of_a_replica() -> None:
    result = read([folder("/a", (0, False)), folder("/b", (0, True))])
    assert result.home == {("orders", 0): 0}


def test_the_capacity_of_each_log_directory_is_read() -> None:
    result = read(
        [
            folder("/a", total=5000),
            folder("/b", total=-1),
            folder("/c", is_cordoned=True),
            folder("/d", error_code=56),
        ]
    )
    assert result.listed == (
        LogDir(path="/a", capacity_bytes=5000.0),
        LogDir(path="/b"),
        LogDir(path="/c", capacity_bytes=1000.0, cordoned=True),
        LogDir(path="/d", capacity_bytes=1000.0, cordoned=True, failed=True),
    )


def test_offline_replicas_of_a_live_broker_are_in_its_failed_directory() -> None:
    """Brokers list nothing of it; one that is being created has no directory yet."""
    state = cluster(topic("orders", [[1, 2], [2, 1], [1]], offline=[[1], [], []]))
    broken = folder("/b", total=-1, error_code=56)
    known = {1: read([folder("/a", (1, False)), broken])}
    result = with_directories(state, known)
    assert result.replica_dir is not None
    assert result.replica_dir.tolist() == [1, -1, -1, 0, -1]
    assert result.brokers[0].state is BrokerState.ALIVE
    sound = {1: read([folder("/a", (1, False)), folder("/b")])}
    unknown = with_directories(state, sound).replica_dir
    assert unknown is not None
    assert unknown.tolist() == [-1, -1, -1, 0, -1]


def test_each_replica_of_a_broker_that_answered_gets_its_directory() -> None:
    state = cluster(topic("orders", [[1, 2], [2, 1], [1, 3]]))
    properties = read([folder("/a", (0, False)), folder("/b", (1, False))])
    result = with_directories(state, {1: properties})
    assert result.replica_dir is not None
    assert result.replica_dir.tolist() == [0, -1, -1, 1, -1, -1]
    assert [b.log_dirs for b in result.brokers] == [properties.listed, (), ()]


def test_a_single_directory_leaves_nothing_to_choose() -> None:
    state = cluster(topic("orders", [[1]]))
    properties = read([folder("/a", (0, False))])
    assert with_directories(state, {1: properties}) is state


@pytest.mark.parametrize("paths", [("/a",), ("/a", "/b")])
def test_a_broker_is_cordoned_if_all_its_directories_are(paths: tuple[str]) -> None:
    """Brokers with a single directory too."""
    state = cluster(topic("orders", [[1]]))
    closed = read([folder(path, is_cordoned=True) for path in paths])
    states = [b.state for b in with_directories(state, {1: closed}).brokers]
    assert states[0] is BrokerState.CORDONED
    assert set(states[1:]) <= {BrokerState.ALIVE, BrokerState.DEAD}


def test_one_open_directory_is_enough_and_a_dead_broker_stays_dead() -> None:
    state = cluster(topic("orders", [[1, 9]]))
    half = read([folder("/a"), folder("/b", is_cordoned=True)])
    closed = read([folder("/a", is_cordoned=True)])
    result = {b.id: b.state for b in with_directories(state, {1: half, 9: closed}).brokers}
    assert result[BrokerId(1)] is BrokerState.ALIVE
    assert result[BrokerId(9)] is BrokerState.DEAD


def disk(state: ClusterState) -> list[tuple[float | None, str | None]]:
    """Each broker's capacity and its source."""
    at = Resource.DISK
    return [(b.capacity.get(at), b.capacity_from.get(at)) for b in state.brokers]


def given(capacity: float, *paths: str, broker: int = DEFAULT) -> Capacities:
    dirs = tuple(LogDir(path=path, capacity_bytes=1.0) for path in paths)
    entry = Entry(capacity={Resource.DISK: capacity}, log_dirs=dirs)
    return Capacities(source=CapacitySource.FILE, place="c.json", by_broker={broker: entry})


def test_a_brokers_disks_are_summed() -> None:
    result = read([folder("/a", total=1000), folder("/b", total=500)])
    assert result.total_bytes == 1500.0


def test_a_directory_that_is_offline_does_not_count() -> None:
    """Kafka reports no bytes for it."""
    broken = folder("/b", total=-1, error_code=56)
    assert read([folder("/a"), broken]).total_bytes == 1000.0
    assert read([broken]).total_bytes is None


def test_a_cordoned_directory_counts_with_its_content() -> None:
    result = read([folder("/a"), folder("/b", is_cordoned=True)])
    assert result.total_bytes == 2000.0


@pytest.mark.parametrize("total", [-1, 0, 2**63 - 1])
def test_one_directory_without_a_figure_leaves_the_sum_unknown(total: int) -> None:
    """Brokers before Kafka 3.3, and file systems without a limit."""
    result = read([folder("/a"), folder("/b", total=total)])
    assert result.total_bytes is None
    assert [d.capacity_bytes for d in result.listed] == [1000.0, None]


def test_directories_on_one_file_system_count_once() -> None:
    """The free space may change a little while the broker reads one after the other."""
    free_bytes = 2**40
    one = folder("/a", total=2**41, usable_bytes=free_bytes)
    same = folder("/b", total=2**41, usable_bytes=free_bytes - SAME_ROOM + 1)
    other = folder("/b", total=2**41, usable_bytes=free_bytes - SAME_ROOM)
    assert read([one, same]).total_bytes == 2**41
    assert read([one, other]).total_bytes == 2**42


def test_brokers_have_the_capacity_they_report() -> None:
    state = cluster(topic("orders", [[1]]))
    properties = read([folder("/a")])
    result = with_capacities(state, {1: properties}, None)
    assert disk(result) == [(1000.0, "log directories"), (None, None), (None, None)]


def test_configured_capacities_take_precedence_over_reported_ones() -> None:
    state = cluster(topic("orders", [[1]]))
    known = {b: read([folder("/a")]) for b in (1, 2, 3)}
    result = with_capacities(state, known, given(4000.0, broker=2))
    reported = (1000.0, "log directories")
    assert disk(result) == [reported, (4000.0, "capacity file"), reported]


@pytest.mark.parametrize("topics", [(topic("orders", [[1]]),), ()])
def test_local_disks_do_not_count_if_all_bytes_are_in_object_storage(
    topics: tuple[dict[str, Any], ...],
) -> None:
    state = cluster(*topics, storage=StorageKind.SHARED)
    known = {b: read([folder("/a")]) for b in (1, 2, 3)}
    assert disk(with_capacities(state, known, None)) == [(None, None)] * 3
    result = with_capacities(state, known, given(5.0))
    assert disk(result) == [(5.0, "capacity file")] * 3


def test_a_given_directory_that_a_broker_lacks_is_named() -> None:
    """Also if the broker has only one, which a snapshot does not list."""
    state = cluster(topic("orders", [[1]]))
    known = {1: read([folder("/a")])}
    with pytest.raises(ConfigError, match="broker 1 has no log directory /b; it has"):
        with_capacities(state, known, given(2.0, "/a", "/b"))


def test_a_mistaken_unit_ends_the_watch_and_names_both_brokers() -> None:
    state = cluster(topic("orders", [[1]]))
    known = {b: read([folder("/a", total=10**12)]) for b in (1, 2, 3)}
    with pytest.raises(InvalidCluster, match=r"disk capacity of broker 2; check their"):
        with_capacities(state, known, given(1000.0, broker=2))
