"""What Strimzi's operators and Canonical's charm request, from a proposal to its last move."""

import time
from typing import Any

import pytest

from control.cruise_control.cruise_control import CruiseControl
from control.tasks.broker_task import TaskPhase
from model.snapshot.snapshot import LogDir, Resource, Snapshot
from tests.support.control.charm_client import Charm
from tests.support.control.cruise_bench import CruiseClient
from tests.support.control.cruise_site import Site, Start
from tests.support.control.loop_parts import MB
from tests.support.control.strimzi_clients import Condition, Rebalance, TopicOperator
from tests.support.model import clusters
from tests.support.tui.terminals import LONG_S

GOALS = "goals=RackAwareGoal%2CNetworkInboundUsageDistributionGoal&rebalance_disk=false"
NO_TASK = "00000000-0000-0000-0000-000000000000"
BRIEF_S = 0.01
"""After which requests are answered with their progress, so that the operator has to poll."""


def until(rebalance: Rebalance, condition: Condition) -> None:
    deadline = time.monotonic() + LONG_S
    while rebalance.condition is not condition:
        assert rebalance.condition is not Condition.NOT_READY, rebalance.why
        assert time.monotonic() < deadline, rebalance
        rebalance.reconcile()
        time.sleep(0.02)


def executed(site: Site) -> list[Any]:
    """The moves of the run, once it has ended."""
    site.until(lambda: len(site.executor.plans) == 1)
    return [
        (move.topic, int(move.partition), list(move.replicas_after))
        for move in site.executor.plans[0].moves
    ]


@pytest.mark.parametrize("block_s", [BRIEF_S, LONG_S], ids=["polled", "at once"])
def test_the_cluster_operator_rebalances(start: Start, block_s: float) -> None:
    site = start(block_s=block_s, journals=True)
    rebalance = Rebalance(site.client, "rebalance", GOALS)
    assert rebalance.progress() == (0, 0)
    until(rebalance, Condition.PROPOSED)
    proposed, dry_run = rebalance.summary, rebalance.session
    assert proposed["numReplicaMovements"] == 5
    assert [before["Replicas"] for before, _ in rebalance.loads.values()] == [0, 8, 0]
    assert site.executor.plans == []
    rebalance.approve()
    assert rebalance.condition is Condition.REBALANCING
    assert rebalance.session != dry_run
    assert site.loop.wait(lambda v: v.run is not None, LONG_S)
    site.until(lambda: rebalance.progress()[1] > 0)
    rebalance.reconcile()
    assert rebalance.condition is Condition.REBALANCING
    site.executor.finish.set()
    until(rebalance, Condition.READY)
    assert rebalance.summary == proposed
    (plan,) = site.executor.plans
    tasks = [site.parts.tasks.find(found) for found in (dry_run, rebalance.session)]
    assert [task.plan_hash for task in tasks if task is not None] == [plan.hash] * 2


def test_a_stop_of_the_cluster_operator_ends_the_run(start: Start) -> None:
    site = start()
    rebalance = Rebalance(site.client, "rebalance", GOALS)
    until(rebalance, Condition.PROPOSED)
    rebalance.approve()
    assert site.loop.wait(lambda v: v.run is not None, LONG_S)
    rebalance.stop()
    site.until(lambda: not site.loop.running)
    assert rebalance.condition is Condition.STOPPED
    # Another one can be approved, and its order ends the pause.
    another = Rebalance(site.client, "rebalance", GOALS)
    until(another, Condition.PROPOSED)
    another.approve()
    assert another.condition is Condition.REBALANCING


@pytest.mark.parametrize(
    ("endpoint", "brokers", "number", "replicas"),
    [("add_broker", "brokerid=3", 3, 1), ("remove_broker", "brokerid=2", 2, 0)],
)
def test_the_cluster_operator_scales(
    start: Start, endpoint: str, brokers: str, number: int, replicas: int
) -> None:
    site = start()
    rebalance = Rebalance(site.client, endpoint, brokers)
    until(rebalance, Condition.PROPOSED)
    after = rebalance.loads[number][1]["Replicas"]
    assert (after >= 1) == bool(replicas)
    rebalance.approve()
    assert rebalance.condition is Condition.REBALANCING
    (task,) = site.files.all()
    assert task.phase is TaskPhase.APPROVED
    assert task.plan is not None
    known = site.parts.tasks.find(rebalance.session)
    assert known is not None
    assert known.plan_hash == task.plan.plan_hash
    site.files.change(task.task_id, lambda of: of.entered(TaskPhase.DONE, 1))
    site.parts.api.settle("cluster-one")
    until(rebalance, Condition.READY)


