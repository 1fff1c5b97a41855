"""Log directories are emptied and healed by command, under load; no record is lost."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from lab.load.load_generator import Load
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from tests.end_to_end.test_failed_disk import breaks
from tests.support.cli_on_cluster import Shell, kill_after, placement, wait_until
from tests.support.executor.log_dir_plans import IO_RATE
from tests.support.executor.topic_records import assert_exact, fill, loaded
from tests.support.kafka_tools import stock_tool

PLACES = [[1, 2], [2, 3], [3, 1], [1, 4], [4, 1], [2, 4], [1, 3], [3, 4]]
CHANGING = ("--allow-changes", "--yes")

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """Four brokers with two log directories each."""
    plan = LocalPlan(brokers=4, directories=2, tier=False)
    with LocalCluster(default_cache_dir(), plan) as started:
        yield started


def stored(bootstrap: str, broker: int) -> dict[str, set[str]]:
    """Partitions in each log directory of a broker, as Kafka's own tool shows them."""
    tool = "org.apache.kafka.tools.LogDirsCommand"
    text = stock_tool(tool, bootstrap, "--describe", "--broker-list", str(broker))
    document = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    (found,) = (entry for entry in document["brokers"] if entry["broker"] == broker)
    return {
        entry["logDir"]: {part["partition"] for part in entry["partitions"]}
        for entry in found["logDirs"]
    }


def in_sync(bootstrap: str, topic: str) -> bool:
    ids = [PartitionId(TopicName(topic), number) for number in range(len(PLACES))]
    with KafkaAdmin(bootstrap, 10.0) as admin:
        views = admin.partitions(ids).values()
    return all(set(view.in_sync) == set(view.replicas) for view in views)


@pytest.fixture
def shell(cluster: LocalCluster, tmp_path: Path) -> Shell:
    (tmp_path / "plimsoll.toml").write_text("window_s = 5.0\n")
    return Shell(tmp_path, cluster.bootstrap)


def loaded_topic(cluster: LocalCluster) -> tuple[str, Load]:
    """A topic whose partitions have a megabyte each, under a continuous load."""
    topic = f"stored-{uuid.uuid4().hex[:6]}"
    cluster.create_topic(topic, PLACES)
    fill(cluster.bootstrap, topic, [1] * len(PLACES))
    return topic, loaded(cluster, topic, 0, partitions=len(PLACES), rate=100_000.0)


def test_a_directory_is_emptied_under_load_though_the_process_is_killed(
    cluster: LocalCluster, shell: Shell
) -> None:
    topic, load = loaded_topic(cluster)
    kept, emptied = map(str, cluster.kafka.brokers[BrokerId(1)].log_dirs)
    before = stored(shell.bootstrap, 1)
    assert before[emptied]

    remove = ("disk", "remove", "1", emptied, *CHANGING)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        # At this rate the first copies take seconds, so that the kill hits the run.
        admin.alter_broker_configs(BrokerId(1), {IO_RATE: "100000"})
        kill_after(shell.start(*remove), shell, 1)
        admin.alter_broker_configs(BrokerId(1), {IO_RATE: None})
    done = shell.plimsoll(*remove)
    assert done.returncode == 0, done.stderr
    assert "continues task disk-remove-1-" in done.stderr
    after = stored(shell.bootstrap, 1)
    assert after[emptied] == set()
    assert after[kept] == before[kept] | before[emptied]
    assert placement(shell.bootstrap, topic) == dict(enumerate(PLACES))
    assert_exact(load)

    back = shell.plimsoll("rollback", *CHANGING)
    assert back.returncode == 0, back.stderr
    assert stored(shell.bootstrap, 1) == before


def test_a_failed_directory_is_healed_under_load(cluster: LocalCluster, shell: Shell) -> None:
    topic, load = loaded_topic(cluster)
    broken = cluster.kafka.brokers[BrokerId(2)].log_dirs[1]
    lost = stored(shell.bootstrap, 2)[str(broken)]
    assert lost
    breaks(broken)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        wait_until(lambda: any(d.offline for d in admin.log_dirs(BrokerId(2), ())))
    healed = shell.plimsoll("disk", "heal", "2", *CHANGING)
    # The offsets of consumers have a replica in each rack, and broker 2 may be alone in its own.
    stuck = "__consumer_offsets-0) that no other broker may hold" in healed.stderr
    assert healed.returncode == (6 if stuck else 0), healed.stderr
    now = placement(shell.bootstrap, topic)
    assert all(2 not in now[n] for n in now if f"{topic}-{n}" in lost)
    wait_until(lambda: in_sync(shell.bootstrap, topic))
    assert_exact(load)
