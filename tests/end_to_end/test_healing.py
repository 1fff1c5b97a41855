"""`run --auto` repairs a rack once a person approves, and heals a killed broker."""

import json
import time
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
WAITS_S = 15.0
"""Time that is left of the threshold once the trigger acts."""
OTHERS = 'empty_broker = "off"\nuneven_load = "off"\n'


@pytest.fixture
def four_brokers() -> Iterator[LocalCluster]:
    """The fourth is no controller, so that killing it changes nothing else."""
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=4, tier=False)) as started:
        yield started


def configured(shell: Shell, response: str, after_s: float = 3.0) -> None:
    settings = f"dead_broker_after = {after_s:.0f}\n{SETTINGS}"
    text = f"{settings}\n[triggers]\ndead_broker = '{response}'\n{OTHERS}"
    (shell.folder / "plimsoll.toml").write_text(text)


def begun_s(shell: Shell) -> float:
    """When the newest run began, in seconds since the epoch."""
    journal = max((shell.folder / "state" / "journal").glob("*.jsonl"))
    first = json.loads(journal.read_text().splitlines()[0])
    return float(first["at_ms"]) / 1000


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.slow
def test_a_rack_is_repaired_by_approval_and_a_killed_broker_once_its_trigger_acts(
    four_brokers: LocalCluster, tmp_path: Path
) -> None:
    """The approval comes from another shell; trigger and threshold change while the loop runs."""
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
        killed_s = time.time()
        four_brokers.kafka.kill_broker(BrokerId(4))
        running.wait_for(lambda text: " replicas, but dead_broker is off" in text)
        assert len(shell.runs()) == 1
        after_s = time.time() - killed_s + WAITS_S
        configured(shell, "act", after_s)
        running.wait_for(lambda text: "policy changed: dead_broker is act, it was off" in text)
        running.wait_for(lambda text: text.count("settling: run ") == 2)
        assert running.stop() == 0, running.log.read_text()
        # Rounded to a second in the settings.
        assert begun_s(shell) >= killed_s + after_s - 1
    assert [run["event"] for run in shell.runs()] == ["ended", "ended"]
    with KafkaAdmin(four_brokers.bootstrap, 10.0) as admin:
        found = admin.partitions([PartitionId(TOPIC, n) for n in range(len(PLACES))])
    views = list(found.values())
    assert all(4 not in view.replicas and len(view.replicas) == 2 for view in views)
    assert all(set(view.in_sync) == set(view.replicas) for view in views)
    assert [found[PartitionId(TOPIC, n)].replicas for n in (4, 5)] == [(3, 1), (2, 3)]
