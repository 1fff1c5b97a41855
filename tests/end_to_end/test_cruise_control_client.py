"""LinkedIn's own client of Cruise Control, unmodified, balances a real cluster."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import HANG_S, Shell, placement, wait_until

TOPIC = "cruised"
CCCLI: Final = Path(sys.executable).with_name("cccli")
"""Of the package `cruise-control-client`."""
TABLES: Final = """
[triggers]
uneven_load = "off"
[service]
listen = "127.0.0.1:0"
cruise_control_listen = "127.0.0.1:0"
cruise_control_api = "execute"
"""


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.skipif(not CCCLI.exists(), reason="cruise-control-client is not installed")
def test_a_rebalance_that_cccli_has_shown_is_the_one_that_it_executes(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1]] * 8)
    order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
    load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="cruised")
    load.start()
    (tmp_path / "plimsoll.toml").write_text(SETTINGS + TABLES)
    shell = Shell(tmp_path, new_cluster.bootstrap)
    with shell.start("service", "--auto", "--limits", "eager", "--allow-changes") as running:
        text = running.wait_for(lambda found: "/kafkacruisecontrol\n" in found)
        address = text.partition("API on http://")[2].partition("/kafkacruisecontrol\n")[0]

        def cccli(*arguments: str) -> str:
            run = subprocess.run(
                [CCCLI, "-a", address, *arguments], capture_output=True, text=True, timeout=HANG_S
            )
            assert run.returncode == 0, run.stderr
            return run.stdout

        def answered(*arguments: str) -> Any:
            return json.loads(cccli(*arguments, "--json", "true"))

        def executor() -> str:
            found: str = answered("state")["ExecutorState"]["state"]
            return found

        def status() -> str:
            tasks = answered("user_tasks")["userTasks"]
            found: str = next(t["Status"] for t in tasks if "rebalance?" in t["RequestURL"])
            return found

        assert executor() == "NO_TASK_IN_PROGRESS"
        wait_until(lambda: sum(b["NwOutRate"] for b in answered("load").get("brokers", ())) > 100)
        assert cccli("load").startswith("hosts:")
        leaders = {b["Broker"]: b["Leaders"] for b in answered("load")["brokers"]}
        assert len(leaders) == 3
        assert leaders[1] >= 8
        names = {r["topic"] for r in answered("partition_load", "--resource", "disk")["records"]}
        assert TOPIC in names
        assert answered("kafka_cluster_state")["KafkaBrokerState"]["Summary"]["Brokers"] == 3
        before = placement(new_cluster.bootstrap, TOPIC)
        dry = answered("rebalance", "-n", "--verbose", "true")
        assert dry["summary"]["numReplicaMovements"] >= 1
        assert placement(new_cluster.bootstrap, TOPIC) == before
        assert shell.runs() == []
        ordered = answered("rebalance", "--verbose", "true")
        assert ordered["proposals"] == dry["proposals"]
        wait_until(lambda: status() == "Completed")
        after = placement(new_cluster.bootstrap, TOPIC)
        assert {
            p["topicPartition"]["partition"]: p["newReplicas"]
            for p in dry["proposals"]
            if p["topicPartition"]["topic"] == TOPIC
        }.items() <= after.items()
        assert len(Counter(replicas[0] for replicas in after.values())) == 3
        wait_until(lambda: executor() == "NO_TASK_IN_PROGRESS")
        assert "Proposal execution stopped." in cccli("stop")
        assert running.stop() == 0, running.log.read_text()
    load.finish()
    (run,) = shell.runs()
    (kept,) = (tmp_path / "state" / "cruise-control").glob("*.kept.json")
    (journal,) = (tmp_path / "state" / "journal").glob("*.jsonl")
    assert run["event"] == "ended"
    assert json.loads(kept.read_text())["plan_hash"] in journal.read_text()
