"""Log directories as brokers tell them, in a snapshot's columns."""

from typing import Any

from collector.directories import read_directories, with_directories
from model.snapshot import LogDir
from tests.collector.rows import cluster, topic


def folder(
    path: str, *partitions: tuple[int, bool], total: int = 1000, **other: object
) -> dict[str, Any]:
    """As kafka-python describes one; (number, whether it is only being copied in)."""
    parts = [
        {"partition_index": number, "is_future_key": coming, "partition_size": 7}
        for number, coming in partitions
    ]
    return {
        "log_dir": path,
        "error_code": 0,
        "total_bytes": total,
        "topics": [{"name": "orders", "partitions": parts}],
        **other,
    }


def test_directories_are_in_the_order_of_their_paths() -> None:
    found = read_directories([folder("/b", (1, False)), folder("/a", (0, False))])
    assert [d.path for d in found.listed] == ["/a", "/b"]
    assert found.home == {("orders", 0): 0, ("orders", 1): 1}


def test_a_copy_under_way_is_no_home() -> None:
    found = read_directories([folder("/a", (0, False)), folder("/b", (0, True))])
    assert found.home == {("orders", 0): 0}


def test_what_a_directory_can_take_is_told() -> None:
    found = read_directories(
        [
            folder("/a", total=5000),
            folder("/b", total=-1),
            folder("/c", is_cordoned=True),
            folder("/d", error_code=56),
        ]
    )
    assert found.listed == (
        LogDir(path="/a", capacity_bytes=5000.0),
        LogDir(path="/b"),
        LogDir(path="/c", capacity_bytes=1000.0, cordoned=True),
        LogDir(path="/d", capacity_bytes=1000.0, cordoned=True),
    )


def test_each_replica_of_a_broker_that_told_gets_its_directory() -> None:
    state = cluster(topic("orders", [[1, 2], [2, 1], [1, 3]]))
    told = read_directories([folder("/a", (0, False)), folder("/b", (1, False))])
    found = with_directories(state, {1: told})
    assert found.replica_dir is not None
    assert found.replica_dir.tolist() == [0, -1, -1, 1, -1, -1]
    assert [b.log_dirs for b in found.brokers] == [told.listed, (), ()]


def test_a_single_directory_is_none_to_choose_from() -> None:
    state = cluster(topic("orders", [[1]]))
    told = read_directories([folder("/a", (0, False))])
    assert with_directories(state, {1: told}) is state
