"""LinkedIn's own client of Cruise Control, unmodified, operates a real cluster."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, TopicName
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import HANG_S, Shell, placement, wait_until

TOPIC = "cruised"
PLAN = LocalPlan(
    tier=False,
    # One of three brokers can be emptied.
    properties={"broker.session.timeout.ms": "60000", "offsets.topic.replication.factor": "2"},
)
CCCLI: Final = Path(sys.executable).with_name("cccli")
"""Of the package `cruise-control-client`."""
TABLES: Final = """
[triggers]
uneven_load = "off"
empty_broker = "off"
[service]
listen = "127.0.0.1:0"
cruise_control_listen = "127.0.0.1:0"
cruise_control_api = "execute"
"""

SLOW: Final = 'throttle = "1MB/s"\n'


@pytest.fixture
def new_cluster() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), PLAN) as cluster:
        yield cluster


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.skipif(not CCCLI.exists(), reason="cruise-control-client is not installed")
@pytest.mark.slow
def test_cccli_executes_the_rebalance_that_it_has_shown_and_operates_brokers(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1, 2]] * 8)
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

        def status(endpoint: str) -> str:
            tasks = answered("user_tasks")["userTasks"]
            found: str = next(t["Status"] for t in tasks if f"{endpoint}?" in t["RequestURL"])
            return found

        def on_brokers(order: str, broker: int) -> dict[int, list[int]]:
            """Give an order on a broker; the replicas once it has been executed."""
            assert answered(order, str(broker))["summary"]
            task = f"ended: task {order.removesuffix('_broker')}-{broker}-"
            running.wait_for(lambda found: task in found)
            wait_until(lambda: status(order) != "InExecution")
            assert status(order) == "Completed", running.log.read_text()
            return placement(new_cluster.bootstrap, TOPIC)

        def holders(replicas: dict[int, list[int]]) -> set[int]:
            return {broker for found in replicas.values() for broker in found}

        def is_ordered(answer: Any) -> bool:
            """Whether it is a plan; loads are not known at once after a reload."""
            assert "NotEnoughValidWindows" in answer.get("errorMessage", "NotEnoughValidWindows")
            return "summary" in answer

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
        wait_until(lambda: status("rebalance") == "Completed")
        after = placement(new_cluster.bootstrap, TOPIC)
        assert {
            p["topicPartition"]["partition"]: p["newReplicas"]
            for p in dry["proposals"]
            if p["topicPartition"]["topic"] == TOPIC
        }.items() <= after.items()
        assert len(Counter(replicas[0] for replicas in after.values())) == 3
        wait_until(lambda: executor() == "NO_TASK_IN_PROGRESS")
        assert "Proposal execution stopped: no run is in progress" in cccli("stop")
        (run,) = shell.runs()
        (kept,) = (tmp_path / "state" / "cruise-control").glob("*.kept.json")
        (journal,) = (tmp_path / "state" / "journal").glob("*.jsonl")
        assert run["event"] == "ended"
        assert json.loads(kept.read_text())["plan_hash"] in journal.read_text()

        assert holders(on_brokers("remove_broker", 3)) == {1, 2}
        # On a busy machine, the loads known at first may give no reason to fill it.
        wait_until(lambda: answered("add_broker", "3", "-n")["summary"]["numReplicaMovements"] > 0)
        assert holders(on_brokers("add_broker", 3)) == {1, 2, 3}
        demoted = on_brokers("demote_broker", 3)
        assert 3 in holders(demoted)
        assert {replicas[0] for replicas in demoted.values()} == {1, 2}

        # A stop during a run: its moves take half a minute, and some have begun.
        load.finish()
        (tmp_path / "plimsoll.toml").write_text(SLOW + SETTINGS + TABLES)
        running.process.send_signal(signal.SIGHUP)
        running.wait_for(lambda found: "settings read again" in found)
        before = placement(new_cluster.bootstrap, TOPIC)
        wait_until(lambda: is_ordered(answered("remove_broker", "3")))
        wait_until(lambda: executor() == "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS")
        with KafkaAdmin(new_cluster.bootstrap, 10.0) as admin:
            wait_until(lambda: bool(admin.reassignments()))
            assert "Proposal execution stopped" in cccli("stop", "--force-stop")
            wait_until(lambda: executor() == "NO_TASK_IN_PROGRESS")
            assert admin.reassignments() == {}
            for broker in (1, 2, 3):
                wait_until(lambda: admin.own_broker_configs(BrokerId(broker), RATES) == {})  # noqa: B023
            name = TopicName(TOPIC)
            assert admin.own_topic_configs([name], (LEADERS, FOLLOWERS)) == {name: {}}
        wait_until(lambda: status("remove_broker") == "CompletedWithError")
        run = shell.runs()[-1]
        assert (run["event"], run["detail"]["state"]) == ("ended", "stopped")
        # Each partition is where it was, or where the plan has it.
        after = placement(new_cluster.bootstrap, TOPIC)
        assert any(3 in replicas for replicas in after.values())
        assert all({*after[p]} in ({*before[p]}, {1, 2}) for p in before)
        assert "paused by cruise-control:127.0.0.1" in shell.plimsoll("ctl", "status").stdout
        assert running.stop() == 0, running.log.read_text()
