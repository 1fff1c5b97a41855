"""What clients of Cruise Control read, compared with its own description of its answers."""

import re
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from control.cruise_control.anomalies import REPEAT_MS, AnomalyKind, AnomalyWatch
from control.cruise_control.answers import text_of
from control.cruise_control.cruise_control import CruiseControl
from control.cruise_control.state_documents import Ordered, executor_state, proposal_document
from control.loop.loop import Loop
from control.loop.view import LoopView, Mode, Phase
from control.service.service_state import ServiceState
from control.settings.trigger_table import TriggerTable
from model.goals.goals import Goal, Goals
from model.ids import PartitionId
from model.run import MoveProgress, MoveState, RunProgress, RunState
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, BrokerState, Count, Resource, Snapshot, StorageKind
from tests.support.control.cruise_bench import CruiseClient, served
from tests.support.control.cruise_schema import check
from tests.support.control.loop_parts import (
    MB,
    START_MS,
    CannedObserver,
    cluster,
    loop_parts,
    loop_settings,
    with_state,
)
from tests.support.model import clusters
from tests.support.model.clusters import move
from tests.support.tui.terminals import LONG_S

UNEVEN = cluster([2] * 9, [MB] * 9)


def seen(tmp_path: Path, state: ServiceState, parts: CruiseControl, snapshot: Snapshot) -> LoopView:
    """Let the service see one view of a loop that has not started."""
    observer = CannedObserver([snapshot])
    loop = Loop(loop_settings(tmp_path, mode=Mode.READ_ONLY), loop_parts(observer, None))
    state.begin(loop.settings.goals, loop.settings.tick_s)
    loop.subscribe(state.see)
    parts.attach(loop)
    loop.turn(observer)
    assert loop.view.snapshot is not None
    return loop.view


def with_cores(*cores: float) -> list[Broker]:
    """Three brokers, of which the first have these cores."""
    capacity = [{Resource.CPU: count} for count in cores] + [{}] * 3
    members = zip(clusters.brokers(3), capacity, strict=False)
    return [broker.model_copy(update={"capacity": own}) for broker, own in members]


def test_the_state_is_answered_before_anything_is_known(client: CruiseClient) -> None:
    reply = client.get("state?json=true")
    assert reply.status == 200
    check(reply.json, "cruiseControlState", "CruiseControlState")
    assert {*reply.json} == {
        "version",
        "MonitorState",
        "ExecutorState",
        "AnalyzerState",
        "AnomalyDetectorState",
    }
    assert reply.json["MonitorState"]["state"] == "LOADING"
    assert reply.json["AnalyzerState"] == {"isProposalReady": False, "readyGoals": []}
    assert reply.json["ExecutorState"] == {"state": "NO_TASK_IN_PROGRESS"}
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert reply.headers["cruise-control-version"] >= "2.0.61"


def test_the_state_does_not_wait_for_other_requests(parts: CruiseControl) -> None:
    hold = threading.Event()
    with served(parts) as client:
        # As a slow answer to another request would.
        parts.api._reads.submit(hold.wait, LONG_S)
        slow = threading.Thread(target=client.get, args=("load?json=true",))
        slow.start()
        try:
            assert client.get("state?json=true").status == 200
        finally:
            hold.set()
            slow.join()


