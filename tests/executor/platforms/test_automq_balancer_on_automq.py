"""AutoMQ's own balancer on a real AutoMQ: suspended with consent and restored."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.executor import Executor, connect
from executor.platforms.automq_balancer import ENABLE, NEVER, THRESHOLDS
from executor.timing import RunLimits
from model.errors import GuardrailRefused
from model.plan.plan import Plan, write_plan
from model.run import MoveState, RunProgress, RunState
from tests.support.automq import AutoMQCluster
from tests.support.cli_on_cluster import Shell, kill_after, placement, wait_until
from tests.support.executor.plan_builders import ids, plan_for
from tests.support.executor.real_runs import assert_done, execute

pytestmark = pytest.mark.automq

IN, OUT = THRESHOLDS
KEYS = (ENABLE, *THRESHOLDS)
NODES = ids([0, 1, 2])
NODE = NODES[1]
TOGETHER = {ENABLE: "true", IN: "77000000"}
OWN = {OUT: "88000000"}
"""Threshold of node 1, far above any test load, so that it moves nothing."""

Set = tuple[dict[str, str], ...]


@pytest.fixture
def bootstrap(automq_cluster: AutoMQCluster) -> str:
    return automq_cluster.bootstrap


def all_set(admin: ClusterAdmin) -> Set:
    """The cluster-wide defaults, then each broker's own settings."""
    return tuple(admin.own_broker_configs(node, KEYS) for node in (None, *NODES))


@pytest.fixture
def turned_on(admin: ClusterAdmin) -> Iterator[Set]:
    """The balancer is on, with its own settings in two places."""
    assert all_set(admin) == ({}, {}, {}, {})
    expected: Set = (TOGETHER, {}, OWN, {})
    admin.alter_broker_configs(None, TOGETHER)
    admin.alter_broker_configs(NODE, OWN)
    wait_until(lambda: all_set(admin) == expected)
    yield expected
    admin.alter_broker_configs(None, dict.fromkeys(KEYS))
    for node in NODES:
        admin.alter_broker_configs(node, dict.fromkeys(KEYS))
    wait_until(lambda: all_set(admin) == ({}, {}, {}, {}))


@pytest.fixture
def consenting(automq_cluster: AutoMQCluster) -> Iterator[Executor]:
    limits = RunLimits(suspend_balancer=True)
    with connect(automq_cluster.bootstrap, timeout_s=10.0, limits=limits) as opened:
        yield opened


def planned(cluster: AutoMQCluster, partitions: int) -> Plan:
    topic = f"balancer-{uuid.uuid4().hex[:6]}"
    cluster.create_topic(topic, [[2]] * partitions)
    return plan_for(cluster.bootstrap, topic, {p: [0] for p in range(partitions)})


def test_a_cluster_wide_default_is_set_read_and_removed(admin: ClusterAdmin) -> None:
    """kafka-python cannot name the default resource; a special name is used instead."""
    assert admin.own_broker_configs(None, THRESHOLDS) == {}
    admin.alter_broker_configs(None, {IN: "123456", OUT: None})
    wait_until(lambda: all_set(admin) == ({IN: "123456"}, {}, {}, {}))
    in_force = [admin.broker_configs(node, [IN]) for node in NODES]
    assert in_force == [{IN: "123456"}] * 3
    admin.alter_broker_configs(None, {IN: None})
    wait_until(lambda: all_set(admin) == ({}, {}, {}, {}))


def test_without_consent_a_run_is_refused_and_nothing_is_changed(
    automq_cluster: AutoMQCluster, admin: ClusterAdmin, turned_on: Set, tmp_path: Path
) -> None:
    plan = planned(automq_cluster, 1)
    with (
        connect(automq_cluster.bootstrap, timeout_s=10.0) as executor,
        pytest.raises(GuardrailRefused, match="Say --suspend-balancer"),
    ):
        execute(executor, plan, tmp_path)
    assert all_set(admin) == turned_on


def test_with_consent_the_balancer_is_suspended_during_moves(
    automq_cluster: AutoMQCluster,
    admin: ClusterAdmin,
    consenting: Executor,
    turned_on: Set,
    tmp_path: Path,
) -> None:
    plan = planned(automq_cluster, 4)
    seen: list[Set] = []

    def look(progress: RunProgress) -> None:
        if progress.count(MoveState.ISSUED):
            seen.append(all_set(admin))

    first, *_ = consenting.dry_run(plan)
    assert first == f"IncrementalAlterConfigs all brokers: {IN} = {NEVER}"
    report = execute(consenting, plan, tmp_path, look)
    assert_done(report)
    never = str(NEVER)
    down: Set = ({ENABLE: "true", IN: never, OUT: never}, {}, {OUT: never}, {})
    assert seen
    assert seen == [down] * len(seen)
    assert all_set(admin) == turned_on


def test_a_balancer_turned_on_during_a_run_ends_it(
    automq_cluster: AutoMQCluster,
    admin: ClusterAdmin,
    consenting: Executor,
    turned_on: Set,
    tmp_path: Path,
) -> None:
    plan = planned(automq_cluster, 60)

    def turn_on(progress: RunProgress) -> None:
        if progress.count(MoveState.DONE) == 1:
            admin.alter_broker_configs(None, {IN: "99000000"})

    report = execute(consenting, plan, tmp_path, turn_on, in_flight=1)
    assert report.state is RunState.FAILED
    assert report.reason == (
        "AutoMQ's own balancer is on at broker 0; someone else has set "
        f"{IN} of all brokers to 99000000 in the meantime, which stays"
    )
    assert {m.state for m in report.moves} == {MoveState.DONE, MoveState.PLANNED}
    assert all_set(admin) == ({**TOGETHER, IN: "99000000"}, *turned_on[1:])


def test_cleanup_restores_settings_of_a_killed_run(
    automq_cluster: AutoMQCluster, admin: ClusterAdmin, turned_on: Set, tmp_path: Path
) -> None:
    plan = planned(automq_cluster, 16)
    write_plan(tmp_path / "plan.json", plan)
    shell = Shell(tmp_path, automq_cluster.bootstrap)
    apply = ("apply", "plan.json", "--allow-changes", "--yes")
    kill_after(shell.start(*apply, "--suspend-balancer"), shell, 5)
    assert all_set(admin)[0] == dict.fromkeys(THRESHOLDS, str(NEVER)) | {ENABLE: "true"}

    cleaned = shell.plimsoll("cleanup", "--allow-changes")
    assert cleaned.returncode == 0, cleaned.stderr
    assert cleaned.stdout.endswith(": AutoMQ's own balancer is restored\n")
    assert all_set(admin) == turned_on

    refused = shell.plimsoll("run", "--resume", "--allow-changes", "-o", "json")
    assert refused.returncode == 6, refused.stderr
    assert "--suspend-balancer" in json.loads(refused.stdout)["reason"]
    (tmp_path / "plimsoll.toml").write_text("stand_down_balancer = true\n")
    resumed = shell.plimsoll("run", "--resume", "--allow-changes")
    assert resumed.returncode == 0, resumed.stderr
    topic = plan.moves[0].topic
    assert placement(shell.bootstrap, topic) == {p: [0] for p in range(16)}
    assert all_set(admin) == turned_on
