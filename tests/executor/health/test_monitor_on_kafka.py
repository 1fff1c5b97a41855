"""The cluster monitor on real Kafka: a healthy cluster breaks no rule."""

import uuid
from collections.abc import Sequence

import pytest

from executor.client.kafka_admin import KafkaAdmin
from executor.health.monitor import ClusterMonitor
from executor.schedule.disk_headroom import DiskHeadroom
from executor.timing import RunLimits, Timing
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.stop_rules import StopRule
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import plan_for

pytestmark = pytest.mark.kafka
EVERY_TIME = RunLimits(watch_s=0.0, disk_look_s=0.0)


def made(cluster: LocalCluster, replicas: Sequence[Sequence[int]]) -> str:
    topic = f"watch-{uuid.uuid4().hex[:6]}"
    cluster.create_topic(topic, replicas)
    return topic


def watch(admin: KafkaAdmin, moves: Sequence[Move], limits: RunLimits) -> ClusterMonitor:
    headroom = DiskHeadroom(admin, limits, Timing()).of
    return ClusterMonitor(admin, moves, limits, Timing(), headroom)


def test_new_topics_in_a_healthy_cluster_break_no_rule(local_cluster: LocalCluster) -> None:
    plan = plan_for(local_cluster.bootstrap, made(local_cluster, [[1]]), {0: [2]})
    with KafkaAdmin(local_cluster.bootstrap, 10.0) as admin:
        watching = watch(admin, plan.moves, EVERY_TIME)
        assert watching(True) == ()
        for _ in range(3):
            made(local_cluster, [[1, 2]] * 4)
            assert watching(True) == ()


def test_a_disk_without_its_reserve_is_named(local_cluster: LocalCluster) -> None:
    plan = plan_for(local_cluster.bootstrap, made(local_cluster, [[1]]), {0: [2]})
    limits = RunLimits(disk_reserve_bytes=10**18)
    with KafkaAdmin(local_cluster.bootstrap, 10.0) as admin:
        (broken,) = watch(admin, plan.moves, limits)(False)
    assert broken.rule is StopRule.DISK
    assert broken.reason == "the disk of broker 2 is down to its reserve"


def test_the_cluster_reports_partitions_and_controller_elections(
    local_cluster: LocalCluster,
) -> None:
    topic = TopicName(made(local_cluster, [[1, 2]] * 2))
    with KafkaAdmin(local_cluster.bootstrap, 10.0) as admin:
        ids = {PartitionId(topic, n) for n in range(2)}
        wait_until(lambda: ids <= set(admin.partitions()))
        assert admin.partitions()[min(ids)].replicas == (BrokerId(1), BrokerId(2))
        assert (admin.controller_elections() or 0) >= 1
        assert set(admin.partitions(ids)) == ids
        assert admin.partitions(()) == {}
