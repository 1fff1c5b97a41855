"""Replication factors change under load, though the process is killed; no record is lost.

The process that continues is on another host, which has only the bucket.
"""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.local_cluster.local_cluster import LocalCluster
from tests.support.cli_on_cluster import Shell, kill_after, placement
from tests.support.executor.s3_server import BUCKET, s3_server
from tests.support.executor.topic_records import assert_exact, loaded
from tests.support.kafka_tools import stock_tool

PARTITIONS = 6
SETTINGS = """
window_s = 5.0

[archive]
endpoint_url = "{endpoint}"
bucket = "{bucket}"
access_key = "me"
secret_key = "secret"
"""
CHANGING = ("--allow-changes", "--yes")


def described(bootstrap: str, topic: str) -> dict[int, tuple[int, list[int], list[int]]]:
    """Leader, replicas and replicas in sync of each partition, as Kafka's own tool shows them."""
    text = stock_tool(
        "org.apache.kafka.tools.TopicCommand", bootstrap, "--describe", "--topic", topic
    )
    rows = [line.split() for line in text.splitlines() if "Partition:" in line]
    found = [dict(zip(row[::2], row[1::2], strict=False)) for row in rows]
    return {
        int(row["Partition:"]): (
            int(row["Leader:"]),
            [int(b) for b in row["Replicas:"].split(",")],
            [int(b) for b in row["Isr:"].split(",")],
        )
        for row in found
    }


@pytest.fixture
def hosts(local_cluster: LocalCluster, tmp_path: Path) -> Iterator[list[Shell]]:
    result = [Shell(tmp_path / name, local_cluster.bootstrap) for name in ("gone", "next")]
    with s3_server() as endpoint:
        for host in result:
            host.folder.mkdir()
            config = SETTINGS.format(endpoint=endpoint, bucket=BUCKET)
            (host.folder / "plimsoll.toml").write_text(config)
        yield result


@pytest.mark.soak  # Copies under a throttle take minutes beside another test.
@pytest.mark.kafka
@pytest.mark.spark
def test_replicas_go_from_1_to_3_to_2_under_load_though_the_process_is_killed(
    local_cluster: LocalCluster, hosts: list[Shell]
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
    for leader, replicas, in_sync in described(shell.bootstrap, topic).values():
        assert sorted(replicas) == sorted(in_sync) == [1, 2, 3]
        assert leader == replicas[0]
    assert {n: held[:1] for n, held in placement(shell.bootstrap, topic).items()} == before

    fewer = shell.plimsoll("topic", "set-replicas", topic, "2", *CHANGING, "-o", "json")
    assert fewer.returncode == 0, fewer.stderr
    assert {len(held) for held in placement(shell.bootstrap, topic).values()} == {2}
    assert_exact(load)

    back = shell.plimsoll("rollback", *CHANGING)
    assert back.returncode == 0, back.stderr
    assert {len(held) for held in placement(shell.bootstrap, topic).values()} == {3}
