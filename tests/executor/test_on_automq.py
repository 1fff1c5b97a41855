"""Real moves on the real AutoMQ."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import ResponseStatus
from executor.executor import Executor
from executor.journal.run_history import read_journal
from executor.platforms.automq_wal import LITTLE, AutoMQWal
from executor.platforms.detect import storage_kinds
from lab.load.load_generator import Load, LoadOrder
from lab.local_cluster.processes import Processes
from model.errors import GuardrailRefused
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import write_plan
from model.run import JournalEvent, MoveState
from model.snapshot.snapshot import StorageKind
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import assert_done, execute
from tests.support.executor.topic_records import assert_exact

pytestmark = pytest.mark.automq

ENABLE = "autobalancer.controller.enable"
THRESHOLDS = tuple(
    f"autobalancer.controller.network.{direction}.usage.distribution.detect.threshold"
    for direction in ("in", "out")
)
WAL = """
[wal]
endpoint_url = "{at.endpoint_url}"
bucket = "{at.bucket}"
access_key = "{at.access_key}"
secret_key = "{at.secret_key}"
"""
NODE = BrokerId(1)
"""No controller, so that its settings are in force and nothing is moved by them."""


@pytest.fixture
def bootstrap(automq_cluster: AutoMQCluster) -> str:
    return automq_cluster.bootstrap


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    started = Processes(tmp_path / "load")
    yield started
    started.close()


class NodeSettings:
    """Dynamic settings of one node, deleted at the end."""

    def __init__(self, bootstrap: str, admin: ClusterAdmin) -> None:
        self._client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
        self._admin = admin
        self._set: set[str] = set()

    def set(self, **values: str) -> None:
        self._alter({key: ("SET", value) for key, value in values.items()})
        self._set |= set(values)
        wait_until(lambda: self._admin.broker_configs(NODE, list(values)) == values)

    def close(self) -> None:
        self._alter(dict.fromkeys(self._set, ("DELETE", None)))
        self._client.close()

    def _alter(self, changes: dict[str, tuple[str, str | None]]) -> None:
        resource = ConfigResource(ConfigResourceType.BROKER, str(NODE), configs=changes)
        self._client.alter_configs([resource], raise_on_unknown=False)


@pytest.fixture
def node(automq_cluster: AutoMQCluster, admin: ClusterAdmin) -> Iterator[NodeSettings]:
    with closing(NodeSettings(automq_cluster.bootstrap, admin)) as settings:
        yield settings


def test_eight_partitions_on_one_node_are_spread_and_no_record_is_lost(
    automq_cluster: AutoMQCluster,
    executor: Executor,
    admin: ClusterAdmin,
    processes: Processes,
    topic: str,
    tmp_path: Path,
) -> None:
    automq_cluster.create_topic(topic, [[2]] * 8)
    order = LoadOrder(topic=topic, bytes_per_s=3e6, weights=(1.0,) * 8)
    load = Load(processes, automq_cluster.bootstrap, order)
    load.start()
    after = {0: [0], 1: [0], 2: [0], 3: [1], 4: [1], 5: [1]}
    plan = plan_for(automq_cluster.bootstrap, topic, after)
    report = execute(executor, plan, tmp_path / "journal", in_flight=3)
    assert_exact(load)

    assert_done(report)
    assert [(m.state, m.bytes_copied) for m in report.moves] == [(MoveState.DONE, 0)] * 6
    for moved in report.moves:
        # A hand-over lasts for several polls.
        least, most = moved.stall_at_least_s or 0.0, moved.stall_at_most_s or 0.0
        assert 0.0 < least < most
        assert (moved.requests, moved.retries) == (1, 0)
    views = admin.partitions([PartitionId(TopicName(topic), i) for i in range(8)])
    assert Counter(v.leader for v in views.values()) == {0: 3, 1: 3, 2: 2}


def test_the_bucket_shows_that_sources_have_uploaded_their_logs(
    automq_cluster: AutoMQCluster, processes: Processes, topic: str, tmp_path: Path
) -> None:
    """The source of most moves keeps writing for other partitions."""
    automq_cluster.create_topic(topic, [[2]] * 6)
    plan = plan_for(automq_cluster.bootstrap, topic, {0: [0], 1: [0], 2: [1], 3: [1]})
    order = LoadOrder(topic=topic, bytes_per_s=1e6, weights=(1.0,) * 6)
    load = Load(processes, automq_cluster.bootstrap, order)
    load.start()
    wal = AutoMQWal(automq_cluster.bucket)
    of = plan.cluster_id, BrokerId(2)
    wait_until(lambda: sum(wal.objects(*of).values()) > 2 * LITTLE)
    shell = Shell(tmp_path, automq_cluster.bootstrap)
    write_plan(tmp_path / "plan.json", plan)
    (tmp_path / "plimsoll.toml").write_text(WAL.format(at=automq_cluster.bucket))
    applied = shell.plimsoll("apply", "plan.json", "--allow-changes", "--yes")
    load.finish()
    assert applied.returncode == 0, applied.stderr
    message = "under 1 MB of broker 2's write-ahead log from before the move is left: "
    assert applied.stdout.count(message) == 4
    (journal,) = (tmp_path / "state" / "journal").glob("*.jsonl")
    noted = [r for r in read_journal(journal) if r.event is JournalEvent.NOTED]
    assert [r.id for r in noted] == [m.id for m in plan.moves]
    for record in noted:
        assert record.detail["wal_bytes_before"] > LITTLE
        assert record.detail["wal_bytes_left"] < LITTLE


def test_automq_topics_are_recognised_as_shared(
    automq_cluster: AutoMQCluster, admin: ClusterAdmin, topic: str
) -> None:
    automq_cluster.create_topic(topic, [[2]])
    name = TopicName(topic)
    assert storage_kinds(admin, [name]) == {name: StorageKind.SHARED}


def test_automqs_balancer_must_be_suspended_on_every_node(
    automq_cluster: AutoMQCluster, executor: Executor, node: NodeSettings, topic: str
) -> None:
    """A value set on one node counts, and both thresholds quiet it too."""
    automq_cluster.create_topic(topic, [[2]])
    plan = plan_for(automq_cluster.bootstrap, topic, {0: [0]})
    node.set(**{ENABLE: "true"})
    with pytest.raises(GuardrailRefused, match=r"is on at broker 1 .* Say --suspend"):
        executor.dry_run(plan)
    node.set(**dict.fromkeys(THRESHOLDS, str(10**15)))
    assert len(executor.dry_run(plan)) == 1


def test_a_second_replica_is_refused_before_anything_is_sent(
    automq_cluster: AutoMQCluster, executor: Executor, topic: str
) -> None:
    automq_cluster.create_topic(topic, [[2]])
    plan = plan_for(automq_cluster.bootstrap, topic, {0: [0, 1]})
    with pytest.raises(GuardrailRefused, match="replication factor"):
        executor.dry_run(plan)


def test_a_refusal_has_automqs_message(
    automq_cluster: AutoMQCluster, admin: ClusterAdmin, topic: str
) -> None:
    automq_cluster.create_topic(topic, [[2], [2]])
    good, bad = (PartitionId(TopicName(topic), i) for i in range(2))
    answers = admin.reassign({good: ids([0]), bad: ids([77])})
    assert answers[good].status is ResponseStatus.ACCEPTED
    assert answers[bad].status is ResponseStatus.REFUSED
    assert "no such broker" in answers[bad].reason
