"""A broker is drained under load, by a process that is killed halfway and one that continues.

The second is on another host, which has only the bucket.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.support.archived_hosts import archived_hosts
from tests.support.cli_on_cluster import Shell, kill_after, placement, wait_until
from tests.support.executor.topic_records import assert_exact, loaded
from tests.support.kafka_tools import stock_tool
from tests.support.settled_topics import CONFIGS, TOPICS, described, settled

TOPIC = "drained"
PARTITIONS = 12
PLACES = [[1 + n % 4, 1 + (n + 1) % 4] for n in range(PARTITIONS)]
CHANGING = ("--allow-changes", "--yes")


@pytest.fixture
def four_brokers() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=4)) as started:
        yield started


@pytest.fixture
def hosts(four_brokers: LocalCluster, tmp_path: Path) -> Iterator[list[Shell]]:
    with archived_hosts(tmp_path, four_brokers.bootstrap) as made:
        yield [made.host(), made.host()]


LIMITS = """
[limits.some]
confirm = 3600
pause = 3600
replica_moves = 1
leader_changes = 1
partitions_per_topic = 1
bytes = "1 MiB"
min_gain = 0.5
moves_in_flight = 4
"""


def kill_during_removal(host: Shell) -> None:
    """Start to remove broker 4, and kill the process while replicas move."""
    # At this rate the first copies take seconds, so that the kill hits the run.
    slow = ("broker", "remove", "4", *CHANGING, "--throttle", "2MB/s")
    kill_after(host.start(*slow), host, 2)


def on_broker(bootstrap: str, topic: str, broker: int) -> list[int]:
    """Partitions that Kafka's own tool shows on a broker."""
    found = described(bootstrap, topic)
    assert len(found) == PARTITIONS
    return [number for number, (_, replicas, _) in found.items() if broker in replicas]


def is_cordoned(bootstrap: str, broker: int) -> bool:
    """Whether Kafka's own tool shows a broker as cordoned (KIP-1066)."""
    entity = ("--entity-type", "brokers", "--entity-name", str(broker))
    return "cordoned.log.dirs=*" in stock_tool(CONFIGS, bootstrap, "--describe", *entity)


@pytest.mark.soak  # It takes five minutes beside another test.
@pytest.mark.kafka
@pytest.mark.spark
def test_a_broker_is_removed_under_load_though_the_process_is_killed(
    four_brokers: LocalCluster, hosts: list[Shell], tmp_path: Path
) -> None:
    four_brokers.create_topic(TOPIC, PLACES)
    load = loaded(four_brokers, TOPIC, 500_000, partitions=PARTITIONS, rate=1_000_000.0)
    gone, shell = hosts
    before = placement(shell.bootstrap, TOPIC)

    kill_during_removal(gone)
    (task,) = json.loads(shell.plimsoll("task", "list", "-o", "json").stdout)["tasks"]
    # Its lease may still be running.
    assert (task["phase"], task["open"]) == ("moving", True)
    refused = shell.plimsoll("broker", "remove", "4", "3", *CHANGING)
    assert refused.returncode == 5
    assert f"plimsoll task resume {task['task_id']}" in refused.stderr

    again = shell.plimsoll("broker", "remove", "4", *CHANGING, "-o", "json")
    assert again.returncode == 0, again.stderr
    assert f"continues task {task['task_id']}" in again.stderr
    done = json.loads(again.stdout)
    assert done["task_id"] == task["task_id"]
    assert done["phase"] == "done"
    assert all(4 not in held for held in settled(shell.bootstrap, TOPIC, tmp_path).values())
    assert_exact(load)

    # The broker takes nothing new, neither from Kafka nor by a plan nor by an assignment.
    assert is_cordoned(shell.bootstrap, 4)
    created = ("--topic", "later", "--partitions", str(PARTITIONS), "--replication-factor", "2")
    stock_tool(TOPICS, shell.bootstrap, "--create", *created)
    assert on_broker(shell.bootstrap, "later", 4) == []
    assigned = shell.plimsoll("assign", "new", "-p", "6", "-r", "2", "-o", "json")
    assert assigned.returncode == 0, assigned.stderr
    rows = json.loads(assigned.stdout)["assignment"]["partitions"]
    assert all(4 not in row["replicas"] for row in rows)

    back = shell.plimsoll("rollback", *CHANGING)
    assert back.returncode == 0, back.stderr
    wait_until(lambda: placement(shell.bootstrap, TOPIC) == before)
    assert not is_cordoned(shell.bootstrap, 4)
    included = shell.plimsoll("broker", "include", "4", "-o", "json")
    assert included.returncode == 0, included.stderr
    assert json.loads(included.stdout)["marks"] == []


@pytest.mark.soak  # It takes minutes.
@pytest.mark.kafka
@pytest.mark.spark
def test_a_loop_on_another_host_continues_a_removal_whose_process_was_killed(
    four_brokers: LocalCluster, hosts: list[Shell]
) -> None:
    """Its limits would allow no such run; the person who asked for the removal did."""
    four_brokers.create_topic(TOPIC, PLACES)
    load = loaded(four_brokers, TOPIC, 500_000, partitions=PARTITIONS, rate=1_000_000.0)
    gone, shell = hosts
    config = shell.folder / "plimsoll.toml"
    config.write_text(config.read_text() + LIMITS)
    kill_during_removal(gone)
    with shell.start("run", "--auto", "--limits", "some", "--allow-changes") as running:
        running.wait_for(lambda text: "working on task remove-4" in text)
        running.wait_for(lambda text: "is done: broker 4 can be stopped" in text)
        assert running.stop() == 0, running.log.read_text()
    (task,) = json.loads(shell.plimsoll("task", "list", "--all", "-o", "json").stdout)["tasks"]
    assert task["phase"] == "done"
    assert on_broker(shell.bootstrap, TOPIC, 4) == []
    assert_exact(load)
