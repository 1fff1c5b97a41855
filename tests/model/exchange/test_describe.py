"""The output of `kafka-topics --describe` becomes partitions or one clear error."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.errors import ConfigError
from model.exchange.describe import live_brokers, read_description
from model.ids import NO_BROKER
from model.snapshot.snapshot import StorageKind

RECORDED = Path(__file__).parent / "recorded" / "describe-4.3.1.txt"
"""Output of Kafka 4.3.1 about brokers 1, 2 and 3 after 3 was killed."""

KAFKA_4 = (
    "Topic: orders\tTopicId: sE05QnUPQQ-FLs5ekB8NLQ\tPartitionCount: 3\t"
    "ReplicationFactor: 2\tConfigs: min.insync.replicas=1,segment.bytes=1073741824\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: \t"
    "LastKnownElr: \n"
    "\tTopic: orders\tPartition: 1\tLeader: 3\tReplicas: 2,3\tIsr: 3\tElr: 2\t"
    "LastKnownElr: \n"
    "\tTopic: orders\tPartition: 2\tLeader: none\tReplicas: 4,5\tIsr: \tElr: 4\t"
    "LastKnownElr: 5\n"
)
KAFKA_3 = (
    "Topic: orders\tTopicId: 2q-H2y2PRoyGktIr6q4Lrg\tPartitionCount: 1\t"
    "ReplicationFactor: 2\tConfigs: remote.storage.enable=true\n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 1,2\tIsr: 1,2\tElr: N/A\t"
    "LastKnownElr: N/A\n"
)
KAFKA_1 = (
    "Topic:orders\tPartitionCount:1\tReplicationFactor:1\tConfigs:\n"
    "\tTopic: orders\tPartition: 0\tLeader: -1\tReplicas: 1\tIsr: 1\n"
)
MOVING = (
    "Topic: orders\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: \n"
    "\tTopic: orders\tPartition: 0\tLeader: 1\tReplicas: 3,1,2\tIsr: 1,2\t"
    "Adding Replicas: 3\tRemoving Replicas: 1\tElr: \tLastKnownElr: \n"
)


def test_output_of_kafka_4_is_read(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(KAFKA_4)
    result = read_description(tmp_path / "d.txt")
    assert [(t.name, t.topic_id, t.storage) for t in result.topics] == [
        ("orders", "b04d3942-750f-410f-852e-ce5e901f0d2d", StorageKind.REPLICATED)
    ]
    assert [(p.id.partition, p.replicas, p.leader) for p in result.partitions] == [
        (0, (1, 2), 1),
        (1, (2, 3), 3),
        (2, (4, 5), NO_BROKER),
    ]


def test_output_of_a_real_cluster_is_read() -> None:
    result = read_description(RECORDED)
    assert [(t.name, len(t.topic_id)) for t in result.topics] == [("audit.log", 36), ("orders", 36)]
    assert len(result.partitions) == 8
    assert result.partitions[6].replicas == (2, 3)
    assert live_brokers(result) == {1, 2}


def test_a_broker_in_sync_with_no_leader_seems_gone(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(KAFKA_4)
    assert live_brokers(read_description(tmp_path / "d.txt")) == {1, 2, 3}


def test_kafka_3_shows_that_a_topic_is_tiered(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(KAFKA_3)
    assert read_description(tmp_path / "d.txt").topics[0].storage is StorageKind.TIERED


PLACED = '{"version":1,"replicas":[{"count":2,"constraints":{"rack":"a"}}],"observers":[]}'


@pytest.mark.parametrize(
    ("configs", "placement"),
    [
        (f"confluent.placement.constraints={PLACED}", PLACED),
        (
            "min.insync.replicas=1,confluent.placement.constraints="
            f"{PLACED},remote.storage.enable=true",
            PLACED,
        ),
        ("confluent.placement.constraints=,remote.storage.enable=true", ""),
        ('confluent.placement.constraints={"a":1,b,segment.bytes=1', '{"a":1,b'),
        ("confluent.placement.constraints=" + "[" * 9999, "[" * 9999),
        (f"confluent.placement.constraints={PLACED}x,a.b=1", f"{PLACED}x"),
        ("min.insync.replicas=1", ""),
    ],
)
def test_placement_constraints_are_json_among_other_configs(
    tmp_path: Path, configs: str, placement: str
) -> None:
    text = KAFKA_3.replace("remote.storage.enable=true", configs)
    (tmp_path / "d.txt").write_text(text)
    (topic,) = read_description(tmp_path / "d.txt").topics
    assert topic.placement == placement
    tiered = topic.storage is StorageKind.TIERED
    assert tiered is ("remote.storage.enable=true" in configs)


def test_a_disabled_tier_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(KAFKA_3.replace("=true", "=false"))
    assert read_description(tmp_path / "d.txt").topics[0].storage is StorageKind.REPLICATED


def test_the_oldest_form_has_no_topic_ids(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text(KAFKA_1)
    result = read_description(tmp_path / "d.txt")
    assert result.topics[0].topic_id == ""
    assert result.partitions[0].leader == NO_BROKER


def test_blanks_may_replace_tabs(tmp_path: Path) -> None:
    """Also with Windows' line ends and a byte order mark."""
    (tmp_path / "d.txt").write_text(KAFKA_4)
    plain = read_description(tmp_path / "d.txt").partitions
    text = "\ufeff" + KAFKA_4.expandtabs().replace("\n", "\r\n")
    (tmp_path / "d.txt").write_bytes(text.encode())
    assert read_description(tmp_path / "d.txt").partitions == plain


