"""Four real brokers exchange replicas, die, are fenced or cordoned; topics change."""

import gc
import os
import re
import signal
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, TopicPartition
from kafka.admin import NewPartitions

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from executor.journal.run_history import read_journal
from executor.run.operator_control import Steering
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.errors import GuardrailRefused, PlanOutdated
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.run import JournalEvent, MoveState, RunProgress, RunReport, RunState
from model.stop_rules import StopRules
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import assert_done, execute
from tests.support.executor.topic_records import assert_exact, fill

pytestmark = pytest.mark.kafka

BROKERS = ids([1, 2, 3, 4])
LAST = BROKERS[-1]
"""No controller, so that the others get on without it."""
MEGABYTES = 8
"""More than Kafka passes before it throttles: ten seconds of traffic."""
SLOW = RunLimits(moves_in_flight=1, throttle_bytes_per_s=500_000, health_s=0.2, watch_s=0.5)
HASTY = replace(SLOW, stop_rules=StopRules(no_progress_s=6.0))
CORDON = "cordoned.log.dirs"


@dataclass
class Site:
    """A topic for one test, and the faults injected into it and the brokers."""

    cluster: LocalCluster
    admin: KafkaAdmin
    driver: KafkaAdminClient
    folder: Path
    topic: TopicName

    def create(self, *replicas: list[int], megabytes: int = MEGABYTES) -> None:
        self.cluster.create_topic(self.topic, replicas)
        fill(self.cluster.bootstrap, self.topic, [megabytes] * len(replicas))

    def plan(self, after: dict[int, list[int]]) -> Plan:
        return plan_for(self.cluster.bootstrap, self.topic, after)

    def execute(
        self, plan: Plan, in_mid_run: Callable[[], object] = int, limits: RunLimits = SLOW
    ) -> RunReport:
        """Execute a plan; inject a fault once its first move copies."""
        happened = threading.Event()

        def observe(run: RunProgress) -> None:
            if not happened.is_set() and any(m.bytes_copied for m in run.moves):
                happened.set()
                in_mid_run()

        with connect(self.cluster.bootstrap, timeout_s=3.0, limits=limits) as executor:
            return executor.execute(
                plan, journal_dir=self.folder, observe=observe, steering=Steering()
            )

    def resume(self) -> RunReport:
        with connect(self.cluster.bootstrap, timeout_s=10.0) as executor:
            return executor.resume(
                journal_dir=self.folder, observe=lambda _: None, steering=Steering()
            )

    def replicas(self) -> dict[int, tuple[int, ...]]:
        count = self.admin.topics()[self.topic]
        pids = [PartitionId(self.topic, n) for n in range(count)]
        return {p.partition: v.replicas for p, v in self.admin.partitions(pids).items()}

    def controller(self) -> BrokerId:
        """The active one."""
        quorum = self.driver.describe_metadata_quorum()
        return BrokerId(quorum["topics"][0]["partitions"][0]["leader_id"])

    def kill(self, broker: BrokerId) -> None:
        self.cluster.kafka.kill_broker(broker)

    def hang(self, broker: BrokerId) -> None:
        os.kill(self.cluster.pids[f"broker-{broker}"], signal.SIGSTOP)

    def revive(self) -> None:
        """Let all brokers serve, including killed and hanging ones."""
        for pid in self.cluster.pids.values():
            os.kill(pid, signal.SIGCONT)
        for broker in BROKERS:
            if f"broker-{broker}" not in self.cluster.pids:
                self.cluster.kafka.restart_broker(broker)
        wait_until(lambda: self.admin.cluster().alive == set(BROKERS))

    def roll_back(self) -> RunReport:
        with connect(self.cluster.bootstrap, timeout_s=10.0) as executor:
            back, left = executor.plan_rollback(self.folder, None)
            assert not left
            return executor.execute(
                back, journal_dir=self.folder, observe=lambda _: None, steering=Steering()
            )

    @property
    def rates(self) -> list[dict[str, str]]:
        """Of each broker, in order."""
        alive = sorted(self.admin.cluster().alive)
        return [self.admin.own_broker_configs(broker, RATES) for broker in alive]

    @property
    def is_clean(self) -> bool:
        """Whether no throttle is set and no partition moves."""
        lists = self.admin.own_topic_configs([self.topic], (LEADERS, FOLLOWERS))
        return not any([*self.rates, *lists.values(), self.admin.reassignments()])


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with LocalCluster(default_cache_dir(), LocalPlan(brokers=4, tier=False)) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def load(cluster: LocalCluster) -> Load:
    cluster.create_topic("numbered", [[1, 2], [2, 3], [3, 1]])
    order = LoadOrder(topic="numbered", bytes_per_s=3e5, weights=(1.0,) * 3)
    started = Load(cluster.processes, cluster.bootstrap, order)
    started.start()
    return started


