"""What brokers can carry, who says so, and how much of it is in use."""

from control.render.plan_text import load_text, table
from model.evaluate import Evaluation
from model.snapshot.snapshot import Broker, Resource, Snapshot
from model.units import percent_text


def capacity_text(snapshot: Snapshot, evaluation: Evaluation) -> str:
    """A line for each broker; empty where no capacity is known."""
    brokers = snapshot.header.brokers
    shown = [r for r in Resource if any(r in b.capacity for b in brokers)]
    if not shown:
        return ""
    rows = [
        [str(b.id), *(_cell(b, r, evaluation.loads[b.id].get(r)) for r in shown)]
        for b in brokers
    ]
    return table(["broker", *(f"capacity {r}" for r in shown)], rows)


def capacity_cell(broker: Broker, resource: Resource) -> str:
    """What a broker can carry of a resource, and who says so."""
    capacity = broker.capacity.get(resource)
    if capacity is None:
        return "unknown"
    words = f"{capacity:.4g} %"
    if resource is not Resource.CPU:
        words = load_text(resource, capacity)
    source = broker.capacity_from.get(resource)
    return f"{words} ({source})" if source else words


def _cell(broker: Broker, resource: Resource, load: float | None) -> str:
    words, capacity = capacity_cell(broker, resource), broker.capacity.get(resource)
    if load is None or capacity is None:
        return words
    return f"{percent_text(load / capacity)} of {words}"
