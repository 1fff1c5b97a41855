"""`run --auto` fills a broker that joins empty."""

from pathlib import Path

import pytest

from lab.local_cluster.local_cluster import LocalCluster
from model.ids import TopicName
from tests.end_to_end.test_auto import SETTINGS
from tests.support.cli_on_cluster import Shell, placement

TOPIC = TopicName("spread")
COUNT = 12
POLICY = """
[[goals.balance]]
resource = "replicas"

[triggers]
rule_violated = "off"
uneven_load = "off"
"""
"""Replicas are balanced rather than loads, so that rates on a busy machine do not matter."""


@pytest.mark.kafka
@pytest.mark.spark
def test_a_broker_that_joins_empty_is_filled_while_uneven_load_is_off(
    new_cluster: LocalCluster, tmp_path: Path
) -> None:
    homes = sorted(new_cluster.kafka.brokers)
    new_cluster.create_topic(TOPIC, [[homes[n % len(homes)]] for n in range(COUNT)])
    shell = Shell(tmp_path, new_cluster.bootstrap)
    (tmp_path / "plimsoll.toml").write_text(f"{SETTINGS}\n{POLICY}")
    with shell.start("run", "--auto", "--limits", "eager", "--allow-changes") as running:
        running.wait_for(lambda text: "\nbalanced: " in text)
        assert shell.runs() == []
        added = new_cluster.kafka.add_broker("a")
        running.wait_for(lambda text: "\nsettling: run " in text)
        assert running.stop() == 0, running.log.read_text()
    (run,) = shell.runs()
    assert run["event"] == "ended"
    found = placement(new_cluster.bootstrap, TOPIC)
    assert sum(replicas == [added] for replicas in found.values()) in (2, 3)
