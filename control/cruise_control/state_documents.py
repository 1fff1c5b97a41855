"""The answer to `state`: monitor, executor, analyzer and anomaly detector.

It reads what the loop has published, and asks neither the loop nor the cluster.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from control.cruise_control.anomalies import (
    FIELDS,
    AnomalyKind,
    AnomalyWatch,
    healed,
    violated_goals,
)
from control.cruise_control.goal_names import names_of
from control.cruise_control.load_documents import MIB, PERCENT, VERSION
from control.cruise_control.requests import BadRequest, Request
from control.loop.view import LoopView, Mode
from control.render.text import time_text
from control.service.service_state import ENDED_RUNS, ServiceState
from control.settings.trigger_table import TriggerTable
from model.plan.plan import Move
from model.run import MoveProgress, MoveState, RunProgress, RunState
from model.snapshot.snapshot import Snapshot

SUBSTATES: Final = {
    "monitor": "MonitorState",
    "executor": "ExecutorState",
    "analyzer": "AnalyzerState",
    "anomaly_detector": "AnomalyDetectorState",
}
"""The field of each substate, by its name in a request."""
IDLE: Final = "NO_TASK_IN_PROGRESS"
_LEADERS: Final = "LEADER_MOVEMENT_TASK_IN_PROGRESS"
_REPLICAS: Final = "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
_DIRECTORIES: Final = "INTRA_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"
_OVER: Final = (MoveState.DONE, MoveState.DROPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """Who ordered a run, as Cruise Control names it."""

    task_id: str = ""
    """The user task; empty for a run of `--auto` or of another front end."""
    client: str = ""
    reason: str = ""


Orders = Callable[[str], Ordered]
"""Who ordered the run of the plan with a hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSources:
    """What `state` reads."""

    service: ServiceState
    anomalies: AnomalyWatch
    triggers: Callable[[], TriggerTable]
    """Those in force."""
    mode: Callable[[], Mode]
    ordered: Orders


def state(sources: StateSources, request: Request) -> dict[str, Any]:
    """The document with the substates asked for, all by default.

    Raises BadRequest for a substate that does not exist.
    """
    asked = [name.lower() for name in request.values.get("substates", SUBSTATES)]
    for name in asked:
        if name not in SUBSTATES:
            known = ", ".join(SUBSTATES)
            raise BadRequest(f"unknown substate {name!r}; there are {known}")
    view, verbose = sources.service.view, request.flag("verbose", False)
    found: dict[str, Any] = {"version": VERSION}
    if "monitor" in asked:
        found["MonitorState"] = monitor_state(sources, view, verbose=verbose)
    if "executor" in asked:
        found["ExecutorState"] = executor_state(view, sources.ordered, verbose=verbose)
    if "analyzer" in asked:
        found["AnalyzerState"] = _analyzer_state(sources, view, verbose=verbose)
    if "anomaly_detector" in asked:
        found["AnomalyDetectorState"] = _detector_state(sources, view)
    return found


def monitor_state(sources: StateSources, view: LoopView | None, *, verbose: bool) -> dict[str, Any]:
    """`LOADING` until loads are known, and while none arrive; its one window is the newest."""
    snapshot = None if view is None else view.snapshot
    total = 0 if snapshot is None else len(snapshot)
    valid = 0 if snapshot is None else _valid(snapshot)
    not_ready = sources.service.not_ready()
    ready = snapshot is not None and not not_ready
    covered = PERCENT * valid / total if total else PERCENT * bool(snapshot)
    found: dict[str, Any] = {
        "state": "RUNNING" if ready else "LOADING",
        "trained": ready,
        "trainingPct": PERCENT if ready else 0.0,
        "numMonitoredWindows": int(snapshot is not None),
        "numValidPartitions": valid,
        "numTotalPartitions": total,
        "monitoringCoveragePct": covered,
        "numFlawedPartitions": 0,
        "reasonOfLatestPauseOrResume": "N/A" if ready else not_ready,
    }
    if not ready:
        found["loadingProgressPct"] = 0.0
    if verbose and snapshot is not None:
        found["monitoredWindows"] = {str(snapshot.header.taken_at_ms): covered / PERCENT}
    return found


