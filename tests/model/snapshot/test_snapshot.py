"""Snapshots: validation, look-ups, files and fingerprints."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError, InvalidCluster
from model.files import read_document, write_document
from model.goals.goals import Goals
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.names import Names
from model.snapshot.file import KIND, read_snapshot, write_snapshot
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    LogDir,
    Partitions,
    RecentMove,
    Resource,
    Snapshot,
    Source,
    Topic,
)
from tests.support.model.clusters import TOPIC, brokers, ids, snapshot, wide

STATE = snapshot(brokers(3, "abc"), [(1, 2), (2, 3), (3, 1)])


def replace(state: Snapshot, **columns: object) -> Snapshot:
    partitions: Partitions = dataclasses.replace(state.partitions, **columns)  # type: ignore[arg-type]  # any column
    return Snapshot(state.header, partitions)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"leader": np.array([1, 2])}, "the column leader has the shape"),
        ({"loads": np.zeros((3, 1))}, "the column loads has the shape"),
        ({"topic": np.array([0, 0, 1])}, "a topic that is not listed"),
        ({"topic": np.array([0, 0, -1])}, "a topic that is not listed"),
        ({"partition": np.array([0, 2, 1])}, "not sorted"),
        ({"partition": np.array([0, 1, 1])}, "twice"),
        ({"loads": np.array([[1, 1], [1, -1], [1, 1.0]])}, "orders-1 has a negative"),
        ({"loads": np.array([[np.inf, 1], [1, 1], [1, 1.0]])}, "orders-0 has a neg"),
        ({"loads": np.array([[1, 1], [1, 1], [1, 1e31]])}, "orders-2 has a load over"),
        ({"replica_start": np.array([0, 4, 2, 6])}, "must rise from 0"),
        ({"replica_start": np.array([1, 2, 4, 6])}, "must rise from 0"),
        ({"replica_start": np.array([0, 2, 4, 5])}, "does not match the length"),
        ({"replica_broker": np.array([1, 2, 2, 9, 3, 1])}, r"unknown brokers \[9\]"),
        ({"replica_broker": np.array([1, 1, 2, 3, 3, 1])}, "orders-0 has the replicas"),
        ({"replica_start": np.array([0, 0, 4, 6])}, "orders-0 has the replicas"),
    ],
)
def test_a_contradiction_is_named(columns: dict, message: str) -> None:
    with pytest.raises(InvalidCluster, match=message):
        replace(STATE, **columns)


@pytest.mark.parametrize("order", [(2, 1, 3), (1, 1, 2)])
def test_brokers_are_listed_once_by_id(order: tuple[int, ...]) -> None:
    listed = tuple(Broker(id=b) for b in ids(*order))
    header = STATE.header.model_copy(update={"brokers": listed})
    with pytest.raises(InvalidCluster, match="sorted by id, each listed once"):
        Snapshot(header, STATE.partitions)


def test_rows_are_found_by_partition() -> None:
    assert STATE.ids[1] == PartitionId(TOPIC, 1)
    assert str(STATE.ids[1]) == "orders-1"
    assert STATE.row_of[PartitionId(TOPIC, 2)] == 2
    assert STATE.replicas(2) == (3, 1)
    assert STATE.row(2).leader == 3
    assert [r.id for r in STATE.rows()] == list(STATE.ids)
    assert STATE.broker[BrokerId(2)].rack == "b"
    assert len(STATE) == 3


def test_a_partition_is_found_in_its_row() -> None:
    """Without an index of all; a missing one is not found."""
    state = wide(brokers(1), [(1,)] * 5, {}, topics=[0, 0, 1, 3, 3])
    columns = dataclasses.replace(state.partitions, partition=np.array([0, 7, 2, 0, 4], np.int64))
    state = Snapshot(state.header, columns)
    assert [state.find(pid) for pid in state.ids] == [0, 1, 2, 3, 4]
    missing = [("t0", 1), ("t0", 8), ("t1", 0), ("t2", 0), ("t3", 5), ("x", 0)]
    assert not any(state.find(PartitionId(TopicName(t), p)) for t, p in missing)


def test_log_directories_go_by_path() -> None:
    dirs = (LogDir(path="/a"), LogDir(path="/b"))
    members = [b.model_copy(update={"log_dirs": dirs}) for b in brokers(2)]
    state = wide(members, [(1, 2)], {}, dirs=[[1, -1]])
    assert [*state.log_dirs(0).values()] == ["/b", None]
    assert {*STATE.log_dirs(0).values()} == {None}


def test_known_loads_count_as_measured_by_default() -> None:
    state = snapshot(brokers(1), [(1,)], [(1.0, float("nan"))])
    assert state.partitions.measured.tolist() == [[True, False]]


@pytest.mark.parametrize("load", [-1.0, np.inf, 1e31])
def test_loads_of_slots_are_checked_too(load: float) -> None:
    slots = {"night": {Resource.NET_IN: [load]}}
    with pytest.raises(InvalidCluster, match="slot_loads holds a load"):
        wide(brokers(1), [(1,)], {Resource.NET_IN: [1]}, slots=slots)


def test_slots_are_few_and_have_distinct_names() -> None:
    one = {Resource.NET_IN: [1.0]}
    with pytest.raises(InvalidCluster, match="at most 7, each once"):
        wide(brokers(1), [(1,)], one, slots=dict.fromkeys("abcdefgh", one))


def test_an_empty_cluster_gives_a_snapshot(tmp_path: Path) -> None:
    state = snapshot((), [])
    write_snapshot(tmp_path / "s.json", state)
    assert len(read_snapshot(tmp_path / "s.json")) == 0


def test_the_fingerprint_depends_only_on_the_placement() -> None:
    """Loads and dead brokers do not count; replicas, their order and leaders do."""
    places = [(1, 2), (2, 3), (3, 1)]
    dead = brokers(4, "abca", {4: BrokerState.DEAD})
    same = [snapshot(brokers(3), places, [(5.0, 6.0)] * 3), snapshot(dead, places)]
    other = [
        snapshot(brokers(3), [(2, 1), (2, 3), (3, 1)]),
        snapshot(brokers(3), places, leaders=[2, 2, 3]),
        snapshot(brokers(4), places),
    ]
    assert {s.fingerprint for s in same} == {STATE.fingerprint}
    assert STATE.fingerprint not in {s.fingerprint for s in other}


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    count = draw(st.integers(1, 5))
    members = ids(*range(1, count + 1))
    rf = draw(st.integers(1, count))
    places = draw(st.lists(st.permutations(members).map(lambda p: tuple(p[:rf])), max_size=6))
    load = st.floats(0, 1e12) | st.just(float("nan"))
    size = st.integers(-1, 2**60)
    n = len(places)
    state = snapshot(
        brokers(count),
        places,
        draw(st.lists(st.tuples(load, load), min_size=n, max_size=n)),
        leaders=[draw(st.sampled_from([*p, NO_BROKER])) for p in places],
        local_bytes=draw(st.lists(size, min_size=n, max_size=n)),
        size_bytes=draw(st.lists(size, min_size=n, max_size=n)),
        recent=[
            RecentMove(
                topic=TOPIC,
                partition=0,
                left=members[:1],
                leader_left=draw(st.sampled_from([None, *members])),
                at_ms=at,
            )
            for at in draw(st.lists(st.integers(0, 2**47), max_size=2))
        ],
    )
    capacity = draw(st.dictionaries(st.sampled_from(Resource), st.floats(1, 1e12)))
    # Files have percent of one core, to 15 digits.
    capacity = {r: round(c, 2) if r is Resource.CPU else c for r, c in capacity.items()}
    first = Broker(id=members[0], rack=draw(st.none() | st.text()), capacity=capacity)
    source = Source(name="probe", newest_sample_ms=1, window_s=1.5, samples=9, measured_share=0.5)
    dirs = (LogDir(path="/a", capacity_bytes=1e9), LogDir(path="/b", cordoned=True))
    listed = (first, *state.header.brokers[1:])
    slots = draw(st.sampled_from([(), ("monday 9h",), ("a", "b")]))
    header = state.header.model_copy(
        update={
            "brokers": tuple(b.model_copy(update={"log_dirs": dirs}) for b in listed),
            "sources": (source,),
            "slots": slots,
        }
    )
    columns = state.partitions
    if slots:
        cube = draw(st.lists(load, min_size=n * len(slots) * 2, max_size=n * len(slots) * 2))
        shaped = np.array(cube, np.float64).reshape(n, len(slots), 2)
        columns = dataclasses.replace(columns, slot_loads=shaped)
    if draw(st.booleans()):
        where = st.integers(-1, 1)
        directories = draw(st.lists(where, min_size=n * rf, max_size=n * rf))
        columns = dataclasses.replace(columns, replica_dir=np.array(directories, np.int64))
    return Snapshot(header, columns)


@settings(deadline=None)
@given(state=snapshots(), suffix=st.sampled_from([".json", ".json.gz"]))
def test_a_snapshot_reads_back(
    tmp_path_factory: pytest.TempPathFactory, state: Snapshot, suffix: str
) -> None:
    """The same header and columns, the loads to nine digits, and the same bytes."""
    path = tmp_path_factory.mktemp("s") / f"s{suffix}"
    write_snapshot(path, state)
    back = read_snapshot(path)
    assert back.header == state.header
    assert back.fingerprint == state.fingerprint
    for field in dataclasses.fields(Partitions):
        ours, theirs = (getattr(s.partitions, field.name) for s in (state, back))
        if ours is None:
            assert theirs is None
        else:
            np.testing.assert_allclose(theirs, ours, rtol=1e-8)
    first = path.read_bytes()
    write_snapshot(path, back)
    assert path.read_bytes() == first


@pytest.mark.parametrize(("leader", "version"), [(None, "1.4"), (BrokerId(2), "1.6")])
def test_only_past_leaders_need_the_newest_version(
    leader: BrokerId | None, version: str, tmp_path: Path
) -> None:
    """Older snapshots keep their bytes."""
    made = RecentMove(topic=TOPIC, partition=0, left=(), leader_left=leader, at_ms=1)
    path = tmp_path / "s.json"
    write_snapshot(path, snapshot(brokers(3), [(1, 2)], recent=[made]))
    document = json.loads(path.read_text())
    assert document["schema_version"] == version
    assert ("leader_left" in document["header"]["recent_moves"][0]) == (leader is not None)
    assert read_snapshot(path).header.recent_moves == (made,)


def test_a_file_of_the_first_version_is_read(tmp_path: Path) -> None:
    """Without slots and log directories."""
    path = tmp_path / "s.json"
    write_snapshot(path, STATE)
    document = read_document(path, KIND, major=1) | {"schema_version": "1.0"}
    del document["partitions"]["slot_loads"], document["partitions"]["replica_dirs"]
    write_document(path, document)
    back = read_snapshot(path)
    assert back.fingerprint == STATE.fingerprint
    assert back.partitions.slot_loads is None
    assert back.partitions.replica_dir is None


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("loads", [[1.0, 1.0], [1.0], [1.0, 1.0]], "the column loads does not have"),
        ("measured", [[True]], "the column measured does not have"),
        ("slot_loads", [[[1.0]], [[1.0]], [[]]], "the column slot_loads does not have"),
        ("replica_dirs", [[0, 0], [0], [0, 0, 0]], "does not fit the replicas"),
        ("replica_dirs", [[0, 0], [0, 0], [0, 0]], "which lists 0"),
        ("size_bytes", [1, 2, 10**30], r"size_bytes\.2 is out of range"),
        ("leader", [1, 2, 10**30], r"leader\.2 is out of range"),
    ],
)
def test_a_column_that_does_not_fit_is_named(
    tmp_path: Path, column: str, value: list, message: str
) -> None:
    path = tmp_path / "s.json"
    write_snapshot(path, STATE)
    document = read_document(path, KIND, major=1)
    if column == "slot_loads" and value[0]:
        document["header"]["slots"] = ["a"]
    document["partitions"][column] = value
    write_document(path, document)
    with pytest.raises((InvalidCluster, ConfigError), match=message):
        read_snapshot(path)


def test_a_newer_snapshot_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    write_snapshot(path, STATE)
    newer = read_document(path, KIND, major=1) | {"schema_version": "2.0"}
    write_document(path, newer)
    with pytest.raises(ConfigError, match="use a newer plimsoll"):
        read_snapshot(path)


def test_topic_names_have_their_own_type() -> None:
    assert Topic(name=TopicName("t"), topic_id="x").internal is False


@pytest.mark.parametrize(
    ("patterns", "topic", "excluded"),
    [
        ((), "orders", False),
        (("orders",), "orders", True),
        (("order",), "orders", False),
        (("ord.*", "x"), "orders", True),
    ],
)
def test_exclusions_match_whole_names(
    patterns: tuple[str, ...], topic: str, excluded: bool
) -> None:
    assert Goals(excluded_topics=Names(regex=patterns)).excludes(topic) is excluded


def test_a_bare_list_of_exclusions_contains_expressions() -> None:
    goals = Goals.model_validate_json('{"excluded_topics": ["ord.*"]}')
    assert goals.excluded_topics == Names(regex=("ord.*",))


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(ValueError, match=r"'\(' is not a valid regular expression"):
        Goals(excluded_topics=Names(regex=("(",)))


def test_a_leader_without_a_replica_is_refused() -> None:
    with pytest.raises(InvalidCluster, match="led by broker 2, which holds no replica"):
        snapshot(brokers(2), [(1,)], leaders=[2])
