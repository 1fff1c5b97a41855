"""Each task is killed halfway under load and continued by a host that has only the bucket.

No record is lost, and Kafka's own tools agree. Removals and increases of the replication factor
have tests of their own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.kafka_admin import KafkaAdmin
from lab.load.load_generator import Load
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.ids import BrokerId, PartitionId, TopicName
from tests.end_to_end.test_failed_disk import breaks
from tests.support.archived_hosts import ArchivedHosts, archived_hosts
from tests.support.cli_on_cluster import (
    HANG_S,
    kill_after,
    placement,
    wait_for_requests,
    wait_until,
)
from tests.support.executor.topic_records import assert_exact, loaded
from tests.support.settled_topics import settled

pytestmark = [pytest.mark.soak, pytest.mark.kafka, pytest.mark.spark]

TOPIC = "kept"
PARTITIONS = 12
PLACES = [[1 + n % 3, 1 + (n + 1) % 3] for n in range(PARTITIONS)]
"""Brokers 4 and 5 hold nothing."""
ALL_PLACES = [
    *([1, 2], [2, 3], [3, 4], [4, 5], [5, 1], [3, 1]),
    *([2, 4], [3, 5], [4, 2], [5, 3], [4, 3], [1, 5]),
]
"""Each partition lies in two racks."""
THREE = [[*held, next(b for b in (2, 3, 1) if b not in held)] for held in ALL_PLACES]
HEALING = """
[goals.cooldown]
replicated = {rest_s = 0, return_window_s = 0}

