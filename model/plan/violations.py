"""Which brokers are over their limits and which partitions break the rack rule.

Computed for the snapshot and for the proposed placement, by code that shares nothing
with the solver: the figures that a plan states about them are checked against these.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np

from model.bound.row_rules import RowRules, row_rules
from model.files import rounded
from model.goals.goals import RackRule
from model.ids import BrokerId
from model.plan.plan import Plan
from model.plan.proposal import Proposal, Replicas
from model.plan.remaining import OverLimit, RackViolation, exceeds
from model.snapshot.snapshot import TAKING, Bools, Ints

REPLICAS: Final = "replicas"
"""The dimension of the limit on replicas per broker."""

_NEAR: Final = 1e-8
"""Share by which figures may differ: ten times what rounding can amount to."""

IN_COOLDOWN: Final = "it is in cooldown after a recent move"
NOT_ASKED: Final = "the goals do not repair racks"


def over_limits(proposal: Proposal) -> tuple[OverLimit, ...]:
    """Every limit exceeded before or after the changes, by broker and dimension.

    Limits are capacities times the goals' shares, now and in each slot, and replicas per broker.
    """
    found = (*_resources(proposal), *_replica_counts(proposal))
    return tuple(sorted(found, key=lambda o: (o.broker, o.dimension)))


def rack_violations(proposal: Proposal) -> tuple[RackViolation, ...]:
    """Partitions that break the rack rule as the snapshot has them, by row.

    The reason is why a partition may not move at all; it is empty for one that may.
    """
    if not proposal.racks_bind:
        return ()
    before = _breaks(proposal, proposal.before)
    after = _breaks(proposal, proposal.after) if proposal.changes else before
    if not before.any():
        return ()
    rules = row_rules(proposal)
    return tuple(
        RackViolation(
            topic=proposal.snapshot.id(row).topic,
            partition=proposal.snapshot.id(row).partition,
            repaired=not after[row],
            reason=_why_not(proposal, row, rules) if after[row] else "",
        )
        for row in np.flatnonzero(before).tolist()
    )


def misstated(plan: Plan, found: Proposal) -> Iterator[str]:
    """Clauses on what a plan states falsely about limits and racks; none if all is right.

    Figures may differ by 1e-8 of themselves; a repair must be stated exactly, reasons are not
    compared.

    found: the placement that the plan leads to, built from the snapshot and goals of the plan.
    """
    claimed = {(o.broker, o.dimension): o for o in plan.over_limit}
    recomputed = {(o.broker, o.dimension): o for o in over_limits(found)}
    for key in sorted(claimed.keys() | recomputed.keys()):
        if not _alike(claimed.get(key), recomputed.get(key)):
            yield f"broker {key[0]} over its limit of {key[1]}: the figures are wrong"
    stated = {v.id: v.repaired for v in plan.rack_violations}
    actual = {v.id: v.repaired for v in rack_violations(found)}
    for pid in sorted(stated.keys() | actual.keys()):
        if stated.get(pid) != actual.get(pid):
            yield f"{pid} and the rack rule: the plan does not state what it does"


def _alike(one: OverLimit | None, other: OverLimit | None) -> bool:
    """Whether figures are the same but for rounding; close to the limit none need be given."""
    if one is None or other is None:
        given = one or other
        most = max(given.before, given.after) if given else 0.0
        return given is not None and most <= given.limit * (1 + _NEAR)
    pairs = zip(_figures(one), _figures(other), strict=True)
    return all(abs(a - b) <= _NEAR * max(abs(a), abs(b)) for a, b in pairs)


def _figures(over: OverLimit) -> tuple[float, ...]:
    return over.before, over.after, over.limit, over.capacity or 0.0


def _resources(proposal: Proposal) -> Iterator[OverLimit]:
    for broker, resource, key in proposal.limited():
        capacity = broker.capacity[resource]
        limit = proposal.goals.limit_of(resource) * capacity
        before = proposal.loads_before[broker.id][key]
        after = proposal.loads_after[broker.id][key]
        if exceeds(max(before, after), limit):
            yield _over(broker.id, key, (before, after), limit, capacity)


def _replica_counts(proposal: Proposal) -> Iterator[OverLimit]:
    limit = proposal.goals.replicas_per_broker
    for broker in proposal.holding:
        counts = proposal.replicas_before[broker], proposal.replicas_after[broker]
        if max(counts) > limit:
            yield _over(broker, REPLICAS, counts, limit, None)


def _over(
    broker: BrokerId, key: str, loads: tuple[float, float], limit: float, capacity: float | None
) -> OverLimit:
    before, after = loads
    return OverLimit(
        broker=broker,
        dimension=key,
        before=rounded(before),
        after=rounded(after),
        limit=rounded(limit),
        capacity=None if capacity is None else rounded(capacity),
    )


def _breaks(proposal: Proposal, replicas: Replicas) -> Bools:
    """(n,) rows whose replicas are not spread over racks as the goals say.

    Rows with an explicit placement have a rule of their own.
    """
    brokers = proposal.snapshot.header.brokers
    keys = [(b.rack is None, str(b.rack)) for b in brokers]
    names = sorted(set(keys))
    # Brokers that only a change names are in no rack.
    extra = [len(names)] * (len(proposal.brokers) - len(brokers))
    rack = np.array([*map(names.index, keys), *extra], np.int64)
    count = _counts(proposal, replicas, rack, len(names))
    takers, placed = _takers(proposal, rack, len(names))
    domain = proposal.domains.of_row
    if proposal.goals.rack_rule is RackRule.SPREAD:
        rf = np.bincount(replicas.row, minlength=len(count))
        required = np.minimum(rf, (takers.sum(axis=2) > 0).sum(axis=1)[domain])
        broken = (count > 0).sum(axis=1) < required
    else:
        broken = _uneven(count, takers, replicas, rack, domain)
    return np.asarray(broken & ~placed[domain])


def _counts(proposal: Proposal, replicas: Replicas, rack: Ints, racks: int) -> Ints:
    """(n, racks) replicas of each row in each rack."""
    n, here = len(proposal.snapshot), rack[replicas.broker]
    known = here < racks
    at = replicas.row[known] * racks + here[known]
    return np.bincount(at, minlength=n * racks).reshape(n, racks)


def _takers(proposal: Proposal, rack: Ints, racks: int) -> tuple[Bools, Bools]:
    """(domains, racks, brokers) who may take a replica, by rack; and (domains,) which
    have an explicit placement."""
    taking = proposal.snapshot.in_state(TAKING)
    each = proposal.domains.each
    found = np.zeros((len(each), racks, len(rack)), np.bool_)
    for d, domain in enumerate(each):
        at = np.flatnonzero(taking & domain.allowed)
        found[d, rack[at], at] = True
    return found, np.array([d.placement is not None for d in each], np.bool_)


def _uneven(count: Ints, takers: Bools, replicas: Replicas, rack: Ints, domain: Ints) -> Bools:
    """(n,) rows with over one replica more in a rack than in another with room.

    A rack whose takers all hold a replica has no room for more.
    """
    n, racks = count.shape
    mine = domain[replicas.row]
    here = np.minimum(rack[replicas.broker], racks - 1)
    holds = takers[mine, here, replicas.broker]
    at = replicas.row[holds] * racks + here[holds]
    full = np.bincount(at, minlength=n * racks).reshape(n, racks)
    free = takers.sum(axis=2)[domain] > full
    most = count.max(axis=1, initial=0)
    least = np.where(free, count, most[:, None]).min(axis=1, initial=most.max(initial=0))
    return np.asarray(most - least > 1)


def _why_not(proposal: Proposal, row: int, rules: RowRules) -> str:
    """Why a row may not move for a repair; empty if it may."""
    if rules.fixed[row]:
        return proposal.why_fixed(row) or (IN_COOLDOWN if rules.resting[row] else "")
    return "" if proposal.goals.repair_racks else NOT_ASKED
