"""Real moves on stock Kafka, with and without the remote tier."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor.client.cluster_admin import ClusterAdmin, OffsetKind, local_bytes
from executor.client.responses import ResponseStatus
from executor.executor import Executor, connect
from executor.journal.run_history import read_journal, recent_moves
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from executor.timing import RunLimits
from lab.local_cluster.local_cluster import LocalCluster
from model.errors import GuardrailRefused, PlanOutdated
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Plan
from model.plan.replication_change import ReplicationChange
from model.run import JournalEvent, MoveState, RunProgress
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import assert_done, execute, executor_with_tier
from tests.support.executor.topic_records import assert_exact, fill, loaded, slow_down

pytestmark = pytest.mark.kafka

SEGMENT_BYTES = 2**20
TIERED = {
    "remote.storage.enable": "true",
    "segment.bytes": str(SEGMENT_BYTES),
    "local.retention.bytes": str(SEGMENT_BYTES),
    "local.retention.ms": "-2",
    "file.delete.delay.ms": "200",
}


@pytest.fixture
def executor(local_cluster: LocalCluster) -> Iterator[Executor]:
    with executor_with_tier(local_cluster) as opened:
        yield opened


def test_a_tiered_partition_under_load_copies_only_its_tail(
    local_cluster: LocalCluster, executor: Executor, topic: str, tmp_path: Path
) -> None:
    local_cluster.create_topic(topic, [[1], [1]], TIERED)
    load = loaded(local_cluster, topic, 10 * SEGMENT_BYTES, partitions=2, rate=20e6)
    slow_down(load, 2, 1e6)
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2], 1: [3]})
    report = execute(executor, plan, tmp_path)
    assert_exact(load)

    assert_done(report)
    for move in report.moves:
        assert move.state is MoveState.DONE
        assert move.bytes_copied is not None
        assert 0 < move.bytes_copied < 3 * SEGMENT_BYTES
        assert "in the tier, seen through S3" in move.note
    (journal,) = tmp_path.glob("*.jsonl")
    prepared = [r for r in read_journal(journal) if r.event is JournalEvent.PREPARED]
    assert all(r.detail["tier_segments"] >= 5 for r in prepared)
    moved = recent_moves(tmp_path, local_cluster.cluster_id, 0)
    assert {(m.partition, m.left) for m in moved} == {(0, ids([1])), (1, ids([1]))}


def test_an_idle_tiered_partition_is_copied_completely_and_noted(
    local_cluster: LocalCluster, executor: Executor, topic: str, tmp_path: Path
) -> None:
    keeps_all = TIERED | {"local.retention.bytes": "-1"}
    local_cluster.create_topic(topic, [[1]], keeps_all)
    fill(local_cluster.bootstrap, topic, [5])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    (move,) = execute(executor, plan, tmp_path).moves
    assert (move.bytes_copied or 0) > 4 * SEGMENT_BYTES
    assert "are copied: its local retention keeps every segment" in move.note


def test_a_throttle_applies_during_a_run_and_is_removed_after_it(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    rate = 3_000_000
    local_cluster.create_topic(topic, [[1, 2]] * 2)
    fill(local_cluster.bootstrap, topic, [20, 20])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [1, 3], 1: [1, 3]})
    name, seen = TopicName(topic), list[tuple[Any, Any]]()

    def look_again() -> tuple[Any, Any]:
        lists = admin.own_topic_configs([name], (LEADERS, FOLLOWERS))[name]
        return admin.own_broker_configs(BrokerId(3), RATES), lists

    def look(_: RunProgress) -> None:
        seen.append(look_again())

    limits = RunLimits(throttle_bytes_per_s=rate)
    with connect(local_cluster.bootstrap, timeout_s=10.0, limits=limits) as executor:
        report = execute(executor, plan, tmp_path, look)
    assert_done(report)
    copied = sum(m.bytes_copied or 0 for m in report.moves)
    assert copied > 30e6
    assert copied / report.duration_s < 1.5 * rate
    lists = {LEADERS: "0:1,0:2,1:1,1:2", FOLLOWERS: "0:3,1:3"}
    assert (dict.fromkeys(RATES, str(rate)), lists) in seen
    assert seen[0] == ({}, {})
    wait_until(lambda: look_again() == ({}, {}))


def test_replicas_and_leaders_end_exactly_as_planned(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    """A new leader, a mere reorder, a new follower, and both at once."""
    after = {0: [3, 2], 1: [2, 1], 2: [1, 3], 3: [3, 1]}
    local_cluster.create_topic(topic, [[1, 2]] * 4)
    plan = plan_for(local_cluster.bootstrap, topic, after)
    assert_done(execute(executor, plan, tmp_path))
    for view in admin.partitions([m.id for m in plan.moves]).values():
        replicas = ids(after[view.id.partition])
        assert (view.replicas, view.leader) == (replicas, replicas[0])
        assert view.in_sync == set(replicas)


def test_an_executed_plan_is_outdated(
    local_cluster: LocalCluster, executor: Executor, topic: str, tmp_path: Path
) -> None:
    local_cluster.create_topic(topic, [[1]])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    execute(executor, plan, tmp_path / "first")
    with pytest.raises(PlanOutdated, match=rf"{topic}-0 is on \[2\], the plan expects"):
        execute(executor, plan, tmp_path / "second")
    assert not list((tmp_path / "second").glob("*.json*"))


def test_a_plan_for_another_cluster_is_refused(
    local_cluster: LocalCluster, executor: Executor, topic: str, tmp_path: Path
) -> None:
    local_cluster.create_topic(topic, [[1]])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [2]})
    other = plan.model_copy(update={"cluster_id": "another"}).seal()
    with pytest.raises(GuardrailRefused, match=f"another, but this is {plan.cluster_id}"):
        execute(executor, other, tmp_path)


def test_a_dry_run_shows_the_requests_and_sends_none(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str
) -> None:
    local_cluster.create_topic(topic, [[1, 2]])
    plan = plan_for(local_cluster.bootstrap, topic, {0: [3, 2]})
    assert executor.dry_run(plan) == [
        f"AlterPartitionReassignments {topic}-0: [1, 2] -> [3, 2]",
        f"ElectLeaders preferred {topic}-0: 3",
    ]
    (view,) = admin.partitions([plan.moves[0].id]).values()
    assert view.replicas == ids([1, 2])


def test_refusals_have_the_brokers_message_per_partition(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str
) -> None:
    local_cluster.create_topic(topic, [[1], [1]])
    good, unknown, wider = (
        PartitionId(TopicName(name), number)
        for name, number in [(topic, 0), ("no-such-topic", 0), (topic, 1)]
    )
    answers = admin.reassign({good: ids([2]), unknown: ids([2]), wider: ids([1, 2])})
    assert answers[good].status is ResponseStatus.ACCEPTED
    assert answers[unknown].status is ResponseStatus.REFUSED
    assert answers[wider].status is ResponseStatus.REFUSED
    assert "replication factor" in answers[wider].reason


def test_offsets_and_sizes_are_those_of_an_empty_partition(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str
) -> None:
    local_cluster.create_topic(topic, [[1]], TIERED)
    pid = PartitionId(TopicName(topic), 0)
    result = {k: admin.offsets(BrokerId(1), [pid], k).get(pid) for k in OffsetKind}
    assert result[OffsetKind.LATEST] == result[OffsetKind.EARLIEST] == 0
    assert result[OffsetKind.LATEST_TIERED] == -1
    assert local_bytes(admin, BrokerId(1), [pid]) == {pid: 0}
    assert local_bytes(admin, BrokerId(2), [pid]) == {}


def test_broker_overrides_are_not_mistaken_for_topic_overrides(
    local_cluster: LocalCluster, admin: ClusterAdmin, topic: str
) -> None:
    """It shows through in the topic, and would be set there in restoring it."""
    key, size = "segment.bytes", str(64 * SEGMENT_BYTES)
    local_cluster.create_topic(topic, [[1]])
    name = TopicName(topic)
    try:
        for broker in ids([1, 2, 3]):
            admin.alter_broker_configs(broker, {"log.segment.bytes": size})
        wait_until(lambda: admin.topic_configs([name], [key])[name][key] == size)
        assert admin.own_topic_configs([name], [key]) == {name: {}}
        admin.alter_topic_configs(name, {key: size})
        shown = {name: {key: size}}
        asked = (None, *ids([1, 2, 3]))
        wait_until(lambda: all(admin.own_topic_configs([name], [key], b) == shown for b in asked))
    finally:
        for broker in ids([1, 2, 3]):
            admin.alter_broker_configs(broker, {"log.segment.bytes": None})


def resized(plan: Plan, before: int, after: int) -> Plan:
    """The plan, which says that it changes the replication factor of its topic."""
    change = ReplicationChange(topic=plan.moves[0].topic, before=before, after=after)
    return plan.model_copy(update={"replication": (change,)}).seal()


def test_the_replication_factor_changes_under_load_and_back(
    local_cluster: LocalCluster, executor: Executor, admin: ClusterAdmin, topic: str, tmp_path: Path
) -> None:
    """From 1 to 3, to 2, and back to 3 by a rollback; no record is lost."""
    local_cluster.create_topic(topic, [[1], [2]])
    load = loaded(local_cluster, topic, 5 * SEGMENT_BYTES, partitions=2, rate=20e6)
    slow_down(load, 2, 1e6)
    bootstrap = local_cluster.bootstrap
    pids = [PartitionId(TopicName(topic), number) for number in range(2)]

    def lists() -> list[tuple[BrokerId, ...]]:
        views = admin.partitions(pids)
        assert all(views[pid].in_sync == {*views[pid].replicas} for pid in pids)
        return [views[pid].replicas for pid in pids]

    three = {0: [1, 2, 3], 1: [2, 3, 1]}
    with pytest.raises(GuardrailRefused, match="replication factor"):
        executor.dry_run(plan_for(bootstrap, topic, three))
    more = resized(plan_for(bootstrap, topic, three), 1, 3)
    assert_done(execute(executor, more, tmp_path))
    assert lists() == [ids(three[0]), ids(three[1])]
    fewer = resized(plan_for(bootstrap, topic, {0: [1, 3], 1: [3, 1]}), 3, 2)
    assert_done(execute(executor, fewer, tmp_path))
    assert lists() == [ids([1, 3]), ids([3, 1])]
    back, left = executor.plan_rollback(tmp_path, None)
    assert not left
    assert_done(execute(executor, back, tmp_path))
    assert lists() == [ids(three[0]), ids(three[1])]
    assert_exact(load)
