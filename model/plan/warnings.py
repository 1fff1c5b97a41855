"""What a plan had to do without: unknown racks and loads, ignored goals and configs."""

from collections.abc import Iterable

import numpy as np

from model.goals.goals import Goal, Goals, RackRule
from model.goals.topic_placement import placement_warnings
from model.ids import NO_BROKER, BrokerId
from model.plan.plan import Move
from model.plan.remaining import load_text, named_ids
from model.plan.unplaceable import placeless_warnings
from model.snapshot.snapshot import BrokerState, Measure, Resource, Snapshot
from model.units import count_text


def racks_unknown(
    snapshot: Snapshot, goals: Goals, *, most_replicas: int | None = None
) -> tuple[BrokerId, ...]:
    """Brokers without a rack because of which the rack rule binds nothing.

    Empty where the rule is off, where no partition has two replicas, and where the
    cluster itself says that it has no racks.

    most_replicas: of one partition; the largest of the snapshot's by default.
    """
    brokers = snapshot.header.brokers
    missing = tuple(b.id for b in brokers if b.rack is None and b.state is not BrokerState.DEAD)
    if goals.rack_rule is RackRule.OFF or not missing:
        return ()
    if all(b.rack is None for b in brokers) and not snapshot.header.racks_unknown:
        return ()
    if most_replicas is None:
        most_replicas = int(snapshot.replica_counts.max(initial=0))
    return missing if most_replicas > 1 else ()


def rack_warning(snapshot: Snapshot, missing: tuple[BrokerId, ...]) -> str:
    """Clause on the effect of unknown racks, and what to do.

    missing: the brokers of `racks_unknown`.
    """
    if len(missing) == len(snapshot.header.brokers):
        who = "the racks of all brokers are unknown"
    else:
        ids = ", ".join(map(str, missing))
        who = f"the rack of broker{'s' if len(missing) > 1 else ''} {ids} is unknown"
    return (
        f"{who}, so the rack rule does not apply: replicas of one partition may share a rack. Name "
        "every broker's rack (--brokers FILE with --from), or say --no-racks"
    )


def plan_warnings(
    snapshot: Snapshot, goals: Goals, ignored: Iterable[tuple[Goal, float]], moves: Iterable[Move]
) -> tuple[str, ...]:
    """Sentences on what was unknown or ignored in a plan; empty where nothing was.

    They concern racks, loads, sizes, placements and goals. ignored: goals that count neither now
    nor in a slot, with the mean load per holding broker in the unit of their measure.
    """
    found = []
    if missing := racks_unknown(snapshot, goals):
        found.append(rack_warning(snapshot, missing))
    if unknown_loads := load_warning(snapshot, goals):
        found.append(unknown_loads)
    found += placement_warnings(goals, snapshot)
    found += placeless_warnings(snapshot, goals)
    found += [goal_warning(snapshot, goal, mean) for goal, mean in ignored]
    if unknown := sum(m.bytes_to_copy is None for m in moves):
        found.append(
            f"{count_text(unknown, 'move')} will copy a partition of unknown size, so the "
            "bytes to copy are unknown"
        )
    return tuple(found)


def load_warning(snapshot: Snapshot, goals: Goals) -> str:
    """Clause on partitions whose loads are needed and unknown; empty if none is.

    Partitions of internal and excluded topics stay in any case, and a resource that is
    known of no partition does not count: those are not meant.
    """
    header, columns = snapshot.header, snapshot.partitions
    needed = [
        header.resources.index(resource)
        for resource in sorted(goals.needed_resources)
        if _is_known(snapshot, resource)
    ]
    stays = [t.internal or goals.excludes(t.name) for t in header.topics]
    unknown = np.isnan(columns.loads[:, needed]).any(axis=1)
    unknown &= (columns.leader != NO_BROKER) & ~np.array(stays, np.bool_)[columns.topic]
    rows = np.flatnonzero(unknown).tolist()
    if not rows:
        return ""
    named = named_ids([snapshot.id(row) for row in rows])
    them = "it" if len(rows) == 1 else "them"
    return (
        f"the load of {count_text(len(rows), 'partition')} is unknown and counts as 0, "
        f"and no plan moves {them}: {named}"
    )


def goal_warning(snapshot: Snapshot, goal: Goal, mean: float) -> str:
    """Clause on why a goal is ignored: nothing measured, or below its floor.

    mean: load per holding broker in the units of the goal's measure.
    """
    measure = goal.resource
    if not _is_known(snapshot, measure):
        return f"the goal {measure} is ignored: no partition's {measure} is known"
    return (
        f"the goal {measure} is ignored: {load_text(measure, mean)} per broker on "
        f"average, and its floor is {load_text(measure, goal.floor)}"
    )


def _is_known(snapshot: Snapshot, measure: Measure) -> bool:
    """Whether any partition's load of a measure is known; True for counts."""
    resource = measure if isinstance(measure, Resource) else measure.resource
    if resource is None:
        return True
    resources = snapshot.header.resources
    if resource not in resources:
        return False
    column = snapshot.partitions.loads[:, resources.index(resource)]
    return not bool(np.isnan(column).all())
