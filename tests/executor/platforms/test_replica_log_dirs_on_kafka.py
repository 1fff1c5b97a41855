"""Replicas change log directories on stock Kafka, inside brokers and between them."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from clients.jvm.jars import default_cache_dir
from executor.client.cluster_admin import local_bytes
from executor.client.kafka_admin import KafkaAdmin
from executor.client.responses import PartitionResponse, ResponseStatus
from executor.executor import Executor
from executor.journal.run_history import read_journal
from lab.local_cluster.local_cluster import LocalCluster, LocalPlan
from model.errors import PlanOutdated
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.run import JournalEvent
from model.snapshot.snapshot import StorageKind
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.log_dir_plans import Places, places, plan_to, swapped_dirs
from tests.support.executor.plan_builders import ids
from tests.support.executor.real_runs import assert_done, execute
from tests.support.executor.topic_records import contents, fill

pytestmark = pytest.mark.kafka

TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(2**20),
    "local.retention.bytes": str(2**20),
    "local.retention.ms": "-2",
    "file.delete.delay.ms": "200",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    """Three brokers with two log directories each."""
    with LocalCluster(default_cache_dir(), LocalPlan(directories=2)) as started:
        yield started


@pytest.fixture
def bootstrap(cluster: LocalCluster) -> str:
    return cluster.bootstrap


def requests_sent(folder: Path) -> Counter[int | None]:
    (journal,) = folder.glob("*.jsonl")
    events = read_journal(journal)
    return Counter(r.partition for r in events if r.event is JournalEvent.ISSUING)


def roll_back(executor: Executor, folder: Path) -> None:
    """Roll the newest run back completely."""
    plan, unrestorable = executor.plan_rollback(folder, None)
    assert unrestorable == []
    assert_done(execute(executor, plan, folder))


def test_replicas_change_directories_inside_their_brokers_and_back(
    cluster: LocalCluster, admin: KafkaAdmin, executor: Executor, topic: str, tmp_path: Path
) -> None:
    lists = {0: [1, 2], 1: [2, 3]}
    cluster.create_topic(topic, list(lists.values()))
    fill(cluster.bootstrap, topic, [4, 2])
    before, records = places(admin, topic, lists), contents(cluster.bootstrap, topic, 2)
    targets = swapped_dirs(cluster, before)
    targets[1].pop(3)
    plan = plan_to(cluster, topic, lists, before, targets)
    assert executor.dry_run(plan) == [
        f"AlterReplicaLogDirs {topic}-{p} on broker {b}: {before[p][b]} -> {to}"
        for p, at in targets.items()
        for b, to in at.items()
    ]
    assert places(admin, topic, lists) == before

    report = execute(executor, plan, tmp_path)
    assert_done(report)
    assert places(admin, topic, lists) == {0: targets[0], 1: targets[1] | {3: before[1][3]}}
    assert contents(cluster.bootstrap, topic, 2) == records
    copied = [m.bytes_copied or 0 for m in report.moves]
    assert copied[0] > 8e6 > copied[1] > 2e6

    roll_back(executor, tmp_path)
    assert places(admin, topic, lists) == before
    assert contents(cluster.bootstrap, topic, 2) == records


BEFORE = {p: [1, 2] for p in range(3)}
AFTER = {p: [3, 2] for p in range(3)}


def moved(cluster: LocalCluster, topic: str, admin: KafkaAdmin) -> tuple[Places, Plan]:
    """Three partitions: two to broker 3, one directory each; one changes both."""
    cluster.create_topic(topic, list(BEFORE.values()))
    fill(cluster.bootstrap, topic, [2] * 3)
    before = places(admin, topic, BEFORE)
    new = [str(path) for path in cluster.kafka.brokers[BrokerId(3)].log_dirs]
    targets = {p: {3: new[p % 2]} for p in range(3)}
    targets[2] |= {2: swapped_dirs(cluster, before)[2][2]}
    return before, plan_to(cluster, topic, AFTER, before, targets)


def test_a_new_replica_is_created_in_the_planned_directory(
    cluster: LocalCluster, admin: KafkaAdmin, executor: Executor, topic: str, tmp_path: Path
) -> None:
    before, plan = moved(cluster, topic, admin)
    records = contents(cluster.bootstrap, topic, 3)
    report = execute(executor, plan, tmp_path)
    assert_done(report)
    assert set(requests_sent(tmp_path).values()) == {1}
    result = places(admin, topic, AFTER)
    for move in plan.moves:
        three, two = move.log_dirs_after
        stays = before[move.partition][2]
        assert result[move.partition] == {3: three, 2: stays if two == "any" else two}
    assert contents(cluster.bootstrap, topic, 3) == records

    roll_back(executor, tmp_path)
    assert places(admin, topic, BEFORE) == before
    assert contents(cluster.bootstrap, topic, 3) == records


class Forgetful(KafkaAdmin):
    """Brokers forget the requested directories at first, as a restarted one does."""

    requests_seen = 0

    def alter_log_dirs(
        self, broker: BrokerId, targets: Mapping[PartitionId, str]
    ) -> dict[PartitionId, PartitionResponse]:
        self.requests_seen += 1
        if self.requests_seen > 1:
            return super().alter_log_dirs(broker, targets)
        return dict.fromkeys(targets, PartitionResponse.accepted())


def replicas_in(folder: Path) -> int:
    return sum(not p.name.startswith("__cluster") for p in folder.glob("*-*/"))


def test_a_replica_created_in_the_wrong_directory_is_moved_again(
    cluster: LocalCluster, admin: KafkaAdmin, topic: str, tmp_path: Path
) -> None:
    lists = {p: [1] for p in range(2)}
    cluster.create_topic(topic, list(lists.values()))
    before = places(admin, topic, lists)
    # Kafka fills the emptier directory, so not both of two come into the fuller one.
    fuller = max(cluster.kafka.brokers[BrokerId(3)].log_dirs, key=replicas_in)
    targets = {p: {3: str(fuller)} for p in lists}
    plan = plan_to(cluster, topic, {0: [3], 1: [3]}, before, targets)
    with Executor(Forgetful(cluster.bootstrap, 10.0)) as executor:
        report = execute(executor, plan, tmp_path)
    assert_done(report)
    assert places(admin, topic, {0: [3], 1: [3]}) == targets
    assert max(requests_sent(tmp_path).values()) == 2


def test_the_local_part_of_a_tiered_partition_changes_its_directory(
    cluster: LocalCluster, admin: KafkaAdmin, executor: Executor, topic: str, tmp_path: Path
) -> None:
    """Kafka has allowed that since 3.8."""
    cluster.create_topic(topic, [[1, 2]], TIERED)
    fill(cluster.bootstrap, topic, [6])
    pid = PartitionId(TopicName(topic), 0)
    # Local retention and one segment: no broker has anything left to upload or delete.
    brokers = ids([1, 2])
    wait_until(lambda: all(0 < local_bytes(admin, b, [pid])[pid] < 2.5e6 for b in brokers))
    records = contents(cluster.bootstrap, topic, 1)
    before = places(admin, topic, {0: [1, 2]})
    targets = swapped_dirs(cluster, before)
    plan = plan_to(cluster, topic, {0: [1, 2]}, before, targets)
    assert plan.moves[0].storage is StorageKind.TIERED
    report = execute(executor, plan, tmp_path)
    assert_done(report)
    assert (report.moves[0].bytes_copied or 0) < 6e6
    assert places(admin, topic, {0: [1, 2]}) == targets
    assert contents(cluster.bootstrap, topic, 1) == records


def test_an_unknown_directory_is_refused_before_anything_is_sent(
    cluster: LocalCluster, admin: KafkaAdmin, executor: Executor, topic: str, tmp_path: Path
) -> None:
    cluster.create_topic(topic, [[1]])
    before = places(admin, topic, {0: [1]})
    plan = plan_to(cluster, topic, {0: [1]}, before, {0: {1: "/nowhere"}})
    message = f"Broker 1 has no log directory /nowhere, where {topic}-0 goes; it has"
    with pytest.raises(PlanOutdated, match=message):
        execute(executor, plan, tmp_path)
    assert not list(tmp_path.glob("*.jsonl"))
    assert places(admin, topic, {0: [1]}) == before


def test_brokers_answer_for_each_replica(
    cluster: LocalCluster, admin: KafkaAdmin, topic: str
) -> None:
    cluster.create_topic(topic, [[1], [2]])
    present, absent = (PartitionId(TopicName(topic), number) for number in (0, 1))
    one = BrokerId(1)
    (answer,) = admin.alter_log_dirs(one, {present: "/nowhere"}).values()
    assert answer.status is ResponseStatus.REFUSED
    assert answer.reason == "broker 1 answers LogDirNotFound (57)"
    here = places(admin, topic, {0: [1]})[0][1]
    answers = admin.alter_log_dirs(one, {present: here, absent: here})
    assert set(answers.values()) == {PartitionResponse.accepted()}
