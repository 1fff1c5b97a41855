"""`run --auto` copies replicas out of a failed log directory."""

from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.executor.topic_records import contents, fill

TOPIC = TopicName("stored")
PLACES = [[2, 4], [4, 3], [2, 4], [4, 3], [3, 1], [1, 2]]
"""Broker 4 has four replicas, two in each log directory, and leads two of them."""
OTHERS = 'rule_violated = "off"\nempty_broker = "off"\nuneven_load = "off"\n'


def configured(shell: Shell, response: str) -> None:
    text = f"{SETTINGS}\n[triggers]\ndead_log_dir = '{response}'\n{OTHERS}"
    (shell.folder / "plimsoll.toml").write_text(text)


def breaks(folder: Path) -> None:
    """Let every write into a log directory fail, as a disk that has gone."""
    folder.rename(folder.with_name(f"{folder.name}-gone"))
    folder.write_bytes(b"")


@pytest.mark.kafka
@pytest.mark.spark
def test_replicas_in_a_failed_directory_are_copied_elsewhere_once_its_trigger_acts(
    tmp_path: Path,
) -> None:
    """The broker keeps running with its other directory; no record is lost."""
    plan = LocalPlan(brokers=4, directories=2, tier=False)
    with LocalCluster(default_cache_dir(), plan) as cluster:
        cluster.create_topic(TOPIC, PLACES)
        fill(cluster.bootstrap, TOPIC, [2] * len(PLACES))
        records = contents(cluster.bootstrap, TOPIC, len(PLACES))
        ids = [PartitionId(TOPIC, number) for number in range(len(PLACES))]
        broken = cluster.kafka.brokers[BrokerId(4)].log_dirs[1]
        with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
            dirs = {d.path: d for d in admin.log_dirs(BrokerId(4), ids)}
            lost = sorted(pid.partition for pid in dirs[str(broken)].sizes)
            assert lost
            breaks(broken)
            wait_until(lambda: any(d.offline for d in admin.log_dirs(BrokerId(4), ids)))
        shell = Shell(tmp_path, cluster.bootstrap)
        configured(shell, "off")
        with shell.start("run", "--auto", "--limits", "eager", "--allow-changes") as running:
            running.wait_for(lambda text: ", but dead_log_dir is off" in text)
            assert shell.runs() == []
            configured(shell, "act")
            running.wait_for(lambda text: "\nsettling: run " in text)
            assert running.stop() == 0, running.log.read_text()
        (run,) = shell.runs()
        assert run["event"] == "ended"
        after = placement(cluster.bootstrap, TOPIC)
        assert all(4 not in after[number] for number in lost)
        with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
            views = admin.partitions(ids).values()
        assert all(set(view.in_sync) == set(view.replicas) for view in views)
        assert contents(cluster.bootstrap, TOPIC, len(PLACES)) == records