@pytest.fixture
def site(cluster: LocalCluster, tmp_path: Path) -> Iterator[Site]:
    topic = TopicName(f"faults-{uuid.uuid4().hex[:6]}")
    servers = cluster.bootstrap.split(",")
    driver = KafkaAdminClient(bootstrap_servers=servers)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        result = Site(cluster, admin, driver, tmp_path, topic)
        yield result
        result.revive()
        driver.close()
        if topic in admin.topics():
            # A client that has seen brokers die may not find a controller.
            with closing(KafkaAdminClient(bootstrap_servers=servers)) as fresh:
                fresh.delete_topics([topic])
    # While the sockets that the driver has left behind are ignored.
    gc.collect()


def test_replicas_are_exchanged_one_at_a_time(site: Site) -> None:
    site.create([1, 2], [1, 2], megabytes=0)
    plan, topic = site.plan({0: [3, 4], 1: [4, 2]}), site.topic
    with connect(site.cluster.bootstrap, timeout_s=10.0) as executor:
        assert executor.dry_run(plan) == [
            f"AlterPartitionReassignments {topic}-0: [1, 2] -> [1, 4]",
            f"AlterPartitionReassignments {topic}-0: [1, 4] -> [3, 4]",
            f"ElectLeaders preferred {topic}-0: 3",
            f"AlterPartitionReassignments {topic}-1: [1, 2] -> [4, 2]",
            f"ElectLeaders preferred {topic}-1: 4",
        ]
        report = execute(executor, plan, site.folder)
    assert_done(report)
    (journal,) = site.folder.glob("*.jsonl")
    asked = Counter(r.partition for r in read_journal(journal) if r.event is JournalEvent.ISSUING)
    assert asked == {0: 2, 1: 1}
    views = site.admin.partitions([PartitionId(topic, p) for p in (0, 1)])
    assert {v.replicas: v.leader for v in views.values()} == {ids([3, 4]): 3, ids([4, 2]): 4}


def test_three_replicas_move_with_their_leader(site: Site) -> None:
    site.create([1, 2, 3], [1, 2, 3], megabytes=0)
    plan = site.plan({0: [4, 2, 3], 1: [2, 3, 4]})
    with connect(site.cluster.bootstrap, timeout_s=10.0) as executor:
        assert_done(execute(executor, plan, site.folder))


def test_a_target_that_does_not_exist_is_refused(site: Site) -> None:
    site.create([1, 2], megabytes=0)
    with pytest.raises(GuardrailRefused, match=r"broker 77, where .* is dead or"):
        site.execute(site.plan({0: [77, 2]}))
    assert site.replicas() == {0: (1, 2)}


def test_a_cordoned_target_is_refused(site: Site) -> None:
    site.create([1, 2], megabytes=0)
    plan = site.plan({0: [4, 2]})
    site.admin.alter_broker_configs(LAST, {CORDON: "*"})
    try:
        wait_until(lambda: all(d.cordoned for d in site.admin.log_dirs(LAST, ())))
        with pytest.raises(GuardrailRefused, match=r"broker 4, where .* is cordoned"):
            site.execute(plan)
    finally:
        site.admin.alter_broker_configs(LAST, {CORDON: None})
    assert site.replicas() == {0: (1, 2)}


def test_a_topic_deleted_during_a_run_is_skipped_and_named(site: Site) -> None:
    site.create([1, 2], [1, 2])
    plan = site.plan({0: [3, 2], 1: [3, 2]})
    report = site.execute(plan, lambda: site.driver.delete_topics([site.topic]))
    assert report.state is RunState.FAILED
    assert report.reason.endswith(f"{site.topic}-0 no longer exists")
    wait_until(lambda: site.is_clean)


def test_a_topic_recreated_during_a_run_is_left_alone(site: Site) -> None:
    site.create([1, 2], [1, 2])
    plan = site.plan({0: [3, 2], 1: [3, 2]})

    def recreate() -> None:
        site.driver.delete_topics([site.topic])
        wait_until(lambda: site.topic not in site.admin.topics())
        site.cluster.create_topic(site.topic, [[1, 2]] * 2)

    report = site.execute(plan, recreate)
    assert report.state is RunState.FAILED
    assert report.reason.endswith(f"{site.topic}-0 no longer exists")
    assert site.replicas() == {0: (1, 2), 1: (1, 2)}
    wait_until(lambda: site.is_clean)


def test_partitions_added_during_a_run_are_left_alone(site: Site) -> None:
    site.create([1, 2])
    grown = {site.topic: NewPartitions(2, [[1, 3]])}

    def grow() -> None:
        wait_until(lambda: not site.admin.reassignments())
        site.driver.create_partitions(grown)

    report = site.execute(site.plan({0: [3, 2]}), grow)
    assert_done(report)
    assert site.replicas() == {0: (3, 2), 1: (1, 3)}
    wait_until(lambda: site.is_clean)


