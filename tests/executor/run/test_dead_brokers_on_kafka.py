"""Questions while the cluster still lists brokers that have just died."""

import gc
from collections.abc import Iterator

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId

pytestmark = pytest.mark.kafka

LONG_MS = "600000"
"""The dead brokers are not fenced while the test lasts."""
CLIENTS = 25
"""Each asks a random broker first."""


@pytest.fixture
def half_dead() -> Iterator[LocalCluster]:
    """Four brokers, of which two have died, one of the three controllers among them."""
    sessions = {"broker.session.timeout.ms": LONG_MS}
    plan = LocalPlan(brokers=4, tier=False, properties=sessions)
    with LocalCluster(default_cache_dir(), plan) as started:
        for broker in (3, 4):
            started.kafka.kill_broker(BrokerId(broker))
        yield started
        # The driver leaves the sockets of refused connections behind.
        gc.collect()


def test_any_live_broker_answers(half_dead: LocalCluster) -> None:
    for _ in range(CLIENTS):
        with KafkaAdmin(half_dead.bootstrap, 10.0) as admin:
            assert admin.cluster().alive == {1, 2, 3, 4}