def test_a_reassignment_in_progress_counts_as_done(tmp_path: Path) -> None:
    """A replica being removed does not count, and does not lead."""
    (tmp_path / "d.txt").write_text(MOVING)
    (result,) = read_description(tmp_path / "d.txt").partitions
    assert (result.replicas, result.leader) == ((3, 2), 3)
    assert result.removing == (1,)
    assert result.reassigned


def test_a_reassignment_that_only_adds_replicas_is_recognised(tmp_path: Path) -> None:
    text = MOVING.replace("Removing Replicas: 1", "Removing Replicas: ")
    (tmp_path / "d.txt").write_text(text)
    (result,) = read_description(tmp_path / "d.txt").partitions
    assert (result.replicas, result.leader, result.reassigned) == ((3, 1, 2), 1, True)


def test_topics_and_partitions_are_sorted(tmp_path: Path) -> None:
    lines = KAFKA_4.splitlines(keepends=True)
    text = "".join([lines[3], lines[1], lines[0], lines[2]])
    (tmp_path / "d.txt").write_text(text + KAFKA_1.replace("orders", "audit"))
    result = read_description(tmp_path / "d.txt")
    assert [t.name for t in result.topics] == ["audit", "orders"]
    assert [p.id for p in result.partitions] == sorted(p.id for p in result.partitions)


def test_an_empty_text_gives_an_empty_cluster(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_text("\n")
    result = read_description(tmp_path / "d.txt")
    assert (result.topics, result.partitions) == ((), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Error: no broker\n", r"line 1: 'Error: no broker' is not a line of kafka-top"),
        (KAFKA_4 + "x" * 99, r"line 5: 'x{40}\.\.\.' is not a line"),
        (KAFKA_4.replace("Count: 3", "Count: 4"), "line 1: topic orders has 4 part"),
        (KAFKA_4.partition("\n")[2], "line 1: topic orders has no line of its own"),
        (KAFKA_4 + KAFKA_4, "line 5: topic orders was described before"),
        (KAFKA_4 + KAFKA_4.splitlines()[1], "line 5: orders-0 is already in line 2"),
        (KAFKA_4.replace(": 2,3", ": 2,2"), "line 3: orders-1 has the replicas '2,2'"),
        (KAFKA_4.replace(": 2,3", ": "), "line 3: orders-1 has the replicas 'none'"),
        (KAFKA_4.replace("Leader: 3", "Leader: 9"), "line 3: orders-1 is led by brok"),
        (KAFKA_4.replace(": 2,3", ": 2," + "9" * 5000), "line 3: .* is not a line"),
        (KAFKA_4.replace("orders", "o" * 250), "line 1: .* is not a line"),
    ],
)
def test_lines_that_the_command_does_not_print_are_named(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "d.txt"
    path.write_text(text)
    with pytest.raises(ConfigError, match=f"{path}, {message}"):
        read_description(path)


def test_a_binary_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"d\.txt is not valid UTF-8"):
        read_description(tmp_path / "d.txt")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*d\.txt: No such file"):
        read_description(tmp_path / "d.txt")


FIELDS = (
    *("Topic: t", "Partition: 0", "Leader: 1", "Replicas: 1,2", "Isr: 1", "\t", " "),
    *("Leader: none", "Replicas: ,", "PartitionCount: 1", "ReplicationFactor: 1"),
    *("TopicId: x", "Configs: ", "Elr: ", "Removing Replicas: 1", "\n"),
)
texts = st.lists(st.sampled_from(FIELDS), max_size=40).map("".join) | st.text()


@settings(deadline=None)
@given(text=texts)
def test_any_text_is_read_or_rejected_with_a_reason(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.mktemp("d") / "d.txt"
    path.write_text(text, "utf-8", errors="surrogatepass")
    with contextlib.suppress(ConfigError):
        result = read_description(path)
        assert all(p.replicas for p in result.partitions)
