"""Replicas lie where pins, explicit placements and the rack rule say."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from model.goals.goals import RackRule
from model.goals.rack_placement import ReplicaPlacement
from model.ids import BrokerId
from model.plan.proposal import HOLDING, Change, Proposal
from model.snapshot.snapshot import TAKING, Broker
from model.units import count_text


def pinned(proposal: Proposal) -> Iterator[str]:
    """Check that every replica, moved or not, lies where all pins of its partition permit it."""
    if not proposal.goals.pins:
        return
    snapshot = proposal.snapshot
    kept = np.flatnonzero(proposal.forced.outside_pins).tolist()
    rows = [(c.row, c.replicas) for c in proposal.changes]
    rows += [(r, snapshot.replicas(r)) for r in kept if r not in proposal.changed]
    position = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
    for row, replicas in rows:
        allowed = proposal.domains.of(row).allowed
        for broker in replicas:
            if broker in position and not allowed[position[broker]]:
                yield f"{snapshot.id(row)} would lie on broker {broker}, outside its pins"


def explicit_placement(proposal: Proposal) -> Iterator[str]:
    """Check that replicas and observers, moved or not, lie in the racks of their placement.

    Observers stand last and do not lead. Source: Confluent's replica placement constraints.
    """
    for change in proposal.changes:
        if rule := proposal.domains.of(change.row).placement:
            yield from _faults(proposal, change, rule.placement)
    for row in np.flatnonzero(proposal.forced.off_placement).tolist():
        if row not in proposal.changed:
            yield _left(proposal, row)


def _left(proposal: Proposal, row: int) -> str:
    """The fault of a row that stays as it is."""
    snapshot = proposal.snapshot
    rule = proposal.domains.of(row).placement
    leader = snapshot.row(row).leader
    change = Change(row, snapshot.replicas(row), leader)
    faults = list(_faults(proposal, change, rule.placement)) if rule else []
    return faults[0] if faults else f"{snapshot.id(row)} is not placed as it must be"


def _faults(proposal: Proposal, change: Change, rule: ReplicaPlacement) -> Iterator[str]:
    pid = proposal.snapshot.id(change.row)
    leading = sum(rule.replica_racks.values())
    required = sum(rule.racks.values())
    if len(change.replicas) != required:
        yield f"{pid} has {len(change.replicas)} replicas; its placement asks for {required}"
        return
    racks = {b.id: b.rack for b in proposal.snapshot.header.brokers}
    for noun, part, counts in (
        ("replicas", change.replicas[:leading], rule.replica_racks),
        ("observers", change.replicas[leading:], rule.observer_racks),
    ):
        found = Counter(racks.get(b) for b in part)
        for rack, count in counts.items():
            if found[rack] != count:
                yield (
                    f"{pid} would have {found[rack]} {noun} in rack {rack}, its "
                    f"placement asks for {count}{_why(proposal, rack)}"
                )
    if change.leader in change.replicas[leading:]:
        yield f"{pid} would be led by broker {change.leader}, an observer"


def _why(proposal: Proposal, rack: str) -> str:
    """What the rack lacks, if nobody there can hold a replica."""
    brokers = proposal.snapshot.header.brokers
    if any(b.rack == rack and b.state in HOLDING for b in brokers):
        return ""
    if any(b.rack == rack for b in brokers):
        return f"; rack {rack} has no broker that is not draining"
    return f"; no broker names the rack {rack}"


def rack_spread(proposal: Proposal) -> Iterator[str]:
    """Check that new replicas leave a partition in min(replicas, usable racks) racks, or even.

    A usable rack has a broker that may take new replicas of the partition. The rule binds where
    `Proposal.racks_bind`; an explicit placement replaces it.
    """
    if not proposal.racks_bind:
        return
    racks = {b.id: b.rack for b in proposal.snapshot.header.brokers}
    check = _too_few if proposal.goals.rack_rule is RackRule.SPREAD else _uneven
    for change in proposal.changes:
        if proposal.domains.of(change.row).placement is not None:
            continue
        if set(change.replicas) == set(proposal.snapshot.replicas(change.row)):
            continue
        named = (racks.get(b) for b in change.replicas)
        count = Counter(rack for rack in named if rack is not None)
        resized = proposal.resized[change.row]
        fault = check(change, count, _takers(proposal, change))
        if fault and not (resized and _is_best(proposal, change, racks)):
            yield f"{proposal.snapshot.id(change.row)} would lie {fault}"


def _is_best(proposal: Proposal, change: Change, racks: dict[BrokerId, str | None]) -> bool:
    """Whether replicas alone that are added, or removed, could not be spread better.

    A rack that holds too many may neither get a replica, nor keep one that another could have
    given up.
    """
    before = {*proposal.snapshot.replicas(change.row)}
    after = {*change.replicas}
    then = Counter(racks.get(b) for b in after)
    if after > before:
        takers = [b for b in _takers(proposal, change) if b.id not in after]
        least = min((then[b.rack] for b in takers), default=None)
        return least is None or all(then[racks.get(b)] <= least + 1 for b in after - before)
    return all(
        then[racks.get(kept)] <= then[racks.get(gone)] + 1
        for gone in before - after
        for kept in after
    )


def _takers(proposal: Proposal, change: Change) -> list[Broker]:
    """Brokers that may take a new replica of a row, as states and pins say."""
    allowed = proposal.domains.of(change.row).allowed.tolist()
    brokers = proposal.snapshot.header.brokers
    pairs = zip(brokers, allowed, strict=True)
    return [b for b, may in pairs if may and b.state in TAKING]


def _too_few(change: Change, count: Counter[str], takers: list[Broker]) -> str | None:
    possible = min(len(change.replicas), len({b.rack for b in takers}))
    if len(count) >= possible:
        return None
    return f"in {count_text(len(count), 'rack')} where {possible} are possible"


def _uneven(change: Change, count: Counter[str], takers: list[Broker]) -> str | None:
    """A rack whose takers all hold a replica has no room for more."""
    open_racks = {b.rack for b in takers if b.id not in change.replicas}
    for rack, most in count.most_common(1):
        for other in sorted(r for r in open_racks if r is not None):
            if most > count[other] + 1:
                return (
                    f"{most} times in rack {rack} and {count[other]} times in rack "
                    f"{other}, which differ by more than one"
                )
    return None
