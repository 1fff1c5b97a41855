"""The tutorial: eight equal partitions on node 2 of three end 3/3/2, near a proved bound."""

import json
import uuid
from pathlib import Path

import pytest

from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from lab.local_cluster.processes import Processes
from model.goals.goals import GAP_SHARE
from model.plan.plan import read_plan
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, leaders_per_broker
from tests.support.executor.topic_records import assert_exact

EIGHT = (1.0,) * 8
BYTES_PER_S = 5_000_000.0


@pytest.fixture
def topic() -> str:
    return f"tutorial-{uuid.uuid4().hex[:6]}"


def balance_cluster(
    cluster: LocalCluster | AutoMQCluster, processes: Processes, folder: Path, topic: str
) -> None:
    """Plan, then `run --auto --once`; check the proof, the moves and the records."""
    cluster.create_topic(topic, [[2]] * 8)
    order = LoadOrder(topic=topic, bytes_per_s=BYTES_PER_S, weights=EIGHT)
    load = Load(processes, cluster.bootstrap, order)
    load.start()
    shell = Shell(folder, cluster.bootstrap)
    planned = shell.plimsoll("plan", "--out", "plan.json")
    assert planned.returncode == 0, planned.stderr
    plan = read_plan(folder / "plan.json")
    # A search may end at a small gap, and measured loads differ in every run.
    assert plan.proves(GAP_SHARE * plan.objective), plan.limited_by
    arguments = ("--auto", "--once", "--limits", "eager", "--allow-changes")
    ran = shell.plimsoll("run", *arguments, "-o", "json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["state"] == "done"
    assert len(report["moves"]) in (5, 6), report["moves"]
    assert {m["state"] for m in report["moves"]} == {"done"}
    assert leaders_per_broker(shell.bootstrap, topic) == [2, 3, 3]
    assert_exact(load)


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_equal_partitions_are_balanced_on_kafka(
    new_cluster: LocalCluster, processes: Processes, tmp_path: Path, topic: str
) -> None:
    balance_cluster(new_cluster, processes, tmp_path, topic)


@pytest.mark.automq
@pytest.mark.spark
def test_equal_partitions_are_balanced_on_automq_without_its_balancer(
    automq_cluster: AutoMQCluster, processes: Processes, tmp_path: Path, topic: str
) -> None:
    balance_cluster(automq_cluster, processes, tmp_path, topic)