@pytest.mark.parametrize("number", [0, 1], ids=["in flight", "waiting"])
def test_a_partition_that_someone_else_moves_is_skipped(site: Site, number: int) -> None:
    """To three of them."""
    site.create([1, 2], [1, 2])
    theirs = {TopicPartition(site.topic, number): [1, 2, 4]}

    def change() -> None:
        assert site.driver.alter_partition_reassignments(theirs) == dict.fromkeys(theirs)

    report = site.execute(site.plan({0: [3, 2], 1: [3, 2]}), change)
    assert report.state is RunState.FAILED
    assert f"{site.topic}-{number}" in report.reason
    assert report.moves[number].state is MoveState.DROPPED
    wait_until(lambda: 4 in site.replicas()[number])
    wait_until(lambda: site.is_clean)


def test_someone_elses_throttle_is_restored_after_a_run(site: Site) -> None:
    site.create([1, 2], [1, 2])
    theirs = dict.fromkeys(RATES, "40000000")
    lists = {LEADERS: ["1:1"], FOLLOWERS: ["1:2"]}
    site.admin.alter_broker_configs(BrokerId(1), theirs)
    site.admin.append_topic_configs(site.topic, lists)
    try:
        report = site.execute(site.plan({0: [3, 2], 1: [3, 2]}))
        assert_done(report)
        result = site.admin.own_topic_configs([site.topic], (LEADERS, FOLLOWERS))
        assert result[site.topic] == {key: e for key, (e,) in lists.items()}
        wait_until(lambda: site.rates == [theirs, {}, {}, {}])
    finally:
        site.admin.alter_broker_configs(BrokerId(1), dict.fromkeys(RATES))


@pytest.mark.parametrize("end", [Site.kill, Site.hang])
def test_a_dead_or_hanging_target_stops_the_run_which_is_resumed(
    site: Site, end: Callable[[Site, BrokerId], None]
) -> None:
    site.create([1, 2], [1, 2])
    plan = site.plan({0: [4, 2], 1: [4, 2]})
    report = site.execute(plan, lambda: end(site, LAST), HASTY)
    assert report.state is RunState.FAILED
    # Either the lost broker is noticed first, or the move that hangs for it.
    assert re.match("broker 4(, where .* goes, is dead| died) or .*fenced", report.reason)
    assert "plimsoll cleanup removes it" in report.reason
    assert [m.state for m in report.moves] == [MoveState.STUCK, MoveState.PLANNED]
    site.revive()
    assert_done(site.resume())
    assert site.replicas() == {0: (4, 2), 1: (4, 2)}
    wait_until(lambda: site.is_clean)


def test_the_active_controller_dies_during_a_run(site: Site) -> None:
    dead = site.controller()
    first, second, third = sorted({1, 2, 3, 4} - {dead})
    site.create(*[[first, second]] * 4)
    plan = site.plan({n: [third, second] for n in range(4)})
    report = site.execute(plan, lambda: site.kill(dead))
    assert report.state is RunState.FAILED
    assert report.reason == f"broker {dead} died or was fenced"
    assert {m.state for m in report.moves} == {MoveState.DONE, MoveState.PLANNED}
    assert site.controller() != dead
    site.revive()
    assert_done(site.resume())
    assert site.replicas() == dict.fromkeys(range(4), (third, second))
    wait_until(lambda: site.is_clean)


def test_replicas_given_to_a_broker_before_it_died_are_rolled_back(site: Site) -> None:
    site.create([1, 2], [2, 1], megabytes=1)
    plan = site.plan({0: [LAST, 2], 1: [2, LAST]})
    assert_done(site.execute(plan, limits=RunLimits()))
    site.kill(LAST)
    wait_until(lambda: LAST not in site.admin.cluster().alive)
    assert_done(site.roll_back())
    assert site.replicas() == {0: (1, 2), 1: (2, 1)}
    wait_until(lambda: site.is_clean)


def test_dead_targets_and_moves_stuck_on_them_are_refused(
    cluster: LocalCluster, topic: str, tmp_path: Path
) -> None:
    """A broker dies after planning, for good; someone else's move to it hangs."""
    bootstrap = cluster.bootstrap
    cluster.create_topic(topic, [[1], [1]])
    doomed = plan_for(bootstrap, topic, {0: [4]})
    cluster.kafka.kill_broker(LAST)
    with connect(bootstrap, timeout_s=10.0) as executor, KafkaAdmin(bootstrap, 10.0) as admin:
        wait_until(lambda: LAST not in admin.cluster().alive)
        with pytest.raises(PlanOutdated, match="broker 4 is dead or fenced"):
            execute(executor, doomed, tmp_path)
        admin.reassign({doomed.moves[0].id: ids([4])})
        healthy = plan_for(bootstrap, topic, {1: [2]})
        with pytest.raises(GuardrailRefused, match=rf"{topic}-0 is being moved to \[4\]"):
            execute(executor, healthy, tmp_path)
    assert not list(tmp_path.glob("*.jsonl"))


def test_nothing_that_was_produced_meanwhile_is_lost_or_written_twice(load: Load) -> None:
    assert_exact(load)