def with_directories() -> Snapshot:
    dirs = tuple(LogDir(path=f"/kafka/data-{n}", capacity_bytes=1e9) for n in range(2))
    members = [b.model_copy(update={"log_dirs": dirs}) for b in clusters.brokers(2)]
    return clusters.wide(
        members, [(1,), (1,), (2,)], {Resource.DISK: [2.0**20] * 3}, dirs=[[0], [1], [0]]
    )


def test_the_cluster_operator_removes_disks(start: Start) -> None:
    site = start(with_directories(), journals=True)
    rebalance = Rebalance(site.client, "remove_disks", "brokerid_and_logdirs=1-%2Fkafka%2Fdata-0")
    until(rebalance, Condition.PROPOSED)
    assert rebalance.summary["numIntraBrokerReplicaMovements"] == 1
    rebalance.approve()
    assert rebalance.condition is Condition.REBALANCING, rebalance.why
    site.executor.finish.set()
    until(rebalance, Condition.READY)


def test_a_broker_that_does_not_exist_is_named_as_the_operator_expects(start: Start) -> None:
    rebalance = Rebalance(start().client, "add_broker", "brokerid=7")
    while rebalance.condition in (Condition.NEW, Condition.PENDING):
        rebalance.reconcile()
    assert rebalance.condition is Condition.NOT_READY
    assert "IllegalArgumentException" in rebalance.why
    assert "does not exist." in rebalance.why


def test_the_cluster_operator_waits_until_loads_are_known(
    parts: CruiseControl, client: CruiseClient
) -> None:
    assert parts.tasks.all() == []
    rebalance = Rebalance(client, "rebalance", GOALS)
    for _ in range(2):
        rebalance.reconcile()
        assert (rebalance.condition, rebalance.session) == (Condition.PENDING, "")
    assert rebalance.progress() == (0, 0)


def test_an_unknown_session_is_followed_by_a_new_dry_run(start: Start) -> None:
    site = start()
    rebalance = Rebalance(site.client, "rebalance", GOALS, Condition.PENDING, session=NO_TASK)
    rebalance.reconcile()
    assert rebalance.condition is Condition.NEW
    until(rebalance, Condition.PROPOSED)


def test_the_topic_operator_changes_replication_factors(start: Start) -> None:
    snapshot = clusters.wide(
        clusters.brokers(3, "abc"),
        [(1, 2), (1, 3), (2, 3), (3, 1)],
        {Resource.DISK: [MB] * 4},
        topics=[0, 0, 1, 2],
    )
    site = start(snapshot, journals=True)
    operator = TopicOperator(site.client)
    reply = operator.replicate({3: "t0|x", 1: "t2|t1"})
    assert reply.status == 200, reply.text
    assert operator.statuses(reply.task_id, NO_TASK) == {reply.task_id: "InExecution"}
    # It waits while something else is executed.
    again = operator.replicate({3: "t1"})
    assert (again.status, "OngoingExecutionException" in again.error) == (500, True)
    site.executor.finish.set()
    site.until(lambda: operator.statuses(reply.task_id) == {reply.task_id: "Completed"})
    after = sorted((topic, len(replicas)) for topic, _, replicas in executed(site))
    assert after == [("t0", 3), ("t0", 3), ("t1", 1), ("t2", 1)]


@pytest.mark.parametrize("block_s", [BRIEF_S, LONG_S], ids=["polled", "at once"])
def test_the_charm_rebalances_and_waits_for_its_task(start: Start, block_s: float) -> None:
    site = start(block_s=block_s, journals=True)
    charm = Charm(site.client, "balancer:secret")
    site.until(charm.monitoring)
    assert charm.ready()
    assert not charm.executing()
    _, dry_run = charm.rebalance("full", dryrun=True)
    site.until(lambda: charm.status(dry_run) == "Completed")
    assert site.executor.plans == []
    _, order = charm.rebalance("full", dryrun=False)
    site.until(charm.executing)
    site.until(lambda: charm.status(order) == "InExecution")
    site.executor.finish.set()
    site.until(lambda: charm.status(order) == "Completed")
    tasks = [site.parts.tasks.find(found) for found in (dry_run, order)]
    (plan,) = site.executor.plans
    assert [task.plan_hash for task in tasks if task is not None] == [plan.hash] * 2


@pytest.mark.parametrize(("mode", "broker"), [("add", 3), ("remove", 2)])
def test_the_charm_scales(start: Start, mode: str, broker: int) -> None:
    site = start()
    charm = Charm(site.client, "balancer:secret")
    found, dry_run = charm.rebalance(mode, dryrun=True, broker=broker)
    assert {"summary", "loadAfterOptimization"} <= {*found}
    assert charm.status(dry_run) == "Completed"
    _, order = charm.rebalance(mode, dryrun=False, broker=broker)
    assert charm.status(order) == "InExecution"
    (task,) = site.files.all()
    assert (task.phase, task.brokers) == (TaskPhase.APPROVED, (broker,))
