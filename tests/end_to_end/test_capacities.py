"""Disk capacities reported by real brokers, and overridden by the operator."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.units import bytes_text
from tests.support.cli_on_cluster import Shell

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SETTINGS = """
[capacities.default]
net_in = "10MB/s"
net_out = "10MB/s"
cpu = 4
[capacities.brokers.2]
disk = "1TB"
[capacities.brokers.3]
net_in = "20MB/s"
net_out = "20MB/s"
"""
GOALS = """
[[balance]]
resource = "net_in"
floor = 0.0
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Two directories each on one file system; brokers 1 and 2 lead everything."""
    settings = LocalPlan(directories=2, tier=False)
    with LocalCluster(default_cache_dir(), settings) as started:
        started.create_topic("orders", [[1 + i % 2] for i in range(12)])
        order = LoadOrder(topic="orders", bytes_per_s=3e6, weights=(1,) * 12)
        load = Load(started.processes, started.bootstrap, order, name="orders")
        load.start()
        yield started
        load.kill()


@pytest.fixture
def shell(cluster: LocalCluster, tmp_path: Path) -> Shell:
    return Shell(tmp_path, cluster.bootstrap)


def test_status_shows_the_disks_reported_by_brokers(cluster: LocalCluster, shell: Shell) -> None:
    """Also of a broker that leads nothing; one file system counts once."""
    total = bytes_text(shutil.disk_usage(cluster.folder).total)
    run = shell.plimsoll("status")
    assert run.returncode == 0, run.stderr
    assert run.stdout.count(f" % of {total} (log directories)") == 3


def test_settings_override_figures_reported_by_brokers(shell: Shell) -> None:
    (shell.folder / "plimsoll.toml").write_text(SETTINGS)
    run = shell.plimsoll("status", "-o", "json")
    assert run.returncode == 0, run.stderr
    result = json.loads(run.stdout)
    assert [b["capacity_from"]["disk"] for b in result["brokers"]] == [
        "log directories",
        "settings",
        "log directories",
    ]
    assert result["brokers"][1]["capacity"]["disk"] == 1e12
    assert [b["capacity"]["net_in"] for b in result["brokers"]] == [1e7, 1e7, 2e7]
    assert [n.partition(",")[0] for n in result["notes"]] == ["cpu: a capacity is known"]


def test_a_live_plan_fills_a_larger_broker_more(shell: Shell) -> None:
    (shell.folder / "plimsoll.toml").write_text(SETTINGS)
    (shell.folder / "goals.toml").write_text(GOALS)
    run = shell.plimsoll("plan", "--goals", "goals.toml", "-o", "json")
    assert run.returncode == 0, run.stderr
    plan = json.loads(run.stdout)["plan"]
    after = {b["id"]: b["after"]["net_in"] for b in plan["brokers"]}
    assert after[3] > 1.5 * max(after[1], after[2])
    assert "plimsoll: cpu: a capacity is known" in run.stderr


def test_run_reports_missing_capacities_and_continues(shell: Shell) -> None:
    (shell.folder / "plimsoll.toml").write_text('[capacities.brokers.3]\nnet_in = "20MB/s"\n')
    running = shell.start("run")
    output = running.wait_for(lambda text: "no capacity is known of" in text)
    assert "net_in: no capacity is known of brokers 1, 2, so all brokers" in output
    time.sleep(2)
    assert running.log.read_text().count("no capacity is known of") == 1
    assert running.stop() == 0


def test_a_directory_that_no_broker_has_is_named(cluster: LocalCluster, shell: Shell) -> None:
    (own, _) = map(str, next(iter(cluster.kafka.brokers.values())).log_dirs)
    disks = {own: "1000", "/nowhere": "1000"}
    entries = [{"brokerId": "1", "capacity": {"DISK": disks}}]
    path = shell.folder / "capacity.json"
    path.write_text(json.dumps({"brokerCapacities": entries}))
    for command in ("status", "run"):
        run = shell.plimsoll(command, "--capacity", "capacity.json")
        assert run.returncode == 2, run.stderr
        assert "broker 1 has no log directory /nowhere; it has" in run.stderr
        assert "Traceback" not in run.stderr