def test_the_state_of_a_cluster(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    found = client.get("state?json=true&verbose=True&substates=monitor,ANALYZER").json
    check(found, "cruiseControlState", "CruiseControlState")
    assert {*found} == {"version", "MonitorState", "AnalyzerState"}
    monitor = found["MonitorState"]
    assert (monitor["state"], monitor["numMonitoredWindows"]) == ("RUNNING", 1)
    assert (monitor["numValidPartitions"], monitor["numTotalPartitions"]) == (9, 9)
    assert monitor["monitoringCoveragePct"] == 100
    assert monitor["monitoredWindows"] == {str(START_MS): 1.0}
    ready = found["AnalyzerState"]["readyGoals"]
    assert "NetworkInboundUsageDistributionGoal" in ready
    assert "RackAwareGoal" in ready
    assert [r["status"] for r in found["AnalyzerState"]["goalReadiness"]] == ["ready"] * len(ready)


def test_violated_goals_are_anomalies_with_both_times(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    view = seen(tmp_path, state, parts, UNEVEN)
    found = client.get("state?json=true&substates=anomaly_detector").json["AnomalyDetectorState"]
    check(found, "anomalyDetectorState", "AnomalyDetectorState")
    (violation,) = found["recentGoalViolations"]
    assert violation["fixableViolatedGoals"] == [
        "NetworkInboundUsageDistributionGoal",
        "NetworkOutboundUsageDistributionGoal",
    ]
    assert violation["status"] == "IGNORED"
    assert abs(violation["detectionMs"] - view.at_ms) < 60_000
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", violation["detectionDate"])
    assert found["selfHealingEnabled"] == []
    assert 0 < found["balancednessScore"] < 100


def viewed(snapshot: Snapshot, at_ms: int, **changes: object) -> LoopView:
    """A view of a loop of `--auto` at some time."""
    observer = CannedObserver([snapshot])
    loop = Loop(loop_settings(Path("unused"), mode=Mode.READ_ONLY), loop_parts(observer, None))
    loop.turn(observer)
    return replace(loop.view, at_ms=at_ms, mode=Mode.AUTO, **changes)  # type: ignore[arg-type]


def test_a_lasting_anomaly_is_detected_again_and_one_that_ended_is_new() -> None:
    watch, goals, triggers = AnomalyWatch(), Goals(), TriggerTable()

    def see(snapshot: Snapshot, at_ms: int, **changes: object) -> list[int]:
        watch.see(viewed(snapshot, at_ms, **changes), goals, triggers)
        return [a["detectionMs"] for a in watch.recent(AnomalyKind.GOAL_VIOLATION)]

    def uneven() -> Snapshot:
        return cluster([2] * 9, [MB] * 9)

    assert see(uneven(), 1_000, phase=Phase.RUNNING) == []
    assert see(uneven(), 2_000) == [2_000]
    assert see(uneven(), 3_000) == [2_000]
    assert watch.recent(AnomalyKind.GOAL_VIOLATION)[0]["statusUpdateMs"] == 3_000
    assert watch.recent(AnomalyKind.GOAL_VIOLATION)[0]["status"] == "DETECTED"
    assert see(uneven(), 2_000 + REPEAT_MS) == [2_000, 2_000 + REPEAT_MS]
    assert see(cluster([1, 2, 3], [MB] * 3), 400_000) == [2_000, 302_000]
    assert see(uneven(), 400_001) == [2_000, 302_000, 400_001]


def test_a_dead_broker_is_a_failure(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, with_state(cluster([1, 2], [MB] * 2), 3, BrokerState.DEAD))
    found = client.get("state?json=true&substates=anomaly_detector").json["AnomalyDetectorState"]
    check(found, "anomalyDetectorState", "AnomalyDetectorState")
    (failed,) = found["recentBrokerFailures"]
    assert failed["failedBrokersByTimeMs"] == {"3": failed["detectionMs"]}


def test_loads_of_brokers_have_cruise_controls_units(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    members = clusters.brokers(3, "abc", capacity={1: 4096.0})
    snapshot = clusters.wide(
        members,
        [(1, 2), (2, 3)],
        {
            Resource.NET_IN: [1024.0, 2048.0],
            Resource.NET_OUT: [512.0, 1024.0],
            Resource.DISK: [2.0**20, 3 * 2.0**20],
            Resource.CPU: [0.5, 0.25],
        },
    )
    seen(tmp_path, state, parts, snapshot)
    reply = client.get("load?json=true&populate_disk_info=true&allow_capacity_estimation=False")
    check(reply.json, "brokerStats", "BrokerStats")
    one, two, three = reply.json["brokers"]
    assert (one["Broker"], one["Rack"], one["BrokerState"]) == (1, "a", "ALIVE")
    assert (one["Leaders"], one["Replicas"], two["Leaders"], two["Replicas"]) == (1, 1, 1, 2)
    # A leader sends what producers bring to its follower, too.
    assert (one["LeaderNwInRate"], one["FollowerNwInRate"], one["NwOutRate"]) == (1, 0, 1.5)
    assert (two["LeaderNwInRate"], two["FollowerNwInRate"], two["PnwOutRate"]) == (2, 1, 4.5)
    assert (two["DiskMB"], three["DiskMB"]) == (4, 3)
    assert one["CpuPct"] == pytest.approx(50)
    assert (one["NetworkInCapacity"], two["NetworkInCapacity"]) == (4, 0)
    only = client.get("load?json=true&capacity_only=true").json["brokers"][0]
    assert (only["NetworkInCapacity"], only["Leaders"], only["DiskMB"]) == (4, 0, 0)


def test_cpu_of_partitions_is_in_percent_of_their_leaders_cores(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    loads = {Resource.NET_IN: [1.0] * 3, Resource.CPU: [2.0, 0.5, 0.25]}
    snapshot = clusters.wide(with_cores(8.0, 1.0), [(1,), (2,), (3,)], loads)
    seen(tmp_path, state, parts, snapshot)
    records = client.get("partition_load?json=true&resource=cpu").json["records"]
    # The cores of broker 3 are unknown.
    found = [(record["partition"], record["cpu"]) for record in records]
    assert found == [(1, 50.0), (0, 25.0), (2, 25.0)]


def test_loads_of_partitions_are_sorted_and_filtered(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    snapshot = cluster([1, 2, 3, 1], [MB, 4 * MB, 2 * MB, 3 * MB])
    seen(tmp_path, state, parts, snapshot)

    def numbers(query: str) -> list[int]:
        reply = client.get(f"partition_load?json=true&{query}")
        assert reply.status == 200, reply.text
        for record in reply.json["records"]:
            check(record, "partitionLoadState", "PartitionLoadRecord")
        return [record["partition"] for record in reply.json["records"]]

    assert numbers("resource=networkInbound") == [1, 3, 2, 0]
    assert numbers("resource=NETWORK_INBOUND&entries=2") == [1, 3]
    assert numbers("resource=networkOutbound&brokerid=1") == [3, 0]
    assert numbers("partition=2") == [2]
    assert numbers("resource=networkInbound&partition=1-2") == [1, 2]
    assert numbers("topic=ord.*") == [0, 1, 2, 3]
    assert numbers("topic=ord") == []


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("resource=memory", "resource is one of cpu"),
        ("partition=one", "partition is a number or a range"),
        ("partition=5-1", "partition is a range such as 0-9, lower end first, not '5-1'"),
        ("entries=0", "entries is at least 1"),
        ("topic=(", "topic: '(' is not a valid regular expression"),
        (f"topic={'a%7B0,1000%7D' * 200}", "topic: the regular expression is too large"),
        ("brokerid=-1", "brokerid is not below 0"),
    ],
)
def test_bad_values_are_refused_with_400(
    query: str,
    words: str,
    tmp_path: Path,
    state: ServiceState,
    parts: CruiseControl,
    client: CruiseClient,
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    reply = client.get(f"partition_load?json=true&{query}")
    assert reply.status == 400
    check(reply.json, "errorResponse", "ErrorResponse")
    assert reply.error.startswith(f"Bad GET request '/partition_load' due to '{words}")


def test_the_cluster_state_names_what_is_not_whole(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    members = clusters.brokers(3, "abc", {3: BrokerState.DEAD})
    snapshot = clusters.snapshot(
        members, [(1, 2), (2, 3), (3,)], leaders=[1, 2, -1], storage=StorageKind.REPLICATED
    )
    view = seen(tmp_path, state, parts, snapshot)
    behind = PartitionId(clusters.TOPIC, 0)
    state.view = replace(
        view,
        replication=Replication(
            under_replicated=2, offline=1, behind_ids=(behind,), below_ids=(behind,)
        ),
    )
    found = client.get("kafka_cluster_state?json=true&verbose=true").json
    check(found, "kafkaClusterState", "KafkaClusterState")
    partitions = {
        kind: [p["partition"] for p in rows] for kind, rows in found["KafkaPartitionState"].items()
    }
    assert partitions == {
        "offline": [2],
        "with-offline-replicas": [1, 2],
        "urp": [0, 1],
        "under-min-isr": [0],
        "other": [],
    }
    brokers = found["KafkaBrokerState"]
    assert brokers["ReplicaCountByBrokerId"] == {"1": 1, "2": 2, "3": 2}
    assert brokers["LeaderCountByBrokerId"] == {"1": 1, "2": 1, "3": 0}
    assert brokers["OfflineReplicaCountByBrokerId"] == {"1": 0, "2": 0, "3": 2}
    assert brokers["Summary"]["Replicas"] == 5
    assert client.get("kafka_cluster_state?json=true&topic=other").json["KafkaPartitionState"] == {
        "offline": [],
        "with-offline-replicas": [],
        "urp": [],
        "under-min-isr": [],
    }


def run_of(*states: MoveState, state: RunState = RunState.RUNNING) -> RunProgress:
    moves = [
        MoveProgress(move=move(0, (1,), (2,), bytes_to_copy=0), state=states[0]),
        MoveProgress(move=move(1, (1, 2), (2, 1)), state=states[1]),
    ]
    return RunProgress(
        run_id="run-1",
        plan_hash="f" * 64,
        state=state,
        moves=tuple(moves),
        started_at_ms=1_700_000_000_000,
    )


@pytest.mark.parametrize(
    ("run", "word"),
    [
        (
            run_of(MoveState.ISSUED, MoveState.PLANNED),
            "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
        ),
        (run_of(MoveState.DONE, MoveState.PLANNED), "LEADER_MOVEMENT_TASK_IN_PROGRESS"),
        (
            run_of(MoveState.ISSUED, MoveState.PLANNED, state=RunState.STOPPING),
            "STOPPING_EXECUTION",
        ),
        (
            run_of(MoveState.PLANNED, MoveState.PLANNED, state=RunState.CHECKING),
            "STARTING_EXECUTION",
        ),
    ],
)
def test_a_run_is_shown_with_its_progress(run: RunProgress, word: str) -> None:
    # On shared storage nothing is copied; Strimzi shows progress in bytes all the same.
    snapshot = clusters.snapshot(
        clusters.brokers(3), [(1,), (1, 2)], size_bytes=[5 * 2**20, 2**20], local_bytes=[0, 0]
    )
    view = replace(viewed(snapshot, 0), run=run, snapshot=snapshot)
    found = executor_state(
        view, lambda _hash: Ordered(task_id="t", client="10.0.0.1"), verbose=True
    )
    check(found, "executorState", "ExecutorState")
    assert found["state"] == word
    assert found["totalDataToMove"] == 5
    assert found["finishedDataMovement"] == (5 if run.moves[0].state is MoveState.DONE else 0)
    assert found["triggeredUserTaskId"] == "t"
    reason = "No reason provided (Client: 10.0.0.1, Date: 2023-11-14T22:13:20Z)"
    assert found["triggeredTaskReason"] == reason


def test_a_run_that_has_ended_is_not_shown() -> None:
    run = run_of(MoveState.DONE, MoveState.DONE, state=RunState.DONE)
    view = replace(viewed(UNEVEN, 0), run=run)
    found = executor_state(view, lambda _hash: Ordered(), verbose=False)
    assert found == {"state": "NO_TASK_IN_PROGRESS"}


def test_the_hash_of_a_partition_is_javas() -> None:
    """As recorded of Cruise Control by Strimzi's tests (CC-Rebalance-no-goals-verbose.json)."""
    found = proposal_document(
        move(26, (2, 0), (2, 1), topic="__KafkaCruiseControlPartitionMetricSamples")
    )
    check(found, "executionProposal", "ExecutionProposal")
    assert found["topicPartition"]["hash"] == -1535008712


def test_text_is_the_default(
    tmp_path: Path, state: ServiceState, parts: CruiseControl, client: CruiseClient
) -> None:
    seen(tmp_path, state, parts, UNEVEN)
    reply = client.get("load")
    assert reply.headers["content-type"].startswith("text/plain")
    lines = reply.text.splitlines()
    assert "brokers:" in lines
    header = lines[lines.index("brokers:") + 1].split()
    row = dict(zip(header, lines[lines.index("brokers:") + 3].split(), strict=False))
    assert (row["Host"], row["Broker"]) == ("broker-2", "2")
    assert "ExecutorState: {state: NO_TASK_IN_PROGRESS}\n" in client.get("state").text
    bad = client.get("load?x=1")
    assert bad.text == "Unrecognized endpoint parameters in LOAD GET request: [x].\n"
    first, second = client.post("state").text.splitlines()
    assert first == "Unrecognized endpoint in request '/state'"
    assert second.startswith("Supported POST endpoints: [")
    assert text_of({"version": 1, "message": "a\x1b[2J"}) == "message: a\\x1b[2J\n"


def test_goals_of_counts_are_named() -> None:
    from control.cruise_control.goal_names import names_of

    goals = Goals(balance=(Goal(resource=Count.LEADERS),))
    assert names_of(goals)[-1] == "LeaderReplicaDistributionGoal"
