"""Load of each broker against its level and its scale."""

from dataclasses import dataclass

from control.view import LoopView
from model.evaluate import Evaluation, capacities
from model.goals import Goals
from model.ids import BrokerId
from model.plan import BrokerChange
from model.proposal import Proposal
from model.snapshot import Resource, Snapshot

RESOURCES = (Resource.NET_IN, Resource.NET_OUT)
"""What is drawn, in this order."""

SHORT: dict[str, str] = {
    Resource.NET_IN: "in",
    Resource.NET_OUT: "out",
    Resource.DISK: "disk",
}
"""Names of resources where there is little room; others keep theirs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One resource of one broker."""

    load: float
    """Bytes per second."""
    scale: float
    """The load of a full bar: the capacity where known, else twice the level."""
    level: float | None
    """What the broker would carry if all were level; None where none is sought."""
    deviation: float | None
    """Relative to the level, now."""
    deviation_after: float | None
    """The same after the plan; None without a plan."""
    tolerance: float

    @property
    def over(self) -> bool:
        """Above the band."""
        return self.deviation is not None and self.deviation > self.tolerance

    @property
    def under(self) -> bool:
        """Below the band."""
        return self.deviation is not None and self.deviation < -self.tolerance


Gauges = dict[tuple[BrokerId, Resource], Gauge]


def gauges(view: LoopView, goals: Goals) -> Gauges:
    """Every broker's gauges; empty before loads are known."""
    if view.snapshot is None or view.evaluation is None:
        return {}
    moves = view.plan is not None and view.plan.moves
    changes = {b.id: b for b in view.plan.brokers} if view.plan and moves else {}
    found: Gauges = {}
    for resource in RESOURCES:
        levels = _levels(view.snapshot, view.evaluation, goals, resource)
        loads = view.evaluation.loads.values()
        top = max((v.get(resource, 0.0) for v in loads), default=0.0)
        for broker in view.snapshot.header.brokers:
            level = levels.get(broker.id)
            capacity = broker.capacity.get(resource)
            found[broker.id, resource] = Gauge(
                load=view.evaluation.loads[broker.id].get(resource, 0.0),
                scale=capacity or 2 * (level or 0.0) or top,
                level=level,
                deviation=view.evaluation.deviations.get(resource, {}).get(broker.id),
                deviation_after=_after(changes.get(broker.id), resource),
                tolerance=goals.tolerance_of(resource) or 1.0,
            )
    return found


def _levels(
    snapshot: Snapshot, evaluation: Evaluation, goals: Goals, resource: Resource
) -> dict[BrokerId, float]:
    """Each holding broker's share of the whole load, by capacity."""
    if resource not in evaluation.levels:
        return {}
    weights = capacities(Proposal(snapshot, goals, ()), resource)
    total = evaluation.levels[resource] * len(weights)
    return {b: total * w / sum(weights.values()) for b, w in weights.items()}


def _after(change: BrokerChange | None, resource: Resource) -> float | None:
    return change.deviation_after.get(resource) if change else None
