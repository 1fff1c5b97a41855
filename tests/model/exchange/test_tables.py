"""Tables of loads and brokers, and the cluster made from all files."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError
from model.exchange.offline_snapshot import CLUSTER_ID, ClusterFiles, read_cluster
from model.exchange.tables import read_brokers, read_loads
from model.goals.goals import Goals
from model.ids import NO_BROKER, BrokerId, PartitionId, TopicName
from model.plan.proposal import Proposal
from model.rules import violations_of
from model.snapshot.file import read_snapshot, write_snapshot
from model.snapshot.snapshot import Broker, BrokerState, Resource, Snapshot, StorageKind
from tests.model.exchange.test_describe import KAFKA_3, KAFKA_4, MOVING

LOADS = (
    "topic,partition,net_out,net_in,disk,size_bytes\n"
    "orders,0,2e6,1000000,5000,9000\n"
    "orders, 1,,0.5,,\n"
)
ORDERS_0 = PartitionId(TopicName("orders"), 0)


def cluster(folder: Path, text: str = KAFKA_4, **files: str) -> Snapshot:
    """A description and other files, given by their content."""
    (folder / "d.txt").write_text(text)
    for kind, content in files.items():
        (folder / f"{kind}.csv").write_text(content)
    return read_cluster(
        ClusterFiles(
            describe=folder / "d.txt",
            loads=folder / "loads.csv" if "loads" in files else None,
            brokers=folder / "brokers.csv" if "brokers" in files else None,
        )
    )


def refused(folder: Path, message: str, **files: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cluster(folder, **files)


def test_loads_are_columns_and_an_empty_cell_is_unknown(tmp_path: Path) -> None:
    """In the order of the resources, whatever the order of the columns."""
    result = cluster(tmp_path, loads=LOADS)
    assert result.header.resources == (Resource.NET_IN, Resource.NET_OUT, Resource.DISK)
    loads = result.partitions.loads.tolist()
    assert loads[0] == [1e6, 2e6, 5000.0]
    assert loads[1][0] == 0.5
    assert all(map(math.isnan, [*loads[1][1:], *loads[2]]))
    assert result.partitions.measured.tolist()[1] == [True, False, False]


def test_sizes_are_given_or_taken_from_the_disk_load(tmp_path: Path) -> None:
    result = cluster(tmp_path, loads=LOADS).partitions
    assert result.size_bytes.tolist() == [9000, -1, -1]
    assert result.local_bytes.tolist() == [5000, -1, -1]


def test_without_loads_only_the_placement_is_known(tmp_path: Path) -> None:
    result = cluster(tmp_path)
    assert result.header.resources == ()
    assert result.partitions.loads.shape == (3, 0)
    assert result.replicas(1) == (2, 3)
    assert result.header.cluster_id == CLUSTER_ID


def test_brokers_are_those_in_the_description(tmp_path: Path) -> None:
    states = {b.id: b.state for b in cluster(tmp_path).header.brokers}
    dead = [b for b, state in states.items() if state is BrokerState.DEAD]
    assert (list(states), dead) == ([1, 2, 3, 4, 5], [4, 5])


def test_a_table_of_brokers_gives_racks_states_and_empty_brokers(tmp_path: Path) -> None:
    table = "id,rack,state\n6,,new\n1,a,\n2,b,draining\n3,c,alive\n4,a,dead\n5,,dead\n"
    result = cluster(tmp_path, brokers=table).header.brokers
    assert result[0] == Broker(id=BrokerId(1), rack="a")
    assert result[1].state is BrokerState.DRAINING
    assert (result[5].id, result[5].rack, result[5].state) == (6, None, BrokerState.NEW)


def test_brokers_may_be_given_in_json(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    path.write_text('[{"id": 2, "rack": "b"}, {"id": 1, "capacity": {"disk": 5}}]')
    result = read_brokers(path)
    assert [b.id for b in result] == [1, 2]
    assert result[0].capacity == {Resource.DISK: 5.0}


def test_the_tier_is_recognised_and_another_storage_can_be_given(tmp_path: Path) -> None:
    assert cluster(tmp_path, KAFKA_3).header.topics[0].storage is StorageKind.TIERED
    files = ClusterFiles(describe=tmp_path / "d.txt", storage=StorageKind.SHARED)
    assert read_cluster(files).header.topics[0].storage is StorageKind.SHARED


def test_kafkas_own_topics_are_internal(tmp_path: Path) -> None:
    text = KAFKA_4.replace("orders", "__consumer_offsets")
    assert cluster(tmp_path, text).header.topics[0].internal


def test_a_partition_under_reassignment_is_in_cooldown(tmp_path: Path) -> None:
    """It counts as moved, and none of its moves respects the cooldown."""
    result = cluster(tmp_path, MOVING.replace("Isr: 1,2", "Isr: 1,2,3"))
    assert result.replicas(0) == (3, 2)
    (recent,) = result.header.recent_moves
    assert (recent.left, recent.at_ms) == ((1,), result.header.taken_at_ms)


def test_equal_files_give_equal_snapshots(tmp_path: Path) -> None:
    """No clock is read, and the snapshot reads back from its own file."""
    first = cluster(tmp_path, loads=LOADS)
    write_snapshot(tmp_path / "a.json", first)
    write_snapshot(tmp_path / "b.json", cluster(tmp_path, loads=LOADS))
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert read_snapshot(tmp_path / "a.json").fingerprint == first.fingerprint


def test_a_load_of_another_cluster_is_named(tmp_path: Path) -> None:
    message = r"loads\.csv, line 4: orders-7 is not in .*d\.txt"
    refused(tmp_path, message, loads=LOADS + "orders,7,,,,\n")


def test_a_broker_that_is_not_listed_is_named(tmp_path: Path) -> None:
    message = r"d\.txt, line 3: orders-1 lies on broker 3, which is not in .*brokers\.csv"
    refused(tmp_path, message, brokers="id\n1\n2\n4\n5\n")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "is empty; its first line names the columns"),
        ("topic,net_in\n", "line 1: the column 'partition' is missing; add it"),
        ("topic,partition,netin\n", "line 1: unknown column 'netin'; did you mean"),
        ("topic,partition,topic\n", "line 1: the column 'topic' is listed twice"),
        ("topic;partition\n", "line 1: columns must be separated by commas"),
        ("topic,partition,disk\nt,0\n", "line 2: 2 cells under 3 columns"),
        ("topic,partition\nt,0\n\nt,0\n", "line 4: t-0 is already in line 2"),
        ("topic,partition\nt,-1\n", "line 2: partition is '-1'; give a whole number"),
        ("topic,partition,size_bytes\nt,0," + "9" * 19, "line 2: size_bytes is '9+'; give at most"),
        ("topic,partition\nt,1_0\n", "line 2: partition is '1_0'"),
        ("topic,partition,disk\nt,0,nan\n", "line 2: disk is 'nan'; give a number"),
        ("topic,partition,disk\nt,0,-3\n", "line 2: disk is '-3'; give a number"),
        ("topic,partition,disk\nt,0,x\n", "line 2: disk is 'x'; give a number"),
        ("topic,partition,disk\nt,0,inf\n", r"line 2: disk is inf, more than 1e\+18"),
        ("topic,partition,size_bytes\nt,0,1.5\n", "line 2: size_bytes is '1.5'"),
        ("topic,partition\nt," + "9" * 5000, "line 2: partition is"),
        ('topic,partition\n"' + "t" * 200_000 + '",0\n', "this is not valid CSV"),
    ],
)
def test_a_bad_cell_is_named_with_its_line(tmp_path: Path, table: str, message: str) -> None:
    (tmp_path / "l.csv").write_text(table)
    with pytest.raises(ConfigError, match=message):
        read_loads(tmp_path / "l.csv")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("b.csv", "id,state\n1,ded\n", "line 2: unknown state 'ded'; did you mean"),
        ("b.csv", "id\n1\n1\n", "line 3: broker 1 is already in line 2"),
        ("b.csv", "id\nx\n", "line 2: id is 'x'; give a whole number"),
        ("b.json", "[", "line 1: this is not valid JSON"),
        ("b.json", '[{"id": 1}, {"id": 1}]', "broker 1 is listed twice"),
        ("b.json", '[{"id": 1, "capacity": {"disk": 0}}]', "0.capacity.disk: Input"),
    ],
)
def test_a_bad_broker_is_named(tmp_path: Path, name: str, content: str, message: str) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match=message):
        read_brokers(tmp_path / name)


def test_a_snapshot_from_files_violates_no_rule(tmp_path: Path) -> None:
    """Only dead brokers with stranded partitions are no violation."""
    proposal = Proposal(cluster(tmp_path, loads=LOADS), Goals(), ())
    assert [v.words for v in violations_of(proposal)] == []
    assert proposal.snapshot.partitions.leader[2] == NO_BROKER


amounts = st.floats(0, 1e15, allow_nan=False) | st.none()


@settings(deadline=None)
@given(rows=st.lists(st.tuples(amounts, amounts), max_size=8))
def test_every_written_load_reads_back(
    tmp_path_factory: pytest.TempPathFactory, rows: list
) -> None:
    path = tmp_path_factory.mktemp("l") / "l.csv"
    lines = [
        f"t,{i},{'' if a is None else repr(a)},{'' if b is None else repr(b)}"
        for i, (a, b) in enumerate(rows)
    ]
    path.write_text("\n".join(["topic,partition,net_in,cpu", *lines]))
    result = read_loads(path).rows.values()
    loads = [(r.loads.get(Resource.NET_IN), r.loads.get(Resource.CPU)) for r in result]
    # Files have percent of one core.
    assert loads == [(a, None if b is None else b / 100) for a, b in rows]
