"""Each broker's load relative to the average and to a scale."""

from dataclasses import dataclass

from control.loop.view import LoopView
from model.evaluate import Evaluation, capacities
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.plan import BrokerChange
from model.plan.proposal import Proposal
from model.snapshot.snapshot import Resource, Snapshot
from tui.viewmodel.memoize import memoized_while
from tui.viewmodel.plan.shown_plan import ghost

ORDER = (Resource.NET_IN, Resource.NET_OUT, Resource.DISK, Resource.CPU, Resource.REQUESTS)
"""The order of resources from left to right."""

SHORT: dict[str, str] = {
    Resource.NET_IN: "in",
    Resource.NET_OUT: "out",
    Resource.DISK: "disk",
    Resource.CPU: "cpu",
    Resource.REQUESTS: "requests",
}
"""Short names of resources; other dimensions keep theirs."""


def short_name(dimension: str) -> str:
    """The short name of a measure, or of one in a time slot: `in@3`."""
    measure, at, slot = dimension.partition("@")
    return SHORT.get(measure, measure) + at + slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge:
    """One resource of one broker."""

    load: float
    """In the resource's unit: bytes/s, bytes, cores or requests/s."""
    after: float | None
    """The same after the plan; None without a plan."""
    scale: float
    """The load of a full bar: the capacity if known, else twice the average."""
    capacity: float | None
    limit: float
    """Highest allowed share of the capacity."""
    average: float | None
    """The broker's load if all were balanced; None if not a goal."""
    deviation: float | None
    """Relative to the average, now."""
    deviation_after: float | None
    """The same after the plan; None without a plan."""
    tolerance: float

    @property
    def over(self) -> bool:
        """Above the tolerance band."""
        return self.deviation is not None and self.deviation > self.tolerance

    @property
    def under(self) -> bool:
        """Below the tolerance band."""
        return self.deviation is not None and self.deviation < -self.tolerance

    @property
    def over_limit(self) -> bool:
        """Above the capacity limit, whatever the balance."""
        return self.capacity is not None and self.load > self.limit * self.capacity


Gauges = dict[tuple[BrokerId, Resource], Gauge]


def loads_shown(view: LoopView, goals: Goals, *others: object) -> tuple[object, ...]:
    """The parts of a view that displayed loads depend on, as a cache key."""
    supposed = view.proposed.supposed
    known = view.brokers, view.snapshot, view.evaluation, view.plan
    return (*known, supposed, goals, *others)


@memoized_while(loads_shown)
def resources_of(view: LoopView, goals: Goals) -> tuple[Resource, ...]:
    """The resources drawn: those of the goals, and others with a load."""
    goal_resources = {g.resource for g in goals.balance}
    loads = view.evaluation.loads.values() if view.evaluation else ()
    return tuple(r for r in ORDER if r in goal_resources or any(load.get(r) for load in loads))


@memoized_while(loads_shown)
def gauges(view: LoopView, goals: Goals) -> Gauges:
    """Every broker's gauges; empty before loads are known."""
    if view.snapshot is None or view.evaluation is None:
        return {}
    plan = ghost(view)
    changes = {b.id: b for b in plan.brokers} if plan is not None else {}
    found: Gauges = {}
    for resource in resources_of(view, goals):
        averages = _averages(view.snapshot, view.evaluation, goals, resource)
        loads = view.evaluation.loads.values()
        top = max((v.get(resource, 0.0) for v in loads), default=0.0)
        for broker in view.snapshot.header.brokers:
            average = averages.get(broker.id)
            capacity = broker.capacity.get(resource)
            change = changes.get(broker.id)
            found[broker.id, resource] = Gauge(
                load=view.evaluation.loads[broker.id].get(resource, 0.0),
                after=change.after.get(resource) if change else None,
                scale=capacity or 2 * (average or 0.0) or top,
                capacity=capacity,
                limit=goals.limit_of(resource),
                average=average,
                deviation=view.evaluation.deviations.get(resource, {}).get(broker.id),
                deviation_after=_after(change, resource),
                tolerance=goals.tolerance_of(resource) or 1.0,
            )
    return found


def _averages(
    snapshot: Snapshot, evaluation: Evaluation, goals: Goals, resource: Resource
) -> dict[BrokerId, float]:
    """Each broker's share of the total load, proportional to its capacity."""
    if resource not in evaluation.levels:
        return {}
    weights = capacities(Proposal(snapshot, goals, ()), resource)
    total = evaluation.levels[resource] * len(weights)
    return {b: total * w / sum(weights.values()) for b, w in weights.items()}


def _after(change: BrokerChange | None, resource: Resource) -> float | None:
    return change.deviation_after.get(resource) if change else None
