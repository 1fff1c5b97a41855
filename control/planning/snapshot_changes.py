"""Changes between two snapshots that a plan depends on, in words."""

from collections.abc import Iterator

from model.ids import PartitionId
from model.plan.plan import Plan
from model.snapshot.snapshot import TAKING, Broker, BrokerState, Snapshot
from model.units import count_text

MOST_NAMED = 3
"""Partitions named one by one; further ones are counted."""


def changes(before: Snapshot, after: Snapshot, plan: Plan) -> tuple[str, ...]:
    """List why a plan for one snapshot is outdated in another; empty if it is not.

    Partitions that the plan moves come first.
    """
    rules = (*_states(before, after), *_dirs(before, after), *_constraints(before, after))
    if before.fingerprint == after.fingerprint:
        return rules
    partitions = _moved_partitions(before, after, plan)
    return (*_brokers(before, after), *rules, *_topics(before, after), *partitions)


def basis(snapshot: Snapshot) -> tuple[object, ...]:
    """Key of the state that `changes` compares; equal keys give equal changes."""
    # The fingerprint tells live and dead brokers apart, but no further states.
    states = tuple((b.id, b.state, tuple(sorted(_failed(b)))) for b in snapshot.header.brokers)
    constraints = sorted((t.name, t.placement) for t in snapshot.header.topics if t.placement)
    return snapshot.fingerprint, states, tuple(constraints)


def _brokers(before: Snapshot, after: Snapshot) -> Iterator[str]:
    old, new = _live(before), _live(after)
    for broker in sorted(old - new):
        yield f"broker {broker} is gone"
    for broker in sorted(new - old):
        yield f"broker {broker} is new"


def _states(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Live brokers that rules now treat differently: cordoned, draining or slow."""
    new = after.broker
    for old in before.header.brokers:
        broker = new.get(old.id)
        if broker is None or BrokerState.DEAD in (old.state, broker.state):
            continue
        was, now = _role(old.state), _role(broker.state)
        if was != now:
            yield f"broker {old.id} is {now}, it was {was}"


def _dirs(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Log directories of live brokers that have failed meanwhile, or work again."""
    new = after.broker
    for old in before.header.brokers:
        broker = new.get(old.id)
        if broker is None or BrokerState.DEAD in (old.state, broker.state):
            continue
        for path in sorted(_failed(broker) - _failed(old)):
            yield f"log directory {path} of broker {old.id} has failed"
        for path in sorted(_failed(old) - _failed(broker)):
            yield f"log directory {path} of broker {old.id} works again"


def _failed(broker: Broker) -> frozenset[str]:
    return frozenset(entry.path for entry in broker.log_dirs if entry.failed)


def _constraints(before: Snapshot, after: Snapshot) -> Iterator[str]:
    """Topics whose configs have other placement constraints."""
    old = {t.name: t.placement for t in before.header.topics}
    found = sorted(
        t.name for t in after.header.topics if t.name in old and t.placement != old[t.name]
    )
    for name in found[:MOST_NAMED]:
        yield f"the placement constraints of topic {name} changed"
    if len(found) > MOST_NAMED:
        more = count_text(len(found) - MOST_NAMED, "more topic")
        yield f"the placement constraints of {more} changed"


def _role(state: BrokerState) -> str:
    return "in service" if state in TAKING else state.value


def _live(snapshot: Snapshot) -> set[int]:
    return {b.id for b in snapshot.header.brokers if b.state is not BrokerState.DEAD}


def _topics(before: Snapshot, after: Snapshot) -> Iterator[str]:
    old = {t.name: t.topic_id for t in before.header.topics}
    new = {t.name: t.topic_id for t in after.header.topics}
    gone, added = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    again = sorted(t for t in old.keys() & new.keys() if old[t] != new[t])
    for names, verb in ((gone, "removed"), (added, "added"), (again, "recreated")):
        for name in names[:MOST_NAMED]:
            yield f"topic {name} was {verb}"
        if len(names) > MOST_NAMED:
            yield f"{verb}, too: {count_text(len(names) - MOST_NAMED, 'more topic')}"


def _moved_partitions(before: Snapshot, after: Snapshot, plan: Plan) -> Iterator[str]:
    old, new = _places(before), _places(after)
    moved = {m.id for m in plan.moves}
    changed = [p for p, place in new.items() if p not in old or old[p] != place]
    changed.sort(key=lambda p: (p not in moved, p))
    for partition in changed[:MOST_NAMED]:
        was = old.get(partition)
        now = f"{partition} is on {_place_text(new[partition])}"
        yield f"{now}, it was on {_place_text(was)}" if was else f"{now}, it is new"
    if len(changed) > MOST_NAMED:
        more = count_text(len(changed) - MOST_NAMED, "more partition")
        yield f"{more} changed"


def _places(snapshot: Snapshot) -> dict[PartitionId, tuple[list[int], int]]:
    """Replica list and leader of each partition."""
    columns = snapshot.partitions
    starts, leaders = columns.replica_start.tolist(), columns.leader.tolist()
    brokers = columns.replica_broker.tolist()
    return {
        partition: (brokers[starts[row] : starts[row + 1]], leaders[row])
        for row, partition in enumerate(snapshot.ids)
    }


def _place_text(place: tuple[list[int], int]) -> str:
    """`1,2 led by 2`; without the leader where it is the first replica."""
    replicas, leader = place
    ids = ",".join(map(str, replicas))
    return ids if leader == replicas[0] else f"{ids} led by {leader}"
