"""The result of a plan in Cruise Control's form, `OptimizationResult`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from control.cruise_control.anomalies import broken_goals
from control.cruise_control.dry_runs import Planned
from control.cruise_control.goal_names import names_of
from control.cruise_control.load_documents import (
    KIB,
    MIB,
    PERCENT,
    VERSION,
    Loads,
    broker_stats,
    cpu_percent,
    loads_of,
)
from control.cruise_control.state_documents import balancedness, proposal_document
from model.evaluate import evaluate
from model.goals.topic_placement import with_topic_placements
from model.ids import BrokerId
from model.plan.plan import ANY_DIR, Move
from model.snapshot.snapshot import BrokerState, Count, Resource, Snapshot

_STATISTICS: Final = {
    "networkInbound": (Resource.NET_IN, KIB),
    "networkOutbound": (Resource.NET_OUT, KIB),
    "disk": (Resource.DISK, MIB),
    "potentialNwOut": (Count.POTENTIAL_NET_OUT, KIB),
    "replicas": (Count.REPLICAS, 1.0),
    "leaderReplicas": (Count.LEADERS, 1.0),
}
"""The measure of each statistic but CPU, and its unit in plimsoll's."""


def optimisation_result(found: Planned, *, verbose: bool) -> dict[str, Any]:
    """Summary, goals, and loads before and after; `proposals` where it is verbose.

    Both tables of loads list every broker, as Strimzi requires.
    """
    snapshot, plan = found.snapshot, found.plan
    goals = with_topic_placements(found.goals, snapshot)
    moves = () if plan is None else plan.moves
    replication = () if plan is None else plan.replication
    evaluation = evaluate(snapshot, goals, moves, replication)
    names = names_of(goals)
    before = broken_goals(evaluate(snapshot, goals, ()), goals, after=False)
    after = broken_goals(evaluation, goals, after=True)
    loads = loads_of(snapshot, moves, replication)
    statistics = _statistics(snapshot, loads)
    document: dict[str, Any] = {
        "version": VERSION,
        "summary": _summary(found, moves)
        | {
            "onDemandBalancednessScoreBefore": balancedness(before, names),
            "onDemandBalancednessScoreAfter": balancedness(after, names),
        },
        "goalSummary": [
            {
                "goal": name,
                "status": _status(name, before, after),
                "clusterModelStats": statistics,
                # One search serves all goals.
                "optimizationTimeMs": 0,
            }
            for name in names
        ],
        "loadBeforeOptimization": broker_stats(snapshot, loads_of(snapshot)),
        "loadAfterOptimization": broker_stats(snapshot, loads),
    }
    if verbose:
        document["proposals"] = [proposal_document(move) for move in moves]
    return document


def _status(name: str, before: Sequence[str], after: Sequence[str]) -> str:
    if name in after:
        return "VIOLATED"
    return "FIXED" if name in before else "NO-ACTION"


def _summary(found: Planned, moves: Sequence[Move]) -> dict[str, Any]:
    snapshot, goals = found.snapshot, found.goals
    copied = sum(move.bytes_to_copy or 0 for move in moves)
    inside = [m for m in moves if m.log_dirs_after and not (m.added or m.removed)]
    known = ~np.isnan(snapshot.partitions.loads)
    measured = float(known.all(axis=1).mean()) if len(snapshot) else 1.0
    excluded = [t.name for t in snapshot.header.topics if goals.excludes(t.name)]
    brokers = snapshot.header.brokers
    away = [int(b.id) for b in brokers if b.state is BrokerState.EXCLUDED]
    led_by_none = (BrokerState.DEMOTED, BrokerState.MAINTENANCE)
    return {
        "numReplicaMovements": sum(len(move.added) for move in moves),
        "dataToMoveMB": int(-(-copied // MIB)),
        "numIntraBrokerReplicaMovements": len(inside),
        "intraBrokerDataToMoveMB": int(-(-sum(map(_inside_of(snapshot), moves)) // MIB)),
        "numLeaderMovements": sum(m.leader_before != m.leader_after for m in moves),
        "recentWindows": 1,
        "monitoredPartitionsPercentage": PERCENT * measured,
        "excludedTopics": excluded,
        "excludedBrokersForReplicaMove": away,
        "excludedBrokersForLeadership": [int(b.id) for b in brokers if b.state in led_by_none],
        "provisionStatus": "UNDECIDED",
        "provisionRecommendation": "",
    }


def _inside_of(snapshot: Snapshot) -> Callable[[Move], int]:
    """Bytes that a move copies between directories of one broker."""

    def inside(move: Move) -> int:
        row = snapshot.find(move.id)
        if row is None or not move.log_dirs_after:
            return 0
        before = dict(zip(move.replicas_before, move.log_dirs_before, strict=False))
        after = zip(move.replicas_after, move.log_dirs_after, strict=False)
        changed = sum(
            path not in (ANY_DIR, before[broker]) for broker, path in after if broker in before
        )
        return changed * max(0, int(snapshot.partitions.local_bytes[row]))

    return inside


def _statistics(snapshot: Snapshot, loads: Mapping[BrokerId, Loads]) -> dict[str, Any]:
    """Of the live brokers' loads after the plan."""
    live = [b for b in snapshot.header.brokers if b.state is not BrokerState.DEAD]
    rows = [loads.get(broker.id, {}) for broker in live] or [{}]
    found: dict[str, dict[str, float]] = {"AVG": {}, "STD": {}, "MIN": {}, "MAX": {}}
    percent = [cpu_percent(b, load) for b, load in zip(live, rows, strict=False)] or [0.0]
    _add(found, "cpu", np.array(percent))
    for name, (measure, unit) in _STATISTICS.items():
        _add(found, name, np.array([load.get(measure, 0.0) for load in rows]) / unit)
    topics = len(snapshot.header.topics) or 1
    of_topics = np.array([load.get(Count.REPLICAS, 0.0) for load in rows]) / topics
    _add(found, "topicReplicas", of_topics)
    metadata = {
        "brokers": len(snapshot.header.brokers),
        "replicas": round(sum(load.get(Count.REPLICAS, 0.0) for load in rows)),
        "topics": len(snapshot.header.topics),
    }
    return {"metadata": metadata, "statistics": found}


def _add(found: dict[str, dict[str, float]], name: str, values: Any) -> None:
    figures = {"AVG": values.mean(), "STD": values.std(), "MIN": values.min(), "MAX": values.max()}
    for kind, value in figures.items():
        found[kind][name] = float(value)
