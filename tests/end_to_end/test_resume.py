"""A killed run is resumed to its end and rolled back to its beginning."""

import json
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from executor.client.kafka_admin import KafkaAdmin
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan, write_plan
from model.snapshot.snapshot import StorageKind
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, kill_after, placement, wait_until
from tests.support.executor.plan_builders import plan_for
from tests.support.executor.topic_records import fill

PARTITIONS = 16


@pytest.fixture
def topic() -> str:
    return f"resume-{uuid.uuid4().hex[:6]}"


def killed_resumed_and_rolled_back(shell: Shell, plan: Plan, events: int) -> None:
    topic = plan.moves[0].topic
    before = placement(shell.bootstrap, topic)
    write_plan(shell.folder / "plan.json", plan)
    apply = ("apply", "plan.json", "--allow-changes", "--yes")
    kill_after(shell.start(*apply), shell, events)
    (cut,) = shell.runs()
    assert cut["event"] != "ended"

    again = shell.plimsoll("run", "--resume", "--allow-changes", "-o", "json")
    assert again.returncode == 0, again.stderr
    report = json.loads(again.stdout)
    assert {m["state"] for m in report["moves"]} == {"done"}
    after = {m.partition: list(m.replicas_after) for m in plan.moves}
    assert placement(shell.bootstrap, topic) == before | after

    nothing = shell.plimsoll("run", "--resume", "--allow-changes")
    assert nothing.returncode == 2
    assert f"{report['run_id']} has ended; nothing is left to resume" in nothing.stderr

    if plan.moves[0].storage is StorageKind.SHARED:
        hasty = roll_back(shell, report["run_id"])
        assert hasty.returncode == 5
        assert "AutoMQ stalls when it returns so soon. Roll back in " in hasty.stderr
        time.sleep(60)
    process = shell.plimsoll("rollback", "--dry-run")
    assert process.returncode == 0, process.stderr
    assert len(process.stdout.splitlines()) >= len(plan.moves)
    assert placement(shell.bootstrap, topic) == before | after
    back = roll_back(shell, report["run_id"])
    assert back.returncode == 0, back.stderr
    assert placement(shell.bootstrap, topic) == before


def roll_back(shell: Shell, run_id: str) -> subprocess.CompletedProcess[str]:
    return shell.plimsoll("rollback", run_id, "--allow-changes", "--yes")


@pytest.mark.kafka
@pytest.mark.parametrize("events", [1, 13])
def test_a_killed_run_is_resumed_and_rolled_back_on_kafka(
    local_cluster: LocalCluster, topic: str, tmp_path: Path, events: int
) -> None:
    local_cluster.create_topic(topic, [[1, 2]] * PARTITIONS)
    plan = plan_for(local_cluster.bootstrap, topic, {p: [3, 2 - p % 2] for p in range(PARTITIONS)})
    shell = Shell(tmp_path, local_cluster.bootstrap)
    killed_resumed_and_rolled_back(shell, plan, events)


@pytest.mark.automq
def test_a_killed_run_is_resumed_and_rolled_back_on_automq(
    automq_cluster: AutoMQCluster, topic: str, tmp_path: Path
) -> None:
    automq_cluster.create_topic(topic, [[1]] * PARTITIONS)
    plan = plan_for(automq_cluster.bootstrap, topic, {p: [2] for p in range(PARTITIONS)})
    shell = Shell(tmp_path, automq_cluster.bootstrap)
    killed_resumed_and_rolled_back(shell, plan, 7)


def throttled(admin: KafkaAdmin, topic: str) -> tuple[object, ...]:
    """Settings of each broker, then of the topic."""
    brokers = (admin.own_broker_configs(BrokerId(b), RATES) for b in (1, 2, 3))
    name = TopicName(topic)
    return *brokers, admin.own_topic_configs([name], (LEADERS, FOLLOWERS))[name]


def wait_until_nothing_is_set(admin: KafkaAdmin, topic: str) -> None:
    # Each broker is queried directly and may lag behind the controller.
    wait_until(lambda: throttled(admin, topic) == ({}, {}, {}, {}))


def throttled_and_killed(cluster: LocalCluster, folder: Path, topic: str, megabytes: int) -> Shell:
    """A killed run whose only move, to [3, 2], continues without it."""
    cluster.create_topic(topic, [[1, 2]])
    fill(cluster.bootstrap, topic, [megabytes])
    write_plan(folder / "plan.json", plan_for(cluster.bootstrap, topic, {0: [3, 2]}))
    shell = Shell(folder, cluster.bootstrap)
    slow = ("apply", "plan.json", "--allow-changes", "--yes", "--throttle", "1MB/s")
    kill_after(shell.start(*slow), shell, 2)
    return shell


@pytest.mark.kafka
def test_a_rollback_removes_the_throttle_of_a_killed_run(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    # Kafka passes ten seconds of traffic before a throttle holds.
    shell = throttled_and_killed(local_cluster, tmp_path, topic, 8)
    with KafkaAdmin(shell.bootstrap, 10.0) as admin:
        assert all(throttled(admin, topic))
        wait_until(lambda: placement(shell.bootstrap, topic) == {0: [3, 2]})
        back = shell.plimsoll("rollback", "--allow-changes", "--yes")
        assert back.returncode == 0, back.stderr
        assert "its throttle is gone" in back.stderr
        wait_until_nothing_is_set(admin, topic)
    assert placement(shell.bootstrap, topic) == {0: [1, 2]}


@pytest.mark.kafka
def test_a_cleanup_removes_the_throttle_of_a_killed_run(
    local_cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    shell = throttled_and_killed(local_cluster, tmp_path, topic, 20)
    with KafkaAdmin(shell.bootstrap, 10.0) as admin:
        assert all(throttled(admin, topic))
        cleaned = shell.plimsoll("cleanup", "--allow-changes")
        assert cleaned.returncode == 0, cleaned.stderr
        assert "its throttle is gone" in cleaned.stdout
        wait_until_nothing_is_set(admin, topic)
    again = shell.plimsoll("cleanup", "--allow-changes")
    assert again.stdout == "no run has left settings changed\n"
    resumed = shell.plimsoll("run", "--resume", "--allow-changes")
    assert resumed.returncode == 0, resumed.stderr
    assert placement(shell.bootstrap, topic) == {0: [3, 2]}