def _valid(snapshot: Snapshot) -> int:
    """Partitions of which every load is known."""
    return int((~np.isnan(snapshot.partitions.loads)).all(axis=1).sum())


# ---- the executor


def executor_state(view: LoopView | None, ordered: Orders, *, verbose: bool) -> dict[str, Any]:
    """The run in progress, with figures that Strimzi shows as progress."""
    run = None if view is None else view.run
    if view is None or run is None or run.state in (*ENDED_RUNS, RunState.INTERRUPTED):
        return {"state": IDLE}
    who = ordered(run.plan_hash)
    reason = who.reason or ("No reason provided" if who.task_id else "plimsoll")
    named: dict[str, Any] = {
        "state": _run_state(run),
        "triggeredUserTaskId": who.task_id,
        "triggeredSelfHealingTaskId": "" if who.task_id else run.run_id,
        "triggeredTaskReason": (
            f"{reason} (Client: {who.client or 'plimsoll'}, Date: {time_text(run.started_at_ms)})"
        ),
    }
    moving = [at for at in run.moves if at.move.added or at.move.removed]
    leading = [at for at in run.moves if not (at.move.added or at.move.removed)]
    found = named | _replica_figures(moving, view.snapshot) | _leader_figures(leading)
    if verbose:
        found |= {
            "inProgressPartitionMovement": _tasks(moving, MoveState.ISSUED, MoveState.STUCK),
            "pendingPartitionMovement": _tasks(moving, MoveState.PLANNED),
            "completedPartitionMovement": _tasks(moving, MoveState.DONE),
            "pendingLeadershipMovement": _tasks(leading, MoveState.PLANNED),
        }
    return found


def _run_state(run: RunProgress) -> str:
    if run.state is RunState.STOPPING:
        return "STOPPING_EXECUTION"
    if run.state is RunState.CHECKING:
        return "STARTING_EXECUTION"
    left = [at.move for at in run.moves if at.state not in _OVER] or [at.move for at in run.moves]
    if any(move.added or move.removed for move in left):
        return _REPLICAS
    return _DIRECTORIES if any(move.log_dirs_after for move in left) else _LEADERS


def _count(moves: Sequence[MoveProgress], *states: MoveState) -> int:
    return sum(at.state in states for at in moves)


