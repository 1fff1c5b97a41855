"""Log directories by command: killed during a copy, resumed, rolled back."""

import contextlib
import json
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.platforms.replica_log_dirs import dirs_receiving
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import read_plan, write_plan
from tests.support.cli_on_cluster import HANG_S, Running, Shell, placement, wait_until
from tests.support.executor.log_dir_plans import (
    IO_RATE,
    other_dir,
    place,
    places,
    plan_to,
    swapped_dirs,
)
from tests.support.executor.topic_records import contents, fill

pytestmark = pytest.mark.kafka
BEFORE = {0: [1, 2], 1: [1, 2], 2: [1, 2]}
AFTER = {0: [1, 2], 1: [3, 2], 2: [1, 3]}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three brokers with two log directories each."""
    settings = LocalPlan(directories=2, tier=False)
    with LocalCluster(default_cache_dir(), settings) as started:
        yield started


@pytest.fixture
def admin(cluster: LocalCluster) -> Iterator[KafkaAdmin]:
    with KafkaAdmin(cluster.bootstrap, 10.0) as opened:
        yield opened


@pytest.fixture
def topic(cluster: LocalCluster, admin: KafkaAdmin) -> Iterator[str]:
    """A name whose topic is deleted afterwards, since a plan includes every topic."""
    name = f"jbod-{uuid.uuid4().hex[:6]}"
    yield name
    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    with contextlib.closing(client):
        client.delete_topics([name])
        wait_until(lambda: TopicName(name) not in admin.topics())


def kill_while_it_copies(running: Running, admin: KafkaAdmin, topic: str) -> None:
    pid = PartitionId(TopicName(topic), 0)
    deadline = time.monotonic() + HANG_S
    while not dirs_receiving(pid, admin.log_dirs(BrokerId(1), [pid])):
        assert time.monotonic() < deadline
    running.process.send_signal(signal.SIGKILL)
    running.process.wait(HANG_S)


def test_a_killed_run_is_resumed_and_rolled_back_to_the_old_directories(
    cluster: LocalCluster, admin: KafkaAdmin, topic: str, tmp_path: Path
) -> None:
    cluster.create_topic(topic, list(BEFORE.values()))
    fill(cluster.bootstrap, topic, [20, 2, 2])
    before, records = (places(admin, topic, BEFORE), contents(cluster.bootstrap, topic, 3))
    targets = swapped_dirs(cluster, before)
    (new, _) = map(str, cluster.kafka.brokers[BrokerId(3)].log_dirs)
    targets[1][3] = targets[2][3] = new
    plan = plan_to(cluster, topic, AFTER, before, targets)
    write_plan(tmp_path / "plan.json", plan)
    shell = Shell(tmp_path, cluster.bootstrap)

    admin.alter_broker_configs(BrokerId(1), {IO_RATE: "1000000"})
    apply = ("apply", "plan.json", "--allow-changes", "--yes")
    kill_while_it_copies(shell.start(*apply), admin, topic)
    (cut,) = shell.runs()
    assert cut["event"] != "ended"
    hasty = shell.plimsoll("rollback", "--allow-changes", "--yes")
    assert hasty.returncode == 5
    assert f"{topic}-0 is still being moved by the run" in hasty.stderr
    admin.alter_broker_configs(BrokerId(1), {IO_RATE: None})

    again = shell.plimsoll("run", "--resume", "--allow-changes", "-o", "json")
    assert again.returncode == 0, again.stderr
    report = json.loads(again.stdout)
    assert {m["state"] for m in report["moves"]} == {"done"}
    assert placement(cluster.bootstrap, topic) == AFTER
    result = places(admin, topic, AFTER)
    assert result == {p: {b: targets[p][b] for b in AFTER[p]} for p in AFTER}
    assert contents(cluster.bootstrap, topic, 3) == records

    back = shell.plimsoll("rollback", "--allow-changes", "--yes")
    assert back.returncode == 0, back.stderr
    assert placement(cluster.bootstrap, topic) == BEFORE
    assert places(admin, topic, BEFORE) == before
    assert contents(cluster.bootstrap, topic, 3) == records


def test_a_replica_moved_by_someone_else_outdates_the_plan(
    cluster: LocalCluster, admin: KafkaAdmin, topic: str, tmp_path: Path
) -> None:
    cluster.create_topic(topic, [[1]])
    before = places(admin, topic, {0: [1]})
    plan = plan_to(cluster, topic, {0: [1]}, before, swapped_dirs(cluster, before))
    write_plan(tmp_path / "plan.json", plan)
    away = other_dir(cluster, 1, before[0][1])
    pid = plan.moves[0].id
    admin.alter_log_dirs(BrokerId(1), {pid: away})
    wait_until(lambda: place(admin, pid, 1) == away)
    shell = Shell(tmp_path, cluster.bootstrap)
    refused = shell.plimsoll("apply", "plan.json", "--allow-changes", "--yes")
    assert refused.returncode == 7
    assert f"{pid} is in {away} of broker 1, the plan expects" in refused.stderr
    assert shell.runs() == []


GOALS = """
level_directories = true
move_price = 0.001

[[balance]]
resource = "disk"
floor = 0.0
"""


@pytest.mark.spark
def test_directories_of_a_broker_are_balanced_by_plan_and_apply(
    cluster: LocalCluster, admin: KafkaAdmin, topic: str, tmp_path: Path
) -> None:
    """Six partitions on each broker, of which those in one directory are full."""
    lists = {p: [1 + p % 3] for p in range(18)}
    cluster.create_topic(topic, list(lists.values()))
    before = places(admin, topic, lists)
    first = {b: str(s.log_dirs[0]) for b, s in cluster.kafka.brokers.items()}
    full = [p for p, at in before.items() if first.items() >= at.items()]
    fill(cluster.bootstrap, topic, [2 * (p in full) for p in lists])
    (tmp_path / "goals.toml").write_text(GOALS)
    shell = Shell(tmp_path, cluster.bootstrap)

    planned = shell.plimsoll("plan", "--goals", "goals.toml", "--out", "plan.json")
    assert planned.returncode == 0, planned.stderr
    plan = read_plan(tmp_path / "plan.json")
    assert any(m.log_dirs_after for m in plan.moves if m.partition in full)
    applied = shell.plimsoll("apply", "plan.json", "--allow-changes", "--yes")
    assert applied.returncode == 0, applied.stderr
    after = places(admin, topic, placement(cluster.bootstrap, topic))
    for broker, path in first.items():
        replicas = [after[p][broker] == path for p in full if broker in after[p]]
        assert abs(replicas.count(True) - replicas.count(False)) <= 1
        assert len(replicas) > 1
