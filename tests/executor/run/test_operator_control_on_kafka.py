"""Aborting a run on stock Kafka while it copies."""

from functools import partial
from pathlib import Path

import pytest

from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from executor.run.operator_control import Steering
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, TopicName
from model.run import MoveState, RunProgress, RunState
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.topic_records import fill

pytestmark = pytest.mark.kafka


@pytest.fixture
def filled(local_cluster: LocalCluster, topic: str) -> str:
    """A topic of two partitions on brokers 1 and 2, with 10 MB in each."""
    local_cluster.create_topic(topic, [[1, 2]] * 2)
    fill(local_cluster.bootstrap, topic, [10, 10])
    return topic


def test_an_abort_during_a_copy_restores_the_placement_and_settings(
    local_cluster: LocalCluster, filled: str, tmp_path: Path
) -> None:
    """The first list would be left in another order by a cancel alone."""
    plan = plan_for(local_cluster.bootstrap, filled, {0: [3, 2], 1: [1, 3]})
    steering = Steering()

    def abort_in_mid_copy(seen: RunProgress) -> None:
        if any(m.bytes_copied for m in seen.moves):
            steering.abort()

    limits = RunLimits(throttle_bytes_per_s=100_000)
    with connect(local_cluster.bootstrap, timeout_s=10.0, limits=limits) as executor:
        report = executor.execute(
            plan, journal_dir=tmp_path, observe=abort_in_mid_copy, steering=steering
        )
    assert (report.state, report.reason) == (RunState.STOPPED, "aborted by the operator")
    assert [m.state for m in report.moves] == [MoveState.DROPPED] * 2
    assert {m.note for m in report.moves} == {"cancelled by the operator"}
    with KafkaAdmin(local_cluster.bootstrap, 10.0) as admin:
        assert admin.reassignments() == {}
        for view in admin.partitions([m.id for m in plan.moves]).values():
            assert (view.replicas, view.leader) == (ids([1, 2]), 1)
        name = TopicName(filled)
        keys = (LEADERS, FOLLOWERS)
        wait_until(lambda: not any(admin.own_topic_configs([name], keys).values()))
        for broker in ids([1, 2, 3]):
            wait_until(partial(_has_no_rates, admin, broker))


def _has_no_rates(admin: KafkaAdmin, broker: BrokerId) -> bool:
    return not admin.own_broker_configs(broker, RATES)
