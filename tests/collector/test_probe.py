"""Samples from brokers' answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from clients.connection import Connection
from collector.brokers.fetch import BrokerFigures, BrokerProbe, BrokerResponses
from collector.brokers.partition_index import PartitionIndex
from collector.brokers.response_layout import RawResponse
from collector.metadata import ClusterState
from collector.probe import IDLE_AGE_S, Probe, build_samples
from collector.samples import MOVING, NEW
from model.snapshot.snapshot import StorageKind
from tests.support.collector import admin_responses
from tests.support.collector.admin_responses import Place
from tests.support.collector.sample_rows import START_MS, cluster, topic

BOTH = {("orders", 0): 100, ("orders", 1): 50}
FIRST = ("orders", 0)


def responses(
    *,
    sizes: Mapping[Place, int] | None = None,
    earliest: Mapping[Place, int] | None = None,
    commits: Sequence[RawResponse] | None = None,
    **other: Any,
) -> BrokerResponses:
    """Samples of two partitions; sizes and start offsets only for the first."""
    kinds = [admin_responses.offsets(BOTH), admin_responses.offsets({FIRST: 30})]
    if earliest is not None:
        kinds.append(admin_responses.offsets(earliest))
    folder = {"path": "/a", "sizes": {FIRST: 7000} if sizes is None else sizes, **other}
    return BrokerResponses(
        time_ms=START_MS,
        log_dirs=admin_responses.log_dirs([folder]),
        offsets=kinds,
        commits=commits,
    )


def look(
    state: ClusterState, result: BrokerResponses | None = None, broker: int = 1
) -> BrokerFigures:
    asked = BrokerProbe(broker, lambda: 0.0)
    if result is not None and result.commits is not None:
        asked.expect(len(result.commits))
    return asked.read(responses() if result is None else result, PartitionIndex(state))


def samples(
    state: ClusterState, broker_figures: Mapping[int, BrokerFigures]
) -> list[dict[str, Any]]:
    commits = [c for result in broker_figures.values() for c in result.commits or ()]
    known = all(result.commits is not None for result in broker_figures.values())
    flags = Probe(Connection("x:1"))._flags(state)
    table = build_samples(PartitionIndex(state), broker_figures, commits if known else None, flags)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_sample_contains_the_answer_of_the_leader() -> None:
    state = cluster(topic("orders", [[1]]))
    groups = admin_responses.commits({"g": {FIRST: 100}, "h": {FIRST: 90}, "new": {FIRST: -1}})
    (row,) = samples(state, {1: look(state, responses(commits=[groups]))})
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


def test_missing_figures_are_absent_and_not_zero() -> None:
    state = cluster(topic("orders", [[1], [1]]))
    result = samples(state, {1: look(state)})
    names = ("local_bytes", "total_bytes", "earliest_local", "groups", "group_offsets")
    assert [result[1][name] for name in names] == [-1] * 5


def test_groups_without_commits_count_as_none() -> None:
    state = cluster(topic("orders", [[1]]))
    (row,) = samples(state, {1: look(state, responses(commits=[]))})
    assert (row["groups"], row["group_offsets"]) == (0, 0)


def test_the_size_of_a_tiered_partition_is_not_its_local_size() -> None:
    state = cluster(topic("orders", [[1]]), storage=StorageKind.TIERED)
    (row,) = samples(state, {1: look(state)})
    assert (row["earliest"], row["total_bytes"]) == (-1, -1)
    (row,) = samples(state, {1: look(state, responses(earliest={FIRST: 5}))})
    assert row["earliest"] == 5


def test_partitions_of_a_silent_broker_are_omitted() -> None:
    state = cluster(topic("orders", [[1], [2], [3]], leaders=[1, 2, -1]), brokers=(1, 2, 3))
    result = samples(state, {1: look(state)})
    assert [row["partition"] for row in result] == [0]


def test_answers_of_a_broker_that_does_not_lead_a_partition_are_ignored() -> None:
    """It led when it was queried, and its answer came late."""
    state = cluster(topic("orders", [[2, 1], [1]]))
    result = samples(state, {1: look(state)})
    assert [row["partition"] for row in result] == [1]


def test_a_copy_into_another_directory_does_not_count_as_size() -> None:
    state = cluster(topic("orders", [[1]]))
    copied = responses(future=[FIRST])
    assert samples(state, {1: look(state, copied)})[0]["local_bytes"] == -1


def test_topics_whose_names_differ_in_dots_and_underscores_are_distinguished() -> None:
    state = cluster(topic("a.b", [[1]]), topic("a_b", [[1]]))
    result = BrokerResponses(
        time_ms=START_MS,
        log_dirs=admin_responses.log_dirs(
            [{"path": "/a", "sizes": {("a.b", 0): 1, ("a_b", 0): 2}}]
        ),
        offsets=[admin_responses.offsets({("a_b", 0): 20, ("a.b", 0): 10})],
    )
    rows = samples(state, {1: look(state, result)})
    remaining = [(r["topic"], r["latest"], r["local_bytes"]) for r in rows]
    assert remaining == [("a.b", 10, 1), ("a_b", 20, 2)]


def test_topics_without_partitions_and_unknown_ones_are_skipped() -> None:
    state = cluster(topic("none", []), topic("orders", [[1]]))
    gone = admin_responses.offsets({("gone", 0): 5, **BOTH})
    result = BrokerResponses(
        time_ms=START_MS,
        log_dirs=admin_responses.log_dirs([{"path": "/a", "sizes": {("gone", 0): 5}}]),
        offsets=[gone],
    )
    (row,) = samples(state, {1: look(state, result)})
    assert (row["topic"], row["latest"]) == ("orders", 100)


def test_a_cluster_without_partitions_gives_an_empty_sample() -> None:
    state = cluster()
    assert samples(state, {}) == []


def test_the_next_answer_is_read_like_the_first() -> None:
    state = cluster(topic("orders", [[1]]))
    placement, asked = PartitionIndex(state), BrokerProbe(1, lambda: 0.0)
    for latest, size in ((100, 7000), (200, 9000)):
        result = BrokerResponses(
            time_ms=START_MS,
            log_dirs=admin_responses.log_dirs([{"path": "/a", "sizes": {FIRST: size}}]),
            offsets=[admin_responses.offsets({FIRST: latest})],
        )
        read = asked.read(result, placement)
        assert read.columns["latest"].values.tolist() == [latest]
        assert read.columns["local_bytes"].values.tolist() == [size]


def test_another_placement_is_read_by_its_own_rows() -> None:
    before = cluster(topic("orders", [[1]]))
    after = cluster(topic("added", [[1]]), topic("orders", [[1]]))
    asked = BrokerProbe(1, lambda: 0.0)
    rows = [
        asked.read(responses(), PartitionIndex(state)).columns["latest"].rows.tolist()
        for state in (before, after)
    ]
    assert rows == [[0], [1]]


def test_groups_that_moved_to_another_coordinator_are_unknown() -> None:
    state = cluster(topic("orders", [[1]]))
    moved = admin_responses.commits({"g": {}}, {"g": 16})
    assert look(state, responses(commits=[moved])).commits is None


def test_brokers_without_leaders_are_queried_occasionally_and_when_new() -> None:
    now = [0.0]
    probe = Probe(Connection("x:1"), lambda: now[0])
    three, four = {1, 2, 3}, {1, 2, 3, 4}
    asked = []
    for alive, at_s in ((three, 0.0), (three, 1.0), (four, 2.0), (three, 3.0)):
        now[0] = at_s
        asked.append(probe._idle(alive))
    now[0] = 2.0 + IDLE_AGE_S
    assert [*asked, probe._idle(three)] == [three, set(), four, set(), three]


def test_a_broker_that_is_silent_for_a_moment_keeps_its_disks() -> None:
    state = cluster(topic("orders", [[1], [2]]))
    probe = Probe(Connection("x:1"))
    probe._remember(state, {b: look(state, broker=b) for b in (1, 2)})
    probe._remember(state, {1: look(state)})
    assert sorted(probe.directories) == [1, 2]
    probe._remember(cluster(brokers=(1, 3)), {})
    assert sorted(probe.directories) == [1]


def test_partitions_being_moved_are_marked() -> None:
    state = cluster(topic("orders", [[1], [1]]), moving=[("orders", 1)])
    assert Probe(Connection("x:1"))._flags(state).tolist() == [0, MOVING]


def test_a_topic_created_since_the_last_sample_is_marked_once() -> None:
    again = {**topic("orders", [[1]]), "topic_id": "another"}
    probe = Probe(Connection("x:1"))
    old, new = topic("orders", [[1]]), topic("added", [[1]])
    seen = [
        probe._flags(cluster(*topics)).tolist()
        for topics in ((old,), (new, old), (new, again), (new, again))
    ]
    assert seen == [[0], [NEW, 0], [0, NEW], [0, 0]]
