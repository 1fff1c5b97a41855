"""Samples out of brokers' answers."""

from collections.abc import Mapping, Sequence
from typing import Any

from clients.connection import Connection
from collector.brokers.fetch import BrokerProbe, Look, Told
from collector.brokers.partition_index import Placement
from collector.brokers.response_layout import Answer
from collector.metadata import ClusterState
from collector.probe import IDLE_AGE_S, Probe, build_samples
from collector.samples import MOVING, NEW
from model.snapshot.snapshot import StorageKind
from tests.support.collector import admin_responses as answers
from tests.support.collector.admin_responses import Place
from tests.support.collector.sample_rows import START_MS, cluster, topic

BOTH = {("orders", 0): 100, ("orders", 1): 50}
FIRST = ("orders", 0)


def told(
    *,
    sizes: Mapping[Place, int] | None = None,
    earliest: Mapping[Place, int] | None = None,
    commits: Sequence[Answer] | None = None,
    **other: Any,
) -> Told:
    """Of two partitions; only of the first, how large it is and where it begins."""
    kinds = [answers.offsets(BOTH), answers.offsets({FIRST: 30})]
    if earliest is not None:
        kinds.append(answers.offsets(earliest))
    folder = {"path": "/a", "sizes": {FIRST: 7000} if sizes is None else sizes, **other}
    return Told(
        time_ms=START_MS,
        log_dirs=answers.log_dirs([folder]),
        offsets=kinds,
        commits=commits,
    )


def look(state: ClusterState, found: Told | None = None, broker: int = 1) -> Look:
    asked = BrokerProbe(broker, lambda: 0.0)
    if found is not None and found.commits is not None:
        asked.expect(len(found.commits))
    return asked.read(told() if found is None else found, Placement(state))


def samples(state: ClusterState, looks: Mapping[int, Look]) -> list[dict[str, Any]]:
    commits = [c for found in looks.values() for c in found.commits or ()]
    known = all(found.commits is not None for found in looks.values())
    flags = Probe(Connection("x:1"))._flags(state)
    table = build_samples(Placement(state), looks, commits if known else None, flags)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def test_a_sample_holds_what_the_leader_said() -> None:
    state = cluster(topic("orders", [[1]]))
    groups = answers.commits({"g": {FIRST: 100}, "h": {FIRST: 90}, "new": {FIRST: -1}})
    (row,) = samples(state, {1: look(state, told(commits=[groups]))})
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


def test_all_groups_that_have_committed_nothing_are_none() -> None:
    state = cluster(topic("orders", [[1]]))
    (row,) = samples(state, {1: look(state, told(commits=[]))})
    assert (row["groups"], row["group_offsets"]) == (0, 0)


def test_a_tiered_partition_does_not_take_its_local_size_for_the_whole() -> None:
    state = cluster(topic("orders", [[1]]), storage=StorageKind.TIERED)
    (row,) = samples(state, {1: look(state)})
    assert (row["earliest"], row["total_bytes"]) == (-1, -1)
    (row,) = samples(state, {1: look(state, told(earliest={FIRST: 5}))})
    assert row["earliest"] == 5


def test_partitions_of_a_silent_broker_are_omitted() -> None:
    state = cluster(
        topic("orders", [[1], [2], [3]], leaders=[1, 2, -1]), brokers=(1, 2, 3)
    )
    result = samples(state, {1: look(state)})
    assert [row["partition"] for row in result] == [0]


def test_answers_of_a_broker_that_does_not_lead_a_partition_are_ignored() -> None:
    """It led when it was asked, and its answer came late."""
    state = cluster(topic("orders", [[2, 1], [1]]))
    result = samples(state, {1: look(state)})
    assert [row["partition"] for row in result] == [1]


def test_a_copy_into_another_directory_is_no_size() -> None:
    state = cluster(topic("orders", [[1]]))
    copied = told(future=[FIRST])
    assert samples(state, {1: look(state, copied)})[0]["local_bytes"] == -1


def test_topics_whose_names_differ_in_dots_and_underscores_are_kept_apart() -> None:
    state = cluster(topic("a.b", [[1]]), topic("a_b", [[1]]))
    found = Told(
        time_ms=START_MS,
        log_dirs=answers.log_dirs(
            [{"path": "/a", "sizes": {("a.b", 0): 1, ("a_b", 0): 2}}]
        ),
        offsets=[answers.offsets({("a_b", 0): 20, ("a.b", 0): 10})],
    )
    rows = samples(state, {1: look(state, found)})
    kept = [(r["topic"], r["latest"], r["local_bytes"]) for r in rows]
    assert kept == [("a.b", 10, 1), ("a_b", 20, 2)]


def test_topics_without_partitions_and_unknown_ones_are_passed_over() -> None:
    state = cluster(topic("none", []), topic("orders", [[1]]))
    gone = answers.offsets({("gone", 0): 5, **BOTH})
    found = Told(
        time_ms=START_MS,
        log_dirs=answers.log_dirs([{"path": "/a", "sizes": {("gone", 0): 5}}]),
        offsets=[gone],
    )
    (row,) = samples(state, {1: look(state, found)})
    assert (row["topic"], row["latest"]) == ("orders", 100)


def test_a_cluster_without_partitions_gives_an_empty_sample() -> None:
    state = cluster()
    assert samples(state, {}) == []


def test_the_next_answer_is_read_like_the_first() -> None:
    state = cluster(topic("orders", [[1]]))
    placement, asked = Placement(state), BrokerProbe(1, lambda: 0.0)
    for latest, size in ((100, 7000), (200, 9000)):
        found = Told(
            time_ms=START_MS,
            log_dirs=answers.log_dirs([{"path": "/a", "sizes": {FIRST: size}}]),
            offsets=[answers.offsets({FIRST: latest})],
        )
        read = asked.read(found, placement)
        assert read.latest.values.tolist() == [latest]
        assert read.sizes.values.tolist() == [size]


def test_another_placement_is_read_by_its_own_rows() -> None:
    before = cluster(topic("orders", [[1]]))
    after = cluster(topic("added", [[1]]), topic("orders", [[1]]))
    asked = BrokerProbe(1, lambda: 0.0)
    rows = [
        asked.read(told(), Placement(state)).latest.rows.tolist()
        for state in (before, after)
    ]
    assert rows == [[0], [1]]


def test_groups_that_went_to_another_coordinator_are_not_known() -> None:
    state = cluster(topic("orders", [[1]]))
    moved = answers.commits({"g": {}}, {"g": 16})
    assert look(state, told(commits=[moved])).commits is None


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
