"""`run --auto` beside other clients, dying brokers and flapping ones."""

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId, TopicName
from tests.support.cli_offline import RUN_S
from tests.support.cli_on_cluster import Running, Shell, leaders_per_broker, wait_until
from tests.support.executor.plan_builders import ids
from tests.support.executor.topic_records import fill

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

VICTIM = BrokerId(3)
FLAPS = 4
MEGABYTES = 8
"""More than Kafka passes before it throttles: ten seconds of traffic."""
FOREIGN_MEGABYTES = 48
"""However low its throttle is, Kafka passes a megabyte in eleven seconds."""
RATE = 1_000_000
SETTINGS = f"""
window_s = 5.0
throttle = {RATE}

[stop_rules]
no_progress_s = 5.0

[[goals.balance]]
resource = "replicas"
floor = 0.0

[goals.cooldown]
replicated = {{rest_s = 0, return_window_s = 0}}

[limits.reluctant]
replica_moves = 1
leader_changes = 50
bytes = 1000000000
partitions_per_topic = 50
moves_in_flight = 2
min_gain = 1.0
pause = 1
confirm = 1
"""


@dataclass(frozen=True)
class Site:
    """A topic on the cluster, and a folder for plimsoll."""

    cluster: LocalCluster
    admin: KafkaAdmin
    shell: Shell
    topic: TopicName

    @contextmanager
    def auto(self, limits: str) -> Iterator[Running]:
        """`run --auto` until the end of the block, where Ctrl-C ends it."""
        arguments = ("run", "--auto", "--limits", limits, "--allow-changes")
        with self.shell.start(*arguments) as running:
            yield running
            assert running.process.poll() is None, running.log.read_text()

    def is_balanced(self) -> bool:
        """Whether the six partitions are on three brokers."""
        return leaders_per_broker(self.cluster.bootstrap, self.topic) == [2, 2, 2]

    def is_clean(self) -> bool:
        """Whether no throttle is set and no partition moves."""
        try:
            rates = [self.admin.own_broker_configs(broker, RATES) for broker in ids([1, 2, 3])]
        except ClusterUnreachable:
            return False
        lists = self.admin.own_topic_configs([self.topic], (LEADERS, FOLLOWERS))
        return not any([*rates, *lists.values(), self.admin.reassignments()])

    def serves(self, broker: BrokerId) -> bool | None:
        """None if the driver has queried a hanging broker."""
        try:
            return broker in self.admin.cluster().alive
        except ClusterUnreachable:
            return None


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(tier=False)) as started:
        yield started


@pytest.fixture
def site(cluster: LocalCluster, tmp_path: Path) -> Iterator[Site]:
    """Six partitions on the first of three brokers."""
    topic = TopicName(f"auto-{uuid.uuid4().hex[:6]}")
    cluster.create_topic(topic, [[1]] * 6)
    (tmp_path / "plimsoll.toml").write_text(SETTINGS)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        # A test that failed may have left its own.
        for broker in ids([1, 2, 3]):
            admin.alter_broker_configs(broker, dict.fromkeys(RATES))
        yield Site(cluster, admin, Shell(tmp_path, cluster.bootstrap), topic)
    driver = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    driver.delete_topics([topic])
    driver.close()


def times(text: str, phase: str) -> int:
    """How often a phase was entered."""
    return sum(line.startswith(f"{phase}: ") for line in text.splitlines())


def test_auto_waits_for_the_end_of_a_foreign_reassignment(site: Site) -> None:
    fill(site.cluster.bootstrap, site.topic, [FOREIGN_MEGABYTES])
    moving = PartitionId(site.topic, 0)
    throttle = dict.fromkeys(RATES, "1000")
    for broker in ids([1, 2, 3]):
        site.admin.alter_broker_configs(broker, throttle)
    every = {LEADERS: ["0:1"], FOLLOWERS: ["0:2"]}
    site.admin.append_topic_configs(site.topic, every)
    site.admin.reassign({moving: ids([2])})
    with site.auto("eager") as running:
        # Loads that are measured meanwhile decide nothing.
        running.wait_for(lambda text: "1 partition is being moved outside of a run" in text)
        assert moving in site.admin.reassignments()
        assert site.shell.runs() == []
        assert times(running.log.read_text(), "solving") == 0
        for broker in ids([1, 2, 3]):
            site.admin.alter_broker_configs(broker, dict.fromkeys(RATES))
        site.admin.alter_topic_configs(site.topic, dict.fromkeys(every))
        running.wait_for(lambda text: "balanced: " in text)
        assert site.is_balanced()
        wait_until(site.is_clean, RUN_S)


def test_auto_restores_settings_of_a_failed_run_and_balances_afterwards(site: Site) -> None:
    fill(site.cluster.bootstrap, site.topic, [MEGABYTES] * 6)
    with site.auto("eager") as running:
        running.wait_for(lambda _: bool(site.admin.reassignments()))
        site.cluster.kafka.kill_broker(VICTIM)
        left = f"broker {VICTIM} did not answer and keeps its throttle"
        running.wait_for(lambda text: left in text)
        site.cluster.kafka.restart_broker(VICTIM)
        running.wait_for(lambda text: "its throttle is gone" in text)
        running.wait_for(lambda text: "balanced: " in text)
        assert site.is_balanced()
        wait_until(site.is_clean, RUN_S)


def test_a_flapping_broker_does_not_cause_a_plan_per_flap(site: Site) -> None:
    """A plan is outdated each time the broker is fenced or returns."""
    pid = site.cluster.pids[f"broker-{VICTIM}"]
    with site.auto("reluctant") as running:
        running.wait_for(lambda text: "less than min_gain" in text)
        try:
            for flap in range(FLAPS):
                os.kill(pid, signal.SIGSTOP)
                wait_until(lambda: site.serves(VICTIM) is False, RUN_S)
                if not flap:
                    running.wait_for(lambda text: "brokers joined or left" in text)
                os.kill(pid, signal.SIGCONT)
                wait_until(lambda: site.serves(VICTIM) is True, RUN_S)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert times(running.log.read_text(), "solving") < FLAPS
    assert site.shell.runs() == []