def _replica_figures(moves: Sequence[MoveProgress], snapshot: Snapshot | None) -> dict[str, Any]:
    sizes = [_bytes_of(at.move, snapshot) for at in moves]
    total = sum(sizes)
    finished = sum(
        size if at.state in _OVER else min(size, at.bytes_copied or 0)
        for at, size in zip(moves, sizes, strict=True)
    )
    in_flight = _count(moves, MoveState.ISSUED, MoveState.STUCK)
    return {
        "numTotalPartitionMovements": len(moves),
        "numPendingPartitionMovements": _count(moves, MoveState.PLANNED),
        "numCancelledPartitionMovements": _count(moves, MoveState.DROPPED),
        "numInProgressPartitionMovements": in_flight,
        "numFinishedPartitionMovements": _count(moves, MoveState.DONE),
        "abortingPartitions": 0,
        # Rounded up alike, so that the first never exceeds the second.
        "finishedDataMovement": int(-(-finished // MIB)),
        "totalDataToMove": int(-(-total // MIB)),
        "minimumConcurrentPartitionMovementsPerBroker": in_flight,
        "averageConcurrentPartitionMovementsPerBroker": in_flight,
        "maximumConcurrentPartitionMovementsPerBroker": in_flight,
    }


def _leader_figures(moves: Sequence[MoveProgress]) -> dict[str, Any]:
    return {
        "numTotalLeadershipMovements": len(moves),
        "numPendingLeadershipMovements": _count(
            moves, MoveState.PLANNED, MoveState.ISSUED, MoveState.STUCK
        ),
        "numCancelledLeadershipMovements": _count(moves, MoveState.DROPPED),
        "numFinishedLeadershipMovements": _count(moves, MoveState.DONE),
    }


def _bytes_of(move: Move, snapshot: Snapshot | None) -> int:
    """Bytes of the replicas that a move adds, the part in a tier or in shared storage included.

    Strimzi shows progress in these alone, and none where they are 0.
    """
    row = None if snapshot is None else snapshot.find(move.id)
    whole = 0 if snapshot is None or row is None else int(snapshot.partitions.size_bytes[row])
    return max(whole * len(move.added), move.bytes_to_copy or 0, 0)


def _tasks(moves: Sequence[MoveProgress], *states: MoveState) -> list[dict[str, Any]]:
    words = {
        MoveState.PLANNED: "PENDING",
        MoveState.ISSUED: "IN_PROGRESS",
        MoveState.STUCK: "IN_PROGRESS",
        MoveState.DONE: "COMPLETED",
    }
    return [
        {
            "executionId": number,
            "type": (
                "INTER_BROKER_REPLICA_ACTION"
                if at.move.added or at.move.removed
                else "LEADER_ACTION"
            ),
            "state": words[at.state],
            "brokerId": int(at.move.leader_before),
            "proposal": proposal_document(at.move),
        }
        for number, at in enumerate(moves)
        if at.state in states
    ]


def proposal_document(move: Move) -> dict[str, Any]:
    """One move as Cruise Control lists it."""
    return {
        "topicPartition": {
            "topic": move.topic,
            "partition": move.partition,
            "hash": _java_hash(move.topic, move.partition),
        },
        "oldLeader": int(move.leader_before),
        "oldReplicas": [int(b) for b in move.replicas_before],
        "newReplicas": [int(b) for b in move.replicas_after],
    }


def _java_hash(topic: str, partition: int) -> int:
    """`TopicPartition.hashCode` of Kafka's Java client."""
    of_topic = 0
    for unit in np.frombuffer(topic.encode("utf-16-le"), "<u2").tolist():
        of_topic = (31 * of_topic + unit) & 0xFFFFFFFF
    found = (31 * (31 + partition) + of_topic) & 0xFFFFFFFF
    return found - 2**32 if found >= 2**31 else found


# ---- analyzer and detector


def _analyzer_state(
    sources: StateSources, view: LoopView | None, *, verbose: bool
) -> dict[str, Any]:
    ready = view is not None and view.snapshot is not None
    names = names_of(sources.service.goals)
    found: dict[str, Any] = {"isProposalReady": ready, "readyGoals": list(names) if ready else []}
    if verbose:
        found["goalReadiness"] = [
            {
                "name": name,
                "status": "ready" if ready else "notReady",
                "modelCompleteRequirement": {
                    "requiredNumSnapshots": 1,
                    "minMonitoredPartitionsPercentage": 0.0,
                    "includeAllTopics": True,
                },
            }
            for name in names
        ]
    return found


def balancedness(violated: Sequence[str], names: Sequence[str]) -> float:
    """Share of the goals that hold, in percent."""
    broken = len({*violated} & {*names})
    return PERCENT * (1 - broken / len(names)) if names else PERCENT


def _detector_state(sources: StateSources, view: LoopView | None) -> dict[str, Any]:
    mode, triggers = sources.mode(), sources.triggers()
    heals = healed(mode, triggers)
    goals = sources.service.goals
    violated = [] if view is None else violated_goals(view, goals)
    zeros = dict.fromkeys((kind.value for kind in AnomalyKind), 0.0)
    return {
        "selfHealingEnabled": [kind.value for kind in heals],
        "selfHealingDisabled": [kind.value for kind in AnomalyKind if kind not in heals],
        "selfHealingEnabledRatio": zeros | {kind.value: 1.0 for kind in heals},
        **{name: sources.anomalies.recent(kind) for kind, name in FIELDS.items()},
        "metrics": {
            "meanTimeBetweenAnomaliesMs": zeros,
            "meanTimeToStartFixMs": 0.0,
            "numSelfHealingStarted": sum(sources.service.tallies.runs.values()),
            "numSelfHealingFailedToStart": 0,
            "ongoingAnomalyDurationMs": 0,
        },
        "balancednessScore": balancedness(violated, names_of(goals)),
    }
