"""Several Kafka versions: observe, plan, apply, roll back, work on tasks, lose nothing.

`make test-versions` runs this on every pinned version, and records what each can do.
"""

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import pytest

from clients.connection import Connection
from clients.jvm.jars import default_cache_dir
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from executor.client.kafka_admin import KafkaAdmin
from executor.executor import connect
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.goals.goals import Goal, Goals, MinLeaders, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.names import Names
from model.plan.plan import Plan, write_plan
from model.snapshot.snapshot import BrokerState, Resource, Snapshot, StorageKind
from solver.solve import solve
from tests.conftest import STEADY
from tests.end_to_end.test_failed_disk import breaks
from tests.support.cli_on_cluster import Shell, placement, wait_until
from tests.support.collector.waiting import PATIENCE_S, eventually
from tests.support.executor.topic_records import assert_exact
from tests.support.kafka_versions import Capabilities, all_versions, chosen_versions, record

WEIGHTS = (3.0, 2.0, 1.0, 1.0)
BEFORE = {"plain": [1, 2], "tiered": [1]}
"""Replicas of every partition, by topic."""
TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": "1048576",
    "local.retention.bytes": "1048576",
    "local.retention.ms": "-2",
    "file.delete.delay.ms": "200",
}
GOALS = Goals(
    balance=(Goal(resource=Resource.NET_IN, floor=0.0),),
    # So that partitions of both topics move, whatever the sizes measured.
    min_leaders=(MinLeaders(topics=Names(exact=tuple(BEFORE))),),
)
PLACES = [[1, 2], [2, 3], [3, 4], [4, 2]]
"""Replicas of each partition before tasks; each lies in two racks."""
WINDOW_S = 5.0
CORDONED = BrokerId(3)


class WithoutSpark(Collector):
    """Loads as they are until Spark has started: it reads no broker, whatever the version."""

    def _run_spark(self) -> None:
        """Start nothing."""


def started_load(cluster: LocalCluster, topic: str) -> Load:
    order = LoadOrder(topic=topic, bytes_per_s=1e6, weights=WEIGHTS)
    load = Load(cluster.processes, cluster.bootstrap, order, name=topic)
    load.start()
    wait_until(lambda: min(load.status().acknowledged_bytes) > 0)
    return load


def observed(cluster: LocalCluster, folder: Path) -> Snapshot:
    """A snapshot of a whole window."""
    settings = CollectorSettings(
        state_dir=folder, cache_dir=default_cache_dir(), window_s=WINDOW_S, apart=True
    )
    found: list[Snapshot] = []

    def whole_window() -> bool:
        assert watcher.failure is None
        if (latest := watcher.snapshot()) is not None:
            found.append(latest)
        past_ms = found[-1].header.taken_at_ms - found[0].header.taken_at_ms if found else 0
        return past_ms > 1000 * WINDOW_S

    with WithoutSpark(Connection(cluster.bootstrap), settings) as watcher:
        eventually(whole_window, f"no loads after {PATIENCE_S} s")
    return found[-1]


def planned(snapshot: Snapshot) -> Plan:
    """A plan that moves partitions of both topics, which different parts execute."""
    plan = solve(snapshot, GOALS, SolveLimits(work=1.0)).best
    assert plan is not None
    assert {move.topic for move in plan.moves} == set(BEFORE)
    return plan


def are_placed(bootstrap: str, plan: Plan) -> bool:
    """Whether the brokers report the placement that the plan leads to."""
    found = {topic: placement(bootstrap, topic) for topic in BEFORE}
    return all(found[m.topic][m.partition] == list(m.replicas_after) for m in plan.moves)


def check_cordon(cluster: LocalCluster, admin: KafkaAdmin, folder: Path, *, known: bool) -> None:
    """Cordon a broker and end that, or read that its version has no cordons."""

    def is_cordoned() -> bool:
        return all(d.cordoned for d in admin.log_dirs(CORDONED, ()))

    with connect(cluster.bootstrap, timeout_s=10.0) as executor:
        (change,) = executor.cordon([CORDONED], journal_dir=folder, cluster_id=cluster.cluster_id)
        assert change.changed == known, change
        assert known or "which came with Kafka 4.3" in change.note
        wait_until(lambda: is_cordoned() == known)
        (change,) = executor.uncordon([CORDONED], journal_dir=folder, cluster_id=cluster.cluster_id)
        assert change.changed == known, change
        wait_until(lambda: not is_cordoned())


@pytest.mark.kafka
@pytest.mark.parametrize("version", chosen_versions())
def test_a_plan_is_applied_and_rolled_back_and_no_record_is_lost(
    version: str, tmp_path: Path
) -> None:
    with LocalCluster(default_cache_dir(), replace(STEADY, version=version)) as cluster:
        for topic, replicas in BEFORE.items():
            configs = TIERED if topic == "tiered" else {}
            cluster.create_topic(topic, [replicas] * len(WEIGHTS), configs)
        loads = [started_load(cluster, topic) for topic in BEFORE]
        with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
            capabilities = Capabilities.observed(admin, BrokerId(1))
            assert capabilities == Capabilities.expected(version)
            check_cordon(cluster, admin, tmp_path / "cordons", known=capabilities.cordons)

        snapshot = observed(cluster, tmp_path / "observed")
        assert [b.state for b in snapshot.header.brokers] == [BrokerState.ALIVE] * 3
        kinds = {t.name: t.storage for t in snapshot.header.topics if not t.internal}
        assert kinds == {"plain": StorageKind.REPLICATED, "tiered": StorageKind.TIERED}
        plan = planned(snapshot)
        write_plan(tmp_path / "plan.json", plan)

        shell = Shell(tmp_path, cluster.bootstrap)
        applied = shell.plimsoll("apply", "plan.json", "--allow-changes", "--yes")
        assert applied.returncode == 0, applied.stdout + applied.stderr
        wait_until(lambda: are_placed(cluster.bootstrap, plan))
        undone = shell.plimsoll("rollback", "--allow-changes", "--yes")
        assert undone.returncode == 0, undone.stdout + undone.stderr
        back = {t: dict.fromkeys(range(len(WEIGHTS)), replicas) for t, replicas in BEFORE.items()}
        wait_until(lambda: {t: placement(cluster.bootstrap, t) for t in BEFORE} == back)
        for load in loads:
            assert_exact(load)
    if all_versions():
        record(version, asdict(capabilities))


