"""The tutorial: eight equal partitions on node 2 of three end 3/3/2, proved optimal."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from lab.local_cluster.processes import Processes
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, leaders_per_broker

EIGHT = (1.0,) * 8
BYTES_PER_S = 5_000_000.0


@pytest.fixture
def topic() -> str:
    return f"tutorial-{uuid.uuid4().hex[:6]}"


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "load")
    yield started
    started.close()


def balance_cluster(shell: Shell, load: Load, topic: str) -> None:
    """Plan, then `run --auto --once`; check the proof, the moves and the records."""
    planned = shell.plimsoll("plan", "-o", "json", "--out", "plan.json")
    assert planned.returncode == 0, planned.stderr
    assert json.loads(planned.stdout)["status"] == "optimal"
    arguments = ("--auto", "--once", "--limits", "eager", "--allow-changes")
    ran = shell.plimsoll("run", *arguments, "-o", "json")
    assert ran.returncode == 0, ran.stderr
    report = json.loads(ran.stdout)
    assert report["state"] == "done"
    assert len(report["moves"]) in (5, 6), report["moves"]
    assert {m["state"] for m in report["moves"]} == {"done"}
    assert leaders_per_broker(shell.bootstrap, topic) == [2, 3, 3]
    balance = load.finish()
    assert balance.acknowledged_records == balance.read_records > 0
    assert (balance.lost_records, balance.duplicated_records) == (0, 0)


@pytest.mark.kafka
@pytest.mark.spark
def test_equal_partitions_are_balanced_on_kafka(
    new_cluster: LocalCluster, processes: Processes, tmp_path: Path, topic: str
) -> None:
    new_cluster.create_topic(topic, [[2]] * 8)
    load = Load(
        processes,
        new_cluster.bootstrap,
        LoadOrder(topic=topic, bytes_per_s=BYTES_PER_S, weights=EIGHT),
    )
    load.start()
    balance_cluster(Shell(tmp_path, new_cluster.bootstrap), load, topic)


@pytest.mark.automq
@pytest.mark.spark
def test_equal_partitions_are_balanced_on_automq_without_its_balancer(
    automq_cluster: AutoMQCluster, processes: Processes, tmp_path: Path, topic: str
) -> None:
    automq_cluster.create_topic(topic, [[2]] * 8)
    load = Load(
        processes,
        automq_cluster.bootstrap,
        LoadOrder(topic=topic, bytes_per_s=BYTES_PER_S, weights=EIGHT),
    )
    load.start()
    balance_cluster(Shell(tmp_path, automq_cluster.bootstrap), load, topic)
