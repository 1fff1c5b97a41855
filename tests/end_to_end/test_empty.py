"""A cluster without topics, and a cluster other than the plan's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from tests.support.cli_on_cluster import Shell
from tests.support.paths import FIXTURES


@pytest.fixture(scope="module")
def empty_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=1, tier=False)) as cluster:
        yield cluster


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("command", [("status",), ("plan",), ("run", "--once")])
def test_an_empty_cluster_gets_an_answer_at_once(
    empty_cluster: LocalCluster, tmp_path: Path, command: tuple[str, ...]
) -> None:
    run = Shell(tmp_path, empty_cluster.bootstrap).plimsoll(*command)
    assert run.returncode == 0, run.stderr
    assert "Traceback" not in run.stderr
    message = {
        "status": "1 broker, 0 partitions",
        "plan": "already balanced: the cluster has no partitions",
        "run": "balanced: no resource is loaded enough to be balanced",
    }
    assert message[command[0]] in run.stdout + run.stderr


@pytest.mark.kafka
def test_a_plan_of_another_cluster_is_refused_and_leaves_no_journal(
    empty_cluster: LocalCluster, tmp_path: Path
) -> None:
    shell = Shell(tmp_path, empty_cluster.bootstrap)
    snapshot = str(FIXTURES / "demo.json")
    made = shell.plimsoll("plan", "--snapshot", snapshot, "--out", "p.json")
    assert made.returncode == 0, made.stderr
    run = shell.plimsoll("apply", "p.json", "--allow-changes", "--yes")
    assert run.returncode == 5, run.stderr
    assert empty_cluster.cluster_id in run.stderr
    assert len(run.stderr.splitlines()) == 1
    assert shell.runs() == []
