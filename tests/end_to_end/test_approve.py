"""A plan of `run --auto` waits for a person, who approves it in another shell."""

import json
from pathlib import Path

import pytest

from lab.load.load_generator import DEMO_WEIGHTS, Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import Shell

TOPIC = "waiting"
ASKING = '\n[triggers]\nempty_broker = "ask"\nuneven_load = "ask"\n'
AUTO = ("run", "--auto", "--limits", "eager", "--allow-changes")


@pytest.mark.kafka
@pytest.mark.spark
def test_a_waiting_plan_is_executed_once_it_is_approved(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    new_cluster.create_topic(TOPIC, [[1]] * 8)
    order = LoadOrder(topic=TOPIC, bytes_per_s=5_000_000.0, weights=DEMO_WEIGHTS)
    load = Load(new_cluster.processes, new_cluster.bootstrap, order, name="approve")
    load.start()
    (tmp_path / "plimsoll.toml").write_text(SETTINGS + ASKING)
    shell = Shell(tmp_path, new_cluster.bootstrap)
    with shell.start(*AUTO) as running:
        running.wait_for(lambda text: " waits for approval: " in text)
        assert shell.runs() == []
        (plan,) = json.loads(shell.plimsoll("approve", "-o", "json").stdout)["plans"]
        unknown = shell.plimsoll("approve", "0" * 12)
        assert unknown.returncode == 2, unknown.stderr
        approved = shell.plimsoll("approve", plan["plan_hash"][:12], "--by", "eve")
        assert approved.returncode == 0, approved.stderr
        running.wait_for(lambda text: "settling: run " in text)
        assert shell.plimsoll("approve", plan["plan_hash"]).returncode == 5
        (run,) = shell.runs()
        assert run["plan_hash"] == plan["plan_hash"]
        running.wait_for(lambda text: "\nbalanced: " in text.partition("settling: run ")[2])
        assert running.stop() == 0, running.log.read_text()
    load.finish()
