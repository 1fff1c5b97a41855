"""Replication factors change under load, though the process is killed; no record is lost.

The process that continues is on another host, which has only the bucket.
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.local_cluster.local_cluster import LocalCluster
from tests.support.archived_hosts import archived_hosts
from tests.support.cli_on_cluster import Shell, kill_after, placement
from tests.support.executor.topic_records import assert_exact, loaded
from tests.support.settled_topics import settled

PARTITIONS = 6
CHANGING = ("--allow-changes", "--yes")


@pytest.fixture
def hosts(local_cluster: LocalCluster, tmp_path: Path) -> Iterator[list[Shell]]:
    with archived_hosts(tmp_path, local_cluster.bootstrap) as made:
        yield [made.host(), made.host()]


@pytest.mark.soak  # Copies under a throttle take minutes beside another test.
@pytest.mark.kafka
@pytest.mark.spark
def test_replicas_go_from_1_to_3_to_2_under_load_though_the_process_is_killed(
    local_cluster: LocalCluster, hosts: list[Shell], tmp_path: Path
) -> None:
    topic = f"copies-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(topic, [[1 + n % 3] for n in range(PARTITIONS)])
    load = loaded(local_cluster, topic, 300_000, partitions=PARTITIONS, rate=300_000.0)
    gone, shell = hosts
    before = placement(shell.bootstrap, topic)

    # At this rate the first copies take seconds, so that the kill hits the run.
    slow = ("topic", "set-replicas", topic, "3", *CHANGING, "--throttle", "2MB/s")
    kill_after(gone.start(*slow), gone, 2)
    (task,) = json.loads(shell.plimsoll("task", "list", "-o", "json").stdout)["tasks"]
    # Its lease may still be running.
    assert (task["phase"], task["open"]) == ("moving", True)
    assert (task["topics"], task["replicas"]) == ([topic], 3)
    refused = shell.plimsoll("topic", "set-replicas", topic, "2", *CHANGING)
    assert refused.returncode == 5
    assert f"plimsoll task resume {task['task_id']}" in refused.stderr

    continued = shell.plimsoll("task", "resume", "--allow-changes", "-o", "json")
    assert continued.returncode == 0, continued.stderr
    done = json.loads(continued.stdout)
    assert (done["task_id"], done["phase"]) == (task["task_id"], "done")
    three = settled(shell.bootstrap, topic, tmp_path)
    assert {n: sorted(held) for n, held in three.items()} == {n: [1, 2, 3] for n in before}
    assert {n: held[:1] for n, held in three.items()} == before

    fewer = shell.plimsoll("topic", "set-replicas", topic, "2", *CHANGING, "-o", "json")
    assert fewer.returncode == 0, fewer.stderr
    assert {len(held) for held in settled(shell.bootstrap, topic, tmp_path).values()} == {2}
    assert_exact(load)

    back = shell.plimsoll("rollback", *CHANGING)
    assert back.returncode == 0, back.stderr
    assert {len(held) for held in placement(shell.bootstrap, topic).values()} == {3}
