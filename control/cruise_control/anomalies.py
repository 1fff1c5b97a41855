"""What Cruise Control's anomaly detector would report of the cluster, from the loop's views."""

import threading
import uuid
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from control.cruise_control.goal_names import balance_goal, capacity_goal, in_order
from control.loop.view import LoopView, Mode, Phase
from control.render.text import time_text
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.snapshot.snapshot import BrokerState, Snapshot

REPEAT_MS: Final = 300_000
"""Time after which an anomaly that lasts is detected again, as Cruise Control does by default."""
KEPT: Final = 10
"""Anomalies of each kind."""


class AnomalyKind(StrEnum):
    """The kinds that Cruise Control names; the last three are never detected here."""

    GOAL_VIOLATION = "GOAL_VIOLATION"
    BROKER_FAILURE = "BROKER_FAILURE"
    DISK_FAILURE = "DISK_FAILURE"
    METRIC_ANOMALY = "METRIC_ANOMALY"
    TOPIC_ANOMALY = "TOPIC_ANOMALY"
    MAINTENANCE_EVENT = "MAINTENANCE_EVENT"


FIELDS: Final = {
    AnomalyKind.GOAL_VIOLATION: "recentGoalViolations",
    AnomalyKind.BROKER_FAILURE: "recentBrokerFailures",
    AnomalyKind.DISK_FAILURE: "recentDiskFailures",
    AnomalyKind.METRIC_ANOMALY: "recentMetricAnomalies",
    AnomalyKind.TOPIC_ANOMALY: "recentTopicAnomalies",
    AnomalyKind.MAINTENANCE_EVENT: "recentMaintenanceEvents",
}
"""The field of `AnomalyDetectorState` for each kind."""
_TRIGGERS: Final = {
    AnomalyKind.GOAL_VIOLATION: Trigger.UNEVEN_LOAD,
    AnomalyKind.BROKER_FAILURE: Trigger.DEAD_BROKER,
    AnomalyKind.DISK_FAILURE: Trigger.DEAD_LOG_DIR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One anomaly."""

    anomaly_id: str
    detected_ms: int
    """Milliseconds since the epoch, as is the next."""
    updated_ms: int
    status: str
    detail: Mapping[str, Any]
    """What is wrong, in Cruise Control's fields."""

    def document(self) -> dict[str, Any]:
        """The anomaly with its times as numbers, and as text in UTC for Strimzi."""
        return {
            "anomalyId": self.anomaly_id,
            "status": self.status,
            "detectionMs": self.detected_ms,
            "detectionDate": time_text(self.detected_ms),
            "statusUpdateMs": self.updated_ms,
            "statusUpdateDate": time_text(self.updated_ms),
            **self.detail,
        }


@dataclass
class AnomalyWatch:
    """Detects anomalies in views; the loop's threads call `see`, the server `recent`."""

    detected: Counter[AnomalyKind] = field(default_factory=Counter)
    """Anomalies since the start, of each kind."""
    _kept: dict[AnomalyKind, deque[Anomaly]] = field(default_factory=dict)
    _open: dict[AnomalyKind, Mapping[str, Any]] = field(default_factory=dict)
    """What is wrong now, without the times."""
    _seen: Snapshot | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def see(self, view: LoopView, goals: Goals, triggers: TriggerTable) -> None:
        """Note what is wrong in a view; cheap for one whose snapshot is known."""
        with self._lock:
            if view.snapshot is None or view.snapshot is self._seen:
                return
            if view.phase in (Phase.RUNNING, Phase.SETTLING):
                # Loads are those of a placement that is changing.
                return
            self._seen = view.snapshot
            for kind, detail in _found(view, goals).items():
                self._note(kind, detail, view, triggers)

    def recent(self, kind: AnomalyKind) -> list[dict[str, Any]]:
        """The newest anomalies of a kind, oldest first."""
        with self._lock:
            return [anomaly.document() for anomaly in self._kept.get(kind, ())]

    def _note(
        self, kind: AnomalyKind, detail: Mapping[str, Any], view: LoopView, triggers: TriggerTable
    ) -> None:
        if not detail:
            self._open.pop(kind, None)
            return
        kept = self._kept.setdefault(kind, deque(maxlen=KEPT))
        now_ms = view.at_ms
        newest = kept[-1] if kept and kind in self._open else None
        if newest is not None and now_ms - newest.detected_ms < REPEAT_MS:
            kept[-1] = replace(newest, updated_ms=now_ms, detail=_at(kind, detail, newest))
        else:
            heals = kind in healed(view.mode, triggers)
            found = Anomaly(
                anomaly_id=str(uuid.uuid4()),
                detected_ms=now_ms,
                updated_ms=now_ms,
                status="DETECTED" if heals else "IGNORED",
                detail=detail,
            )
            self.detected[kind] += 1
            kept.append(replace(found, detail=_at(kind, detail, newest or found)))
        self._open[kind] = detail


def healed(mode: Mode, triggers: TriggerTable) -> tuple[AnomalyKind, ...]:
    """The kinds that `--auto` acts on by itself."""
    if mode is not Mode.AUTO:
        return ()
    acts = (k for k, t in _TRIGGERS.items() if triggers.response(t) is Response.ACT)
    return tuple(acts)


def violated_goals(view: LoopView, goals: Goals) -> list[str]:
    """Names of the goals that the newest loads or the placement violate."""
    return [] if view.evaluation is None else broken_goals(view.evaluation, goals, after=False)


def broken_goals(evaluation: Evaluation, goals: Goals, *, after: bool) -> list[str]:
    """Names of the goals that an evaluation shows as violated; after: once its moves are made."""
    names = [balance_goal(found.dimension) for found in evaluation.outside(goals)]
    over = (o for o in evaluation.over_limit if o.remains or not after)
    names += [capacity_goal(found.dimension) for found in over]
    racks = (v for v in evaluation.rack_violations if not (after and v.repaired))
    names += ["RackAwareGoal" for _ in racks]
    return in_order(names)


def _found(view: LoopView, goals: Goals) -> dict[AnomalyKind, dict[str, Any]]:
    names = violated_goals(view, goals)
    brokers = () if view.snapshot is None else view.snapshot.header.brokers
    dead = [b.id for b in brokers if b.state is BrokerState.DEAD]
    failed = {b.id: [d.path for d in b.log_dirs if d.failed] for b in brokers}
    disks = {b: paths for b, paths in failed.items() if paths}
    return {
        AnomalyKind.GOAL_VIOLATION: (
            {"fixableViolatedGoals": names, "unfixableViolatedGoals": []} if names else {}
        ),
        AnomalyKind.BROKER_FAILURE: {"failedBrokersByTimeMs": dead} if dead else {},
        AnomalyKind.DISK_FAILURE: {"failedDisksByTimeMs": disks} if disks else {},
    }


def _at(kind: AnomalyKind, detail: Mapping[str, Any], since: Anomaly) -> Mapping[str, Any]:
    """The detail with the time of the failure beside each broker and directory.

    The time of its detection, since that of the failure itself is not known.
    """
    at_ms = since.detected_ms
    if kind is AnomalyKind.BROKER_FAILURE:
        ids = detail["failedBrokersByTimeMs"]
        return {"failedBrokersByTimeMs": {str(b): at_ms for b in ids}}
    if kind is AnomalyKind.DISK_FAILURE:
        disks = detail["failedDisksByTimeMs"].items()
        return {"failedDisksByTimeMs": {str(b): dict.fromkeys(p, at_ms) for b, p in disks}}
    return detail