def done(shell: Shell, *command: str) -> str:
    """Request a task and wait until it is done; what it says."""
    run = shell.plimsoll(*command, "--allow-changes", "--yes", "-o", "json")
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["phase"] == "done", run.stderr
    return run.stderr


@pytest.mark.soak  # Minutes per version: `make test-versions` runs it.
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("version", chosen_versions())
def test_tasks_are_done_and_no_record_is_lost(version: str, tmp_path: Path) -> None:
    with LocalCluster(default_cache_dir(), replace(STEADY, version=version, brokers=4)) as cluster:
        for topic in BEFORE:
            cluster.create_topic(topic, PLACES, TIERED if topic == "tiered" else {})
        loads = [started_load(cluster, topic) for topic in BEFORE]
        (tmp_path / "plimsoll.toml").write_text(f"window_s = {WINDOW_S}\n")
        shell = Shell(tmp_path, cluster.bootstrap)

        def lists() -> list[list[int]]:
            # Brokers may name the partitions in any order.
            found = [sorted(placement(shell.bootstrap, topic).items()) for topic in BEFORE]
            return [held for rows in found for _, held in rows]

        def prefers_others(broker: int) -> bool:
            return all(held[0] != broker for held in lists())

        said = done(shell, "broker", "remove", "4")
        cordons = Capabilities.expected(version).cordons
        assert ("broker 4 is cordoned" in said) == cordons
        assert (
            "broker 4 was not cordoned in Kafka: it has no cordoned.log.dirs" in said
        ) != cordons
        assert all(4 not in held for held in lists())
        included = shell.plimsoll("broker", "include", "4", "--allow-changes")
        assert included.returncode == 0, included.stderr
        emptied = lists()
        done(shell, "broker", "replace", "1", "4")
        assert lists() == [[4 if b == 1 else b for b in held] for held in emptied]
        done(shell, "broker", "add", "1")
        wait_until(lambda: any(1 in held for held in lists()))
        before = lists()
        for begin, end in (
            (("demote", "2"), ("undemote", "2")),
            (("maintenance", "3", "on"), ("maintenance", "3", "off")),
        ):
            done(shell, "broker", *begin)
            wait_until(partial(prefers_others, int(begin[1])))
            done(shell, "broker", *end)
            wait_until(lambda: lists() == before)
        done(shell, "topic", "set-replicas", "plain", "3")
        assert {len(held) for held in placement(shell.bootstrap, "plain").values()} == {3}
        for load in loads:
            assert_exact(load)
    if all_versions():
        record(version, {"tasks": True})


@pytest.mark.soak  # As the tasks.
@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("version", chosen_versions())
def test_disks_and_dead_brokers_are_healed_and_no_record_is_lost(
    version: str, tmp_path: Path
) -> None:
    """On plain disks: several log directories of tiered topics came late."""
    plan = LocalPlan(version=version, brokers=4, directories=2, tier=False)
    with LocalCluster(default_cache_dir(), plan) as cluster:
        cluster.create_topic("plain", PLACES)
        load = started_load(cluster, "plain")
        (tmp_path / "plimsoll.toml").write_text(f"window_s = {WINDOW_S}\n")
        shell = Shell(tmp_path, cluster.bootstrap)
        ids = [PartitionId(TopicName("plain"), number) for number in range(len(PLACES))]
        with KafkaAdmin(cluster.bootstrap, 10.0) as admin:

            def are_in_sync() -> bool:
                return all({*v.replicas} == v.in_sync for v in admin.partitions(ids).values())

            emptied = str(cluster.kafka.brokers[BrokerId(2)].log_dirs[1])
            said = done(shell, "disk", "remove", "2", emptied)
            cordons = Capabilities.expected(version).cordons
            assert (f"cordoned {emptied} of broker 2" in said) == cordons
            assert ("which came with Kafka 4.3" in said) != cordons
            dirs = {d.path: d.sizes for d in admin.log_dirs(BrokerId(2), ids)}
            assert not dirs[emptied]

            cluster.kafka.kill_broker(BrokerId(4))
            wait_until(lambda: 4 not in admin.cluster().alive)
            done(shell, "cluster", "repair")
            assert all(4 not in v.replicas for v in admin.partitions(ids).values())
            # On a loaded machine, a follower may fall behind for a moment.
            wait_until(are_in_sync)
            cluster.kafka.restart_broker(BrokerId(4))
            wait_until(lambda: 4 in admin.cluster().alive)
            # Last: Kafka creates no replica again on a broker in whose failed directory it was.
            breaks(cluster.kafka.brokers[BrokerId(3)].log_dirs[1])
            wait_until(lambda: any(d.offline for d in admin.log_dirs(BrokerId(3), ())))
            done(shell, "disk", "heal", "3")
            wait_until(are_in_sync)
        assert_exact(load)
