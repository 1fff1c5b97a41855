"""Competing rebalancers are reported before a plan is executed."""

import contextlib
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import TopicName
from model.plan.plan import write_plan
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.executor.plan_builders import plan_for

pytestmark = pytest.mark.kafka

METRICS = "__CruiseControlMetrics"


@contextlib.contextmanager
def beside(cluster: LocalCluster, topic: str) -> Iterator[None]:
    """A topic that identifies a competing rebalancer; deleted afterwards."""
    cluster.create_topic(topic, [[1]])
    try:
        yield
    finally:
        client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
        with contextlib.closing(client), KafkaAdmin(cluster.bootstrap, 10.0) as admin:
            client.delete_topics([topic])
            wait_until(lambda: TopicName(topic) not in admin.topics())


def test_a_plan_is_executed_beside_cruise_control_with_a_warning(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    topic = f"beside-{uuid.uuid4().hex[:6]}"
    local_cluster.create_topic(topic, [[1]])
    shell = Shell(tmp_path, local_cluster.bootstrap)
    write_plan(tmp_path / "plan.json", plan_for(shell.bootstrap, topic, {0: [2]}))
    alone = shell.plimsoll("apply", "plan.json", "--dry-run")
    assert alone.returncode == 0
    assert METRICS not in alone.stderr
    with beside(local_cluster, METRICS):
        message = f"plimsoll: The topic {METRICS} belongs to Cruise Control. Let it start no"
        process = shell.plimsoll("apply", "plan.json", "--dry-run")
        assert process.returncode == 0
        assert message in process.stderr
        done = shell.plimsoll("apply", "plan.json", "--allow-changes", "--yes")
        assert done.returncode == 0, done.stderr
        assert message in done.stderr
        assert placement(shell.bootstrap, topic) == {0: [2]}
        back = shell.plimsoll("rollback", "--dry-run")
        assert message in back.stderr
