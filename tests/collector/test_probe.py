from dataclasses import dataclass

from collector.directories import read_directories
from collector.probe import (
    IDLE_AGE_S,
    BrokerLook,
    Commits,
    Probe,
    build_samples,
    sum_commits,
)
from model.connection.client import Connection
from model.snapshot import StorageKind
from tests.collector.rows import START_MS, cluster, topic

NO_COMMITS = Commits(offsets={}, groups={})


@dataclass
class Commit:
    offset: int


def look(**other: object) -> BrokerLook:
    found = BrokerLook(START_MS)
    found.latest = {("orders", 0): 100, ("orders", 1): 50}
    found.sizes = {("orders", 0): 7000}
    found.earliest_local = {("orders", 0): 30}
    for name, value in other.items():
        setattr(found, name, value)
    return found


def test_a_sample_holds_what_the_leader_said() -> None:
    state = cluster(topic("orders", [[1]]))
    commits = Commits(offsets={("orders", 0): 190}, groups={("orders", 0): 2})
    (row,) = build_samples(state, {1: look()}, commits).to_pylist()
    assert row == {
        "topic": "orders",
        "partition": 0,
        "time_ms": START_MS,
        "broker": 1,
        "flags": 0,
        "groups": 2,
        "latest": 100,
        "earliest_local": 30,
        "earliest": 30,
        "local_bytes": 7000,
        "total_bytes": 7000,
        "group_offsets": 190,
    }


def test_what_is_absent_is_absent_and_not_zero() -> None:
    state = cluster(topic("orders", [[1], [1]]))
    found = build_samples(state, {1: look()}, None).to_pylist()
    names = ("local_bytes", "total_bytes", "earliest_local", "groups", "group_offsets")
    assert [found[1][name] for name in names] == [-1] * 5


def test_a_tiered_partition_does_not_take_its_local_size_for_the_whole() -> None:
    state = cluster(topic("orders", [[1]]), storage=StorageKind.TIERED)
    (row,) = build_samples(state, {1: look()}, NO_COMMITS).to_pylist()
    assert (row["earliest"], row["total_bytes"]) == (-1, -1)
    told = look(earliest={("orders", 0): 5})
    (row,) = build_samples(state, {1: told}, NO_COMMITS).to_pylist()
    assert row["earliest"] == 5


def test_partitions_whose_broker_is_silent_are_left_out() -> None:
    state = cluster(
        topic("orders", [[1], [2], [3]], leaders=[1, 2, -1]), brokers=(1, 2, 3)
    )
    found = build_samples(state, {1: look()}, NO_COMMITS)
    assert found["partition"].to_pylist() == [0]


def test_commits_are_summed_over_the_groups_that_have_any() -> None:
    commits = sum_commits(
        {
            "g1": {("orders", 0): Commit(10), ("orders", 1): Commit(-1)},
            "g2": {("orders", 0): Commit(5)},
        }
    )
    assert commits.offsets == {("orders", 0): 15}
    assert commits.groups == {("orders", 0): 2}


def test_brokers_that_lead_nothing_are_asked_now_and_then_and_when_new() -> None:
    now = [0.0]
    probe = Probe(Connection("x:1"), lambda: now[0])
    three, four = cluster(), cluster(brokers=(1, 2, 3, 4))
    asked = []
    for state, at_s in ((three, 0.0), (three, 1.0), (four, 2.0), (three, 3.0)):
        now[0] = at_s
        asked.append(list(probe._idle(state)))
    now[0] = 2.0 + IDLE_AGE_S
    assert [*asked, list(probe._idle(three))] == [
        [1, 2, 3],
        [],
        [1, 2, 3, 4],
        [],
        [1, 2, 3],
    ]


def test_a_broker_that_is_silent_for_a_moment_keeps_its_disks() -> None:
    probe = Probe(Connection("x:1"))
    told = read_directories([])
    probe._remember(cluster(), {b: look(directories=told) for b in (1, 2)})
    probe._remember(cluster(), {1: look(directories=None)})
    assert sorted(probe.directories) == [1, 2]
    probe._remember(cluster(brokers=(1, 3)), {})
    assert sorted(probe.directories) == [1]
