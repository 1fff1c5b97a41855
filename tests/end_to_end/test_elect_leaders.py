"""`plimsoll elect-leaders` as a user runs it, beside Kafka's own tool."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.client.responses import PartitionView
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, wait_until
from tests.support.executor.plan_builders import ids
from tests.support.kafka_tools import ELECT, stock_tool

CHANGE = ("--allow-changes", "--yes")
AWAY = BrokerId(3)


@pytest.fixture(scope="module")
def own_cluster() -> Iterator[LocalCluster]:
    """A cluster whose third broker may be stopped for a while."""
    with LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as cluster:
        yield cluster


@pytest.fixture
def topic() -> str:
    return f"elect-{uuid.uuid4().hex[:6]}"


def views(bootstrap: str, topic: str) -> dict[int, PartitionView]:
    """The topic's partitions, three at most, according to one broker's metadata."""
    name = TopicName(topic)
    with KafkaAdmin(bootstrap, 10.0) as admin:
        pids = [PartitionId(name, number) for number in range(3)]
        return {pid.partition: v for pid, v in admin.partitions(pids).items()}


def leaders(bootstrap: str, topic: str) -> list[int]:
    return [view.leader for _, view in sorted(views(bootstrap, topic).items())]


def are_leading(bootstrap: str, topic: str, brokers: list[int]) -> bool:
    try:
        return leaders(bootstrap, topic) == brokers
    except ClusterUnreachable:
        # The driver may query the broker that has just stopped.
        return False


def reassign(bootstrap: str, topic: str, lists: dict[int, list[int]]) -> None:
    with KafkaAdmin(bootstrap, 10.0) as admin:
        name = TopicName(topic)
        admin.reassign({PartitionId(name, p): ids(b) for p, b in lists.items()})


@pytest.fixture
def shell(local_cluster: LocalCluster, topic: str, tmp_path: Path) -> Shell:
    """Broker 1 leads three partitions; 2 and 3 are preferred for the first two."""
    bootstrap = local_cluster.bootstrap
    local_cluster.create_topic(topic, [[1, 2], [1, 3], [1, 2]])
    reassign(bootstrap, topic, {0: [2, 1], 1: [3, 1]})
    wait_until(lambda: views(bootstrap, topic)[1].replicas == ids([3, 1]))
    assert leaders(bootstrap, topic) == [1, 1, 1]
    return Shell(tmp_path, bootstrap)


@pytest.mark.kafka
def test_preferred_leaders_are_elected_only_with_consent(shell: Shell, topic: str) -> None:
    refused = shell.plimsoll("elect-leaders", "--topic", topic)
    assert refused.returncode == 5
    assert "add --allow-changes to elect" in refused.stderr
    process = shell.plimsoll("elect-leaders", "--topic", topic, "--dry-run")
    assert process.stdout.splitlines() == [
        f"ElectLeaders preferred {topic}-0: 2",
        f"ElectLeaders preferred {topic}-1: 3",
    ]
    unasked = shell.plimsoll("elect-leaders", "--topic", topic, "--allow-changes")
    assert unasked.returncode == 5
    assert "add --yes to hold these elections" in unasked.stderr
    assert leaders(shell.bootstrap, topic) == [1, 1, 1]

    command = shell.plimsoll("elect-leaders", "--topic", topic, *CHANGE)
    assert command.returncode == 0, command.stderr
    assert [line.split() for line in command.stdout.splitlines()[1:]] == [
        [f"{topic}-0", "1", "2", "elected"],
        [f"{topic}-1", "1", "3", "elected"],
    ]
    wait_until(lambda: are_leading(shell.bootstrap, topic, [2, 3, 1]))
    again = shell.plimsoll("elect-leaders", "--topic", topic, *CHANGE)
    assert again.returncode == 0
    message = "the preferred replica leads each of 3 partitions; nothing to elect"
    assert (again.stdout, again.stderr) == ("", f"plimsoll: {message}\n")


@pytest.mark.kafka
def test_kafkas_own_tool_accepts_the_election_file(shell: Shell, topic: str) -> None:
    written = shell.plimsoll("elect-leaders", "--topic", topic, "--out", "election.json")
    assert written.returncode == 0, written.stderr
    file = shell.folder / "election.json"
    rows = [{"topic": topic, "partition": number} for number in (0, 1)]
    assert json.loads(file.read_text()) == {"partitions": rows}
    assert leaders(shell.bootstrap, topic) == [1, 1, 1]
    election = ("--election-type", "preferred", "--path-to-json-file", file)
    output = stock_tool(ELECT, shell.bootstrap, *election)
    assert "Successfully completed leader election (PREFERRED)" in output
    wait_until(lambda: are_leading(shell.bootstrap, topic, [2, 3, 1]))


@pytest.mark.kafka
def test_only_the_partitions_of_a_file_are_elected(
    local_cluster: LocalCluster, shell: Shell, topic: str
) -> None:
    rows = [{"topic": topic, "partition": number} for number in (1, 2)]
    document = {"version": 1, "partitions": rows}
    (shell.folder / "e.json").write_text(json.dumps(document, indent=2))
    process = shell.plimsoll("elect-leaders", "--from", "e.json", *CHANGE, "-o", "json")
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout)
    assert answer["cluster_id"] == local_cluster.cluster_id
    assert answer["partitions_looked_at"] == 2
    assert answer["elections"] == [
        {"topic": topic, "partition": 1, "led_by": 1, "preferred": 3, "elected": True, "note": ""}
    ]
    wait_until(lambda: are_leading(shell.bootstrap, topic, [1, 3, 1]))


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ('{"topic":"TOPIC","partition":3}', "the cluster has no partition TOPIC-3"),
        ('{"topic":"gone","partition":0}', "the cluster has no partition gone-0"),
    ],
)
def test_a_partition_that_does_not_exist_is_named_and_none_is_elected(
    shell: Shell, topic: str, rows: str, message: str
) -> None:
    text = f'{{"partitions":[{{"topic":"{topic}","partition":0}},{rows}]}}'
    (shell.folder / "e.json").write_text(text.replace("TOPIC", topic))
    refused = shell.plimsoll("elect-leaders", "--from", "e.json", *CHANGE)
    assert refused.returncode == 2
    assert message.replace("TOPIC", topic) in refused.stderr
    assert leaders(shell.bootstrap, topic) == [1, 1, 1]


@pytest.mark.kafka
def test_a_topic_that_does_not_exist_is_named(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    local_cluster.create_topic(topic, [[1]])
    shell = Shell(tmp_path, local_cluster.bootstrap)
    refused = shell.plimsoll("elect-leaders", "--topic", f"{topic}x", *CHANGE)
    assert refused.returncode == 2
    assert f"no topic '{topic}x'; did you mean '{topic}'?" in refused.stderr


@pytest.mark.kafka
def test_a_returned_broker_leads_again_once_it_is_in_sync(
    own_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """Meanwhile a move to it hangs, and its election is skipped as well."""
    own_cluster.create_topic(topic, [[3, 1], [1, 2]])
    shell = Shell(tmp_path, own_cluster.bootstrap)
    own_cluster.kafka.kill_broker(AWAY)
    wait_until(lambda: are_leading(shell.bootstrap, topic, [1, 1]))
    reassign(shell.bootstrap, topic, {1: [2, 3]})
    away = shell.plimsoll("elect-leaders", "--topic", topic, *CHANGE)
    assert away.returncode == 0
    assert away.stderr.splitlines() == [
        f"plimsoll: skipped: {topic}-0: broker 3, the first of its replicas, is dead or fenced",
        f"plimsoll: skipped: {topic}-1: it is being moved to [2, 3]",
        "plimsoll: no other election can be held now",
    ]
    assert leaders(shell.bootstrap, topic) == [1, 1]

    own_cluster.kafka.restart_broker(AWAY)
    wait_until(lambda: AWAY in views(shell.bootstrap, topic)[0].in_sync)
    wait_until(lambda: views(shell.bootstrap, topic)[1].replicas == ids([2, 3]))
    back = shell.plimsoll("elect-leaders", *CHANGE)
    assert back.returncode == 0, back.stderr
    wait_until(lambda: are_leading(shell.bootstrap, topic, [3, 2]))


@pytest.mark.automq
def test_on_automq_there_is_nothing_to_elect(
    automq_cluster: AutoMQCluster, topic: str, tmp_path: Path
) -> None:
    automq_cluster.create_topic(topic, [[1], [2]])
    shell = Shell(tmp_path, automq_cluster.bootstrap)
    process = shell.plimsoll("elect-leaders", *CHANGE)
    assert process.returncode == 0, process.stderr
    assert "has a second replica, as on AutoMQ" in process.stderr