[triggers]
dead_broker = "act"
under_min_isr = "off"
empty_broker = "off"
uneven_load = "off"
"""
SLOW = ("--throttle", "1MB/s")
"""At this rate the first copies take seconds, so that the kill hits the run."""
COPIED = 200_000.0
"""Bytes of each partition that such copies begin with."""
LONG_COPIED = 4_000_000.0
"""The same where copies take half a minute."""


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """Five brokers, of which the last two are no controllers; racks a, b, c, a, b."""
    plan = LocalPlan(brokers=5, directories=2, tier=False)
    with LocalCluster(default_cache_dir(), plan) as started:
        yield started


@pytest.fixture
def hosts(cluster: LocalCluster, tmp_path: Path) -> Iterator[ArchivedHosts]:
    with archived_hosts(tmp_path, cluster.bootstrap) as made:
        yield made


def killed_and_continued(hosts: ArchivedHosts, *command: str) -> None:
    """Kill a command while its run makes requests, and end its task on another host."""
    gone, shell = hosts.host(), hosts.host()
    since = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
    kill_after(gone.start(*command, "--allow-changes", "--yes"), gone, 2, since)
    (task,) = json.loads(shell.plimsoll("task", "list", "-o", "json").stdout)["tasks"]
    assert task["phase"] == "moving", task
    run = shell.plimsoll("task", "resume", "--allow-changes", "--yes", "-o", "json")
    assert run.returncode == 0, run.stderr
    done = json.loads(run.stdout)
    assert (done["task_id"], done["phase"]) == (task["task_id"], "done")


def under_load(cluster: LocalCluster, places: Sequence[Sequence[int]], size: float) -> Load:
    """A continuous load on a new topic, once it has written so many bytes into each partition."""
    cluster.create_topic(TOPIC, places)
    return loaded(cluster, TOPIC, size, partitions=PARTITIONS, rate=200_000.0)


def assert_moved_from(broker: int, after: Mapping[int, Sequence[int]]) -> None:
    """Partitions of a broker that have left it, and no others, have changed their replicas."""
    changed = {n for n, held in enumerate(ALL_PLACES) if [*after[n]] != held}
    left = {n for n, held in enumerate(ALL_PLACES) if broker in held and broker not in after[n]}
    assert changed == left != set()


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        (("demote", "2"), ("undemote", "2")),
        (("maintenance", "3", "on"), ("maintenance", "3", "off")),
    ],
    ids=["demotion", "maintenance"],
)
def test_leaders_leave_and_return(
    cluster: LocalCluster,
    hosts: ArchivedHosts,
    tmp_path: Path,
    begin: tuple[str, ...],
    end: tuple[str, ...],
) -> None:
    load = under_load(cluster, ALL_PLACES, 20_000)
    killed_and_continued(hosts, "broker", *begin)
    after = settled(cluster.bootstrap, TOPIC, tmp_path)
    assert int(begin[1]) not in {held[0] for held in after.values()}
    assert all({*after[n]} == {*held} for n, held in enumerate(ALL_PLACES))
    killed_and_continued(hosts, "broker", *end)
    assert settled(cluster.bootstrap, TOPIC, tmp_path) == dict(enumerate(ALL_PLACES))
    assert_exact(load)


def test_brokers_are_replaced_and_filled(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    load = under_load(cluster, PLACES, COPIED)
    is_settled = partial(settled, cluster.bootstrap, TOPIC, tmp_path)

    killed_and_continued(hosts, "broker", "replace", "2", "5", *SLOW)
    replaced = {n: [5 if b == 2 else b for b in held] for n, held in enumerate(PLACES)}
    assert is_settled() == replaced

    killed_and_continued(hosts, "broker", "add", "4", *SLOW)
    after = is_settled()
    assert sum(4 in held for held in after.values()) >= 3
    assert all({*after[n]} - {*replaced[n]} <= {4} for n in replaced)
    assert_exact(load)


def test_replicas_of_a_dead_broker_are_created_elsewhere(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    load = under_load(cluster, ALL_PLACES, COPIED)
    dead = BrokerId(4)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        cluster.kafka.kill_broker(dead)
        wait_until(lambda: dead not in admin.cluster().alive)
        killed_and_continued(hosts, "cluster", "repair", *SLOW)
        after = placement(cluster.bootstrap, TOPIC)
        assert all(4 not in held for held in after.values())
        assert_moved_from(4, after)
        cluster.kafka.restart_broker(dead)
        wait_until(lambda: dead in admin.cluster().alive)
    assert settled(cluster.bootstrap, TOPIC, tmp_path) == after
    assert_exact(load)


def test_a_directory_that_cannot_be_read_is_healed(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    load = under_load(cluster, ALL_PLACES, COPIED)
    broken = cluster.kafka.brokers[BrokerId(4)].log_dirs[1]
    breaks(broken)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        wait_until(lambda: any(d.offline for d in admin.log_dirs(BrokerId(4), ())))
    killed_and_continued(hosts, "disk", "heal", "4", *SLOW)
    after = settled(cluster.bootstrap, TOPIC, tmp_path)
    assert_moved_from(4, after)
    assert_exact(load)


def test_a_replica_of_each_partition_is_removed(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    load = under_load(cluster, THREE, 20_000)
    killed_and_continued(hosts, "topic", "set-replicas", TOPIC, "2")
    after = settled(cluster.bootstrap, TOPIC, tmp_path)
    for number, held in enumerate(THREE):
        assert len(after[number]) == 2
        assert {*after[number]} < {*held}
        assert after[number][0] == held[0]
    assert_exact(load)


def test_healing_is_continued_by_the_loop_of_another_host(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    load = under_load(cluster, ALL_PLACES, COPIED)
    gone, shell = hosts.host(), hosts.host()
    for host in (gone, shell):
        config = host.folder / "plimsoll.toml"
        config.write_text(f"dead_broker_after = 3.0\n{config.read_text()}{HEALING}")
    auto = ("run", "--auto", "--limits", "eager", "--allow-changes", *SLOW)
    dead = BrokerId(4)
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        cluster.kafka.kill_broker(dead)
        wait_until(lambda: dead not in admin.cluster().alive)
        kill_after(gone.start(*auto), gone, 2)
        with shell.start(*auto, "--resume") as running:
            # It resumes the run before it observes anything.
            running.wait_for(lambda text: "\nbalanced: " in text)
            assert running.stop() == 0, running.log.read_text()
        after = placement(cluster.bootstrap, TOPIC)
        assert all(4 not in held for held in after.values())
        assert_moved_from(4, after)
        cluster.kafka.restart_broker(dead)
        wait_until(lambda: dead in admin.cluster().alive)
    assert settled(cluster.bootstrap, TOPIC, tmp_path) == after
    assert_exact(load)


def test_a_run_ends_though_the_broker_of_a_replica_that_stays_dies(
    cluster: LocalCluster, hosts: ArchivedHosts, tmp_path: Path
) -> None:
    """Its move never ended, since each new record of the producers counted as progress.

    The copies take longer than the cluster needs to fence the dead broker, whose throttle stays.
    """
    cluster.create_topic(TOPIC, PLACES)
    load = loaded(cluster, TOPIC, LONG_COPIED, partitions=PARTITIONS, rate=4_000_000.0)
    load.shift([1.0] * PARTITIONS, 200_000.0)
    shell, dead = hosts.host(), BrokerId(3)
    with shell.start("broker", "replace", "2", "5", *SLOW, "--allow-changes", "--yes") as running:
        wait_for_requests(running, shell, 2)
        cluster.kafka.kill_broker(dead)
        assert running.process.wait(HANG_S) == 0, running.log.read_text()
    replaced = {n: [5 if b == 2 else b for b in held] for n, held in enumerate(PLACES)}
    assert placement(cluster.bootstrap, TOPIC) == replaced
    with KafkaAdmin(cluster.bootstrap, 10.0) as admin:
        cluster.kafka.restart_broker(dead)
        wait_until(lambda: dead in admin.cluster().alive)
        ids = [PartitionId(TopicName(TOPIC), n) for n in replaced]

        def is_whole() -> bool:
            views = admin.partitions(ids).values()
            return all(view.in_sync == {*view.replicas} for view in views)

        wait_until(is_whole)
    # Kafka does so within five minutes.
    elected = shell.plimsoll("elect-leaders", "--allow-changes", "--yes")
    assert elected.returncode == 0, elected.stderr
    cleaned = shell.plimsoll("cleanup", "--allow-changes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert settled(cluster.bootstrap, TOPIC, tmp_path) == replaced
    assert_exact(load)
