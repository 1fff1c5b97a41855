"""`run --auto` repairs a rack once a person approves, and heals a killed broker."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import Shell

TOPIC = TopicName("healed")
PLACES = [[1, 4], [4, 2], [2, 4], [4, 3], [3, 1], [2, 3]]
"""The first lies in one rack only: that of brokers 1 and 4."""
OTHERS = 'empty_broker = "off"\nuneven_load = "off"\n'


@pytest.fixture
def four_brokers() -> Iterator[LocalCluster]:
    """The fourth is no controller, so that killing it changes nothing else."""
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=4, tier=False)) as started:
        yield started


def configured(shell: Shell, response: str) -> None:
    text = f"dead_broker_after = 3.0\n{SETTINGS}\n[triggers]\ndead_broker = '{response}'\n{OTHERS}"
    (shell.folder / "plimsoll.toml").write_text(text)


@pytest.mark.kafka
@pytest.mark.spark
def test_a_rack_is_repaired_by_approval_and_a_killed_broker_once_its_trigger_acts(
    four_brokers: LocalCluster, tmp_path: Path
) -> None:
    """The approval comes from another shell; the trigger is changed while the loop runs."""
    four_brokers.create_topic(TOPIC, PLACES)
    shell = Shell(tmp_path, four_brokers.bootstrap)
    configured(shell, "off")
    with shell.start("run", "--auto", "--limits", "eager", "--allow-changes") as running:
        running.wait_for(lambda text: " waits for approval: rule_violated " in text)
        assert shell.runs() == []
        (plan,) = json.loads(shell.plimsoll("approve", "-o", "json").stdout)["plans"]
        approved = shell.plimsoll("approve", plan["plan_hash"][:12])
        assert approved.returncode == 0, approved.stderr
        running.wait_for(lambda text: "\nbalanced: " in text.partition("settling: run ")[2])
        four_brokers.kafka.kill_broker(BrokerId(4))
        running.wait_for(lambda text: " replicas, but dead_broker is off" in text)
        assert len(shell.runs()) == 1
        configured(shell, "act")
        running.wait_for(lambda text: "policy changed: dead_broker is act, it was off" in text)
        running.wait_for(lambda text: text.count("settling: run ") == 2)
        assert running.stop() == 0, running.log.read_text()
    assert [run["event"] for run in shell.runs()] == ["ended", "ended"]
    with KafkaAdmin(four_brokers.bootstrap, 10.0) as admin:
        found = admin.partitions([PartitionId(TOPIC, n) for n in range(len(PLACES))])
    views = list(found.values())
    assert all(4 not in view.replicas and len(view.replicas) == 2 for view in views)
    assert all(set(view.in_sync) == set(view.replicas) for view in views)
    assert [found[PartitionId(TOPIC, n)].replicas for n in (4, 5)] == [(3, 1), (2, 3)]
