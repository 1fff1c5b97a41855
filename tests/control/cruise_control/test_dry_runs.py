"""Dry runs over Cruise Control's API: plans, goals, and what survives a restart."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.goal_names import ALL, BALANCED, with_named
from control.cruise_control.kept_plans import MOST_KEPT, KeptPlans, key_of
from control.cruise_control.requests import ENDPOINTS, Request, parsed
from control.cruise_control.user_tasks import TaskStatus, UserTasks
from control.service.service_state import ServiceState
from model.errors import ConfigError
from model.goals.goals import Goal, Goals
from model.ids import TopicName
from model.snapshot.snapshot import BrokerState, Count, LogDir, Resource, Snapshot, StorageKind
from tests.control.cruise_control.test_reads import seen, with_cores
from tests.support.control.cruise_bench import CruiseClient, Reply, served
from tests.support.control.cruise_schema import check
from tests.support.control.loop_parts import MB, cluster, with_state
from tests.support.model import clusters
from tests.support.tui.terminals import LONG_S

UNEVEN = cluster([2] * 8, [MB] * 8)
STRIMZI = (
    "json=true&dryrun=true&verbose=true&skip_hard_goal_check=false"
    "&goals=RackAwareGoal%2CNetworkInboundUsageDistributionGoal&rebalance_disk=false"
)
"""As recorded of its operator."""


@pytest.fixture
def uneven(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> CruiseClient:
    """A client of a service that has seen all partitions on one of three brokers."""
    seen(tmp_path, state, parts, UNEVEN)
    return client


def result(client: CruiseClient, method: str, query: str, **headers: str) -> Reply:
    """The answer, however often it has to be asked for."""
    path = f"/kafkacruisecontrol/{query}"
    reply = client.ask(method, path, body=None, **headers)
    while reply.status == 202:
        check(reply.json, "progressResult", "ProgressResult")
        reply = client.ask(method, path, body=None, User_Task_ID=reply.task_id)
    return reply


def planned(client: CruiseClient, query: str, method: str = "POST") -> Any:
    reply = result(client, method, query)
    assert reply.status == 200, reply.text
    check(reply.json, "optimizationResult", "OptimizationResult")
    return reply.json


def test_a_rebalance_as_strimzi_requests_it(uneven: CruiseClient, tmp_path: Path) -> None:
    reply = result(uneven, "POST", f"rebalance?{STRIMZI}")
    found = reply.json
    check(found, "optimizationResult", "OptimizationResult")
    moved = found["summary"]["numReplicaMovements"]
    assert moved == len(found["proposals"]) == 5
    before, after = found["loadBeforeOptimization"], found["loadAfterOptimization"]
    assert [b["Broker"] for b in before["brokers"]] == [b["Broker"] for b in after["brokers"]]
    assert [b["Replicas"] for b in before["brokers"]] == [0, 8, 0]
    assert sorted(b["Replicas"] for b in after["brokers"]) == [2, 3, 3]
    score = found["summary"]["onDemandBalancednessScoreBefore"]
    assert score < 100
    statuses = {goal["goal"]: goal["status"] for goal in found["goalSummary"]}
    assert statuses["RackAwareGoal"] == "NO-ACTION"
    assert statuses["NetworkInboundUsageDistributionGoal"] in ("FIXED", "VIOLATED")
    assert "NetworkOutboundUsageDistributionGoal" not in statuses
    # `user_tasks` has the same, as a string.
    rows = uneven.get(
        f"user_tasks?json=true&fetch_completed_task=true&user_task_ids={reply.task_id}"
    ).json["userTasks"]
    assert [row["Status"] for row in rows] == ["Completed"]
    assert json.loads(rows[0]["originalResponse"]) == found
    # The same task again has the same answer.
    again = uneven.post(f"rebalance?{STRIMZI}", User_Task_ID=reply.task_id)
    assert (again.status, again.json) == (200, found)


def test_a_balanced_cluster_needs_no_moves(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, cluster([1, 2, 3], [MB] * 3))
    found = planned(client, "proposals?json=true&verbose=true", "GET")
    assert found["proposals"] == []
    assert found["summary"]["onDemandBalancednessScoreAfter"] == 100


def test_known_values_without_an_effect_are_accepted(uneven: CruiseClient) -> None:
    # Cruise Control ignores their case.
    strategies = "prioritizeLargeReplicaMovementStrategy,PostponeUrpReplicaMovementStrategy"
    query = (
        f"rebalance?json=true&data_from=valid_partitions&replica_movement_strategies={strategies}"
    )
    planned(uneven, query)


def test_only_named_brokers_receive(uneven: CruiseClient) -> None:
    query = "rebalance?json=true&dryrun=true&verbose=true&destination_broker_ids=3"
    found = planned(uneven, query)
    assert {b for p in found["proposals"] for b in p["newReplicas"]} == {3}


def test_statistics_of_cpu_are_those_of_the_brokers(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    loads = {Resource.NET_IN: [1.0] * 4, Resource.CPU: [4.0, 0.5, 0.25, 2.0]}
    snapshot = clusters.wide(with_cores(8.0, 4.0, 2.0), [(1,), (2,), (3,), (1,)], loads)
    seen(tmp_path, state, parts, with_state(snapshot, 3, BrokerState.DEAD))
    found = planned(client, "rebalance?json=true&dryrun=true")
    rows = found["loadAfterOptimization"]["brokers"]
    percent = [row["CpuPct"] for row in rows if row["BrokerState"] != "DEAD"]
    statistics = found["goalSummary"][0]["clusterModelStats"]["statistics"]
    assert 0 < statistics["AVG"]["cpu"] < 100
    assert statistics["AVG"]["cpu"] == pytest.approx(sum(percent) / 2)
    assert (statistics["MIN"]["cpu"], statistics["MAX"]["cpu"]) == (min(percent), max(percent))


def test_excluded_topics_stay(uneven: CruiseClient) -> None:
    found = planned(uneven, "rebalance?json=true&dryrun=true&excluded_topics=ord.*")
    assert found["summary"]["numReplicaMovements"] == 0
    assert found["summary"]["excludedTopics"] == ["orders"]


@pytest.mark.parametrize(
    ("query", "broker", "replicas"),
    [("add_broker?brokerid=3", 3, 3), ("remove_broker?brokerid=2", 2, 0)],
)
def test_brokers_are_filled_and_emptied(
    query: str, broker: int, replicas: int, uneven: CruiseClient
) -> None:
    found = planned(uneven, f"{query}&json=true&dryrun=true&verbose=true")
    after = {b["Broker"]: b["Replicas"] for b in found["loadAfterOptimization"]["brokers"]}
    if replicas:
        assert after[broker] >= replicas
    else:
        assert after[broker] == 0


def replicated() -> Any:
    return clusters.snapshot(
        clusters.brokers(3, "abc"),
        [(1, 2), (1, 3), (2, 3)],
        [(MB, MB)] * 3,
        storage=StorageKind.REPLICATED,
    )


def test_a_demotion_moves_leaders_alone(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, replicated())
    found = planned(client, "demote_broker?brokerid=1&json=true&dryrun=true&verbose=true")
    assert found["summary"]["numReplicaMovements"] == 0
    assert found["summary"]["numLeaderMovements"] == 2
    after = {b["Broker"]: b["Leaders"] for b in found["loadAfterOptimization"]["brokers"]}
    assert after[1] == 0


@pytest.mark.parametrize("in_body", [False, True])
def test_a_replication_factor_is_planned(
    in_body: bool, tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, replicated())
    path = "/kafkacruisecontrol/topic_configuration?json=true&dryrun=true&verbose=true"
    if in_body:
        # As Strimzi's topic operator sends it.
        body = {"replication_factor": {"topic_by_replication_factor": {"3": "orders|x"}}}
        path += "&skip_rack_awareness_check="
        reply = client.ask("POST", path, body=json.dumps(body).encode())
    else:
        reply = client.ask("POST", f"{path}&topic=orders&replication_factor=3", body=None)
    assert reply.status == 200, reply.text
    check(reply.json, "optimizationResult", "OptimizationResult")
    assert [len(p["newReplicas"]) for p in reply.json["proposals"]] == [3, 3, 3]


def test_replicas_on_a_dead_broker_are_moved(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    members = clusters.brokers(4, "abcd", {4: BrokerState.DEAD})
    snapshot = clusters.snapshot(
        members, [(1, 4), (2, 3)], [(MB, MB)] * 2, storage=StorageKind.REPLICATED
    )
    seen(tmp_path, state, parts, snapshot)
    (move,) = planned(client, "fix_offline_replicas?json=true&dryrun=true&verbose=true")[
        "proposals"
    ]
    assert move["oldReplicas"] == [1, 4]
    assert 4 not in move["newReplicas"]


def test_log_directories_are_emptied_as_strimzi_requests_it(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    dirs = tuple(LogDir(path=f"/kafka/data-{n}", capacity_bytes=1e9) for n in range(2))
    members = [b.model_copy(update={"log_dirs": dirs}) for b in clusters.brokers(2)]
    snapshot = clusters.wide(
        members, [(1,), (1,), (2,)], {Resource.DISK: [2.0**20] * 3}, dirs=[[0], [1], [0]]
    )
    seen(tmp_path, state, parts, snapshot)
    query = "remove_disks?json=true&dryrun=true&brokerid_and_logdirs=1-%2Fkafka%2Fdata-0"
    found = planned(client, query)
    summary = found["summary"]
    assert (summary["numIntraBrokerReplicaMovements"], summary["numReplicaMovements"]) == (1, 0)
    assert summary["intraBrokerDataToMoveMB"] >= 1
    for wrong, status, words in (
        ("", 400, "names the log directories of one broker"),
        ("&brokerid_and_logdirs=1-/a,2-/b", 400, "of one broker"),
        ("&brokerid_and_logdirs=x", 400, "is BROKER-PATH"),
        ("&brokerid_and_logdirs=7-/a", 500, "Broker [7] does not exist."),
        ("&brokerid_and_logdirs=1-/a", 500, "/a"),
    ):
        reply = result(client, "POST", f"remove_disks?json=true&dryrun=true{wrong}")
        assert (reply.status, words in reply.error) == (status, True), reply.text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        (
            "rebalance?goals=NoSuchGoal",
            500,
            "java.lang.IllegalArgumentException: Goals [NoSuchGoal] are not supported. Supported",
        ),
        (
            "add_broker?brokerid=7",
            500,
            "java.lang.IllegalArgumentException: Broker [7] does not exist.",
        ),
        ("remove_broker", 400, "brokerid is missing"),
        ("rebalance?rebalance_disk=true", 400, "rebalance_disk is not supported: "),
        ("rebalance?replication_throttle=1", 400, "replication_throttle is not supported: set"),
        ("rebalance?dryrun=troo", 400, "dryrun is true or false, not 'troo'"),
        ("topic_configuration?topic=orders", 400, "topic and replication_factor are missing"),
        ("topic_configuration?topic=orders&replication_factor=0", 400, "a replication factor is"),
        ("topic_configuration?topic=nope&replication_factor=2", 500, "there is no topic 'nope'"),
        ("topic_configuration?topic=orders&replication_factor=2", 500, "cannot set 2 replicas"),
        ("remove_broker?brokerid=1,2,3", 500, "cannot remove brokers 1, 2, 3"),
        ("rebalance?dryrun=false", 500, "may read and plan, and not change the cluster"),
    ],
)
def test_impossible_requests_name_the_reason(
    query: str, status: int, words: str, uneven: CruiseClient
) -> None:
    separator = "&" if "?" in query else "?"
    reply = result(uneven, "POST", f"{query}{separator}json=true")
    assert reply.status == status, reply.text
    check(reply.json, "errorResponse", "ErrorResponse")
    assert words in reply.error


def test_impossible_requests_do_not_wait_for_a_plan_in_progress(
    uneven: CruiseClient, parts: CruiseControl
) -> None:
    hold = threading.Event()
    parts.api._plans.submit(hold.wait, LONG_S)
    try:
        for query, status in (
            ("add_broker?brokerid=7&", 500),
            ("remove_broker?brokerid=1,2,3&", 500),
            ("rebalance?goals=NoSuchGoal&", 500),
            ("rebalance?rebalance_disk=true&", 400),
            ("topic_configuration?topic=nope&replication_factor=2&", 500),
            ("remove_disks?brokerid_and_logdirs=7-/a&", 500),
            ("rebalance?dryrun=false&", 500),
        ):
            # More of them than tasks may be active.
            reply = uneven.post(f"{query}json=true")
            assert (reply.status, reply.error != "") == (status, True), reply.text
        assert not any(t.status is TaskStatus.ACTIVE for t in parts.tasks.all())
    finally:
        hold.set()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"\xff",
        b"[" * 60_000,
        b'{"replication_factor": {"topic_by_replication_factor": {"1": "orders", "1": "a"}}}',
        b'{"replication_factor": {"topic_by_replication_factor": {}}}',
        b'{"replication_factor": {"topic_by_replication_factor": {"1_0": "orders"}}}',
        b'{"replication_factor": {"topic_by_replication_factor": {"1": "("}}}',
        b'{"replication_factor": {"topic_by_replication_factor": {"2": 1}}}',
    ],
)
def test_bodies_that_are_not_valid_are_refused(body: bytes, uneven: CruiseClient) -> None:
    path = "/kafkacruisecontrol/topic_configuration?json=true&dryrun=true"
    reply = uneven.ask("POST", path, body=body)
    assert reply.status == 400, reply.text
    assert reply.error.startswith("Bad POST request '/topic_configuration' due to '")


@pytest.mark.parametrize(
    ("groups", "status", "found"),
    [
        # Strimzi names topics; their dots are no expressions.
        ({"1": "a.b", "3": "a-b"}, 200, [("a-b", 3), ("a.b", 1)]),
        ({"1": "a.b|zzz", "3": "[ac]-b"}, 200, [("a-b", 3), ("a.b", 1), ("c-b", 3)]),
        ({"1": "a.b", "01": "a.*"}, 200, [("a-b", 1), ("a.b", 1)]),
        ({"3": "a.b", "1": "a.*"}, 400, "topic a.b is named with 3 replicas and with 1"),
        ({"3": "a.b", "1": "a{0,1000}" * 200}, 400, "the regular expression is too large"),
        ({"3": "a.b", "1": "zzz"}, 500, "there is no topic 'zzz'"),
        ({"3": "a.b", "4": "a-b"}, 500, "cannot set 4 replicas: a-b-1 has 2, and only 3 brokers"),
        ({str(n): "a.b" for n in range(1, 102)}, 400, "more than 100 replication factors"),
    ],
)
def test_several_replication_factors_are_planned_at_once(
    groups: dict[str, str],
    status: int,
    found: Any,
    tmp_path: Path,
    state: ServiceState,
    parts: CruiseControl,
    client: CruiseClient,
) -> None:
    snapshot = clusters.wide(
        clusters.brokers(3, "abc"),
        [(1, 2), (1, 3), (2, 3)],
        {Resource.DISK: [MB] * 3},
        topics=[0, 1, 2],
    )
    names = ("a.b", "a-b", "c-b")
    named = [
        topic.model_copy(update={"name": TopicName(name)})
        for topic, name in zip(snapshot.header.topics, names, strict=True)
    ]
    header = snapshot.header.model_copy(update={"topics": tuple(named)})
    seen(tmp_path, state, parts, Snapshot(header, snapshot.partitions))
    body = json.dumps({"replication_factor": {"topic_by_replication_factor": groups}})
    path = "/kafkacruisecontrol/topic_configuration?json=true&dryrun=true&verbose=true"
    reply = client.ask("POST", path, body=body.encode())
    assert reply.status == status, reply.text
    if status != 200:
        assert found in reply.error
        return
    proposals = reply.json["proposals"]
    after = [(p["topicPartition"]["topic"], len(p["newReplicas"])) for p in proposals]
    assert sorted(after) == found


def test_a_huge_body_is_refused(uneven: CruiseClient) -> None:
    path = "/kafkacruisecontrol/topic_configuration?json=true&dryrun=true"
    reply = uneven.ask("POST", path, body=b" " * 100_000)
    assert reply.status == 413
    assert reply.error == "the body has more than 65,536 bytes"


# ---- what is kept


def request(query: str, name: str = "rebalance") -> Request:
    pairs = [(n, v) for n, _, v in (p.partition("=") for p in query.split("&") if p)]
    return parsed(ENDPOINTS[name], pairs, f"/{name}")


def test_a_dry_run_is_kept_for_the_same_request_alone(uneven: CruiseClient, tmp_path: Path) -> None:
    reply = result(uneven, "POST", f"rebalance?{STRIMZI}")
    kept = KeptPlans(tmp_path)
    approval = STRIMZI.replace("dryrun=true", "dryrun=false").replace("%2C", ",")
    found = kept.find(request(approval.replace("verbose=true", "verbose=False")))
    assert found is not None
    entry, plan = found
    assert (entry.task_id, entry.plan_hash) == (reply.task_id, plan.hash)
    assert len(plan.moves) == reply.json["summary"]["numReplicaMovements"]
    assert kept.find(request(f"{approval}&excluded_topics=x")) is None
    assert kept.find(request("dryrun=false")) is None


def test_a_kept_plan_that_was_edited_is_named(uneven: CruiseClient, tmp_path: Path) -> None:
    result(uneven, "POST", f"rebalance?{STRIMZI}")
    kept, asked = KeptPlans(tmp_path), request(STRIMZI.replace("%2C", ","))
    found = kept.find(asked)
    assert found is not None
    path = kept.plan_path(found[1].hash)
    path.write_text(path.read_text().replace("orders", "Orders"))
    with pytest.raises(ConfigError, match="was altered"):
        kept.find(asked)
    file = tmp_path / "cruise-control" / f"{key_of(asked)}.kept.json"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(ConfigError, match=r"kept\.json is not a"):
        kept.find(asked)


def test_old_plans_are_forgotten(tmp_path: Path) -> None:
    kept = KeptPlans(tmp_path)
    for number in range(MOST_KEPT + 2):
        plan = clusters.plan(clusters.move(number, (1,), (2,)))
        kept.keep(request(f"excluded_topics=t{number}"), plan, "t", number, None)
    assert kept.find(request("excluded_topics=t1")) is None
    assert kept.find(request("excluded_topics=t2")) is not None
    assert len(list((tmp_path / "cruise-control").iterdir())) == 2 * MOST_KEPT


def test_a_dry_run_is_continued_after_a_restart(tmp_path: Path) -> None:
    """Its client goes on asking with the same id."""
    query = "dryrun=true&json=true"
    tasks = UserTasks(tmp_path, lambda: 1.0)
    task = tasks.begin(request(query), "10.0.0.1", kept=True)
    state = ServiceState()
    with CruiseControl(tmp_path, state, block_s=0.05) as parts, served(parts) as client:
        early = client.post(f"rebalance?{query}", User_Task_ID=task.task_id)
        assert early.status == 202
        assert early.json["progress"][0]["operationProgress"][0]["step"] == (
            "WAITING_FOR_CLUSTER_MODEL"
        )
        seen(tmp_path, state, parts, UNEVEN)
        reply = result(client, "POST", f"rebalance?{query}", User_Task_ID=task.task_id)
        assert (reply.status, reply.task_id) == (200, task.task_id)
        assert reply.json["summary"]["numReplicaMovements"] == 5
    later = UserTasks(tmp_path, lambda: 1.0)
    assert [t.status for t in later.all()] == [TaskStatus.COMPLETED]


def test_a_task_that_cannot_be_kept_is_refused(uneven: CruiseClient, tmp_path: Path) -> None:
    (tmp_path / "cruise-control").write_text("in the way")
    reply = uneven.post("rebalance?json=true&dryrun=true")
    assert reply.status == 500
    assert f"cannot create {tmp_path / 'cruise-control'}" in reply.error
    assert uneven.get("state?json=true").status == 200


# ---- goals


def test_every_goal_of_cruise_control_is_known() -> None:
    """Its default goals, as in its `cruisecontrol.properties`."""
    names = """
        RackAwareGoal MinTopicLeadersPerBrokerGoal ReplicaCapacityGoal DiskCapacityGoal
        NetworkInboundCapacityGoal NetworkOutboundCapacityGoal CpuCapacityGoal
        ReplicaDistributionGoal PotentialNwOutGoal DiskUsageDistributionGoal
        NetworkInboundUsageDistributionGoal NetworkOutboundUsageDistributionGoal
        CpuUsageDistributionGoal TopicReplicaDistributionGoal LeaderReplicaDistributionGoal
        LeaderBytesInDistributionGoal
    """
    assert {*names.split()} <= {*ALL}
    assert {*BALANCED.values()} == {*Resource, *Count} - {Resource.REQUESTS}


def test_named_goals_choose_what_is_balanced() -> None:
    mine = Goals(balance=(Goal(resource=Resource.DISK, tolerance=0.3),))
    long = "com.linkedin.kafka.cruisecontrol.analyzer.goals.DiskUsageDistributionGoal"
    assert with_named(mine, [long, "RackAwareGoal"]).balance == mine.balance
    assert with_named(mine, ["LeaderReplicaDistributionGoal"]).balance == (
        Goal(resource=Count.LEADERS),
    )
    assert with_named(mine, ["RackAwareGoal"]).balance == ()
    assert with_named(mine, []) is mine


def test_a_dead_broker_is_not_filled(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, with_state(UNEVEN, 3, BrokerState.DEAD))
    reply = result(client, "POST", "add_broker?json=true&brokerid=3")
    assert (reply.status, "cannot add broker 3: it is dead" in reply.error) == (500, True)
