"""Cheapest placements of single partitions, many rows at a time."""

import numpy as np

from model.bound.rack_caps import RackCaps
from model.snapshot.snapshot import Floats, Ints


def cheapest_placements(follow: Floats, lead: Floats, rf: int, racks: RackCaps) -> Floats:
    """Least cost of `rf` distinct brokers, one of them leading, within rack caps.

    Exact: brokers within rack caps are the bases of a truncated partition matroid, so the cheapest
    basis that holds a given leader differs from the cheapest of all by a single exchange (Brualdi
    1969).

    follow, lead: (m, brokers) cost of a broker as follower and as leader, infinite where it may not
    be one, for m rows; both may be overwritten. rf: at least 1, the number of replicas.

    Returns (m,) costs, infinite where there is no such placement.
    """
    if rf == 1 or not lead.size:
        return np.asarray(lead.min(axis=1, initial=np.inf))
    rows = np.arange(len(lead))
    at, cost, room = _pick(follow, rf, racks)
    whole = cost.sum(axis=0)
    # Where a pick is infinite so is the whole, whatever is exchanged.
    cost[np.isinf(cost)] = 0.0
    costliest = np.full(room.shape, -np.inf)
    best = np.full(len(lead), np.inf)
    for broker, paid in zip(at, cost, strict=True):
        best = np.minimum(best, lead[rows, broker] - paid)
        rack = racks.rack[broker]
        costliest[rows, rack] = np.maximum(costliest[rows, rack], paid)
    np.put_along_axis(lead, at.T, np.inf, axis=1)
    spare = cost.max(axis=0)[:, None]
    if racks.alone:
        best = np.minimum(best, (lead - spare).min(axis=1))
        return np.asarray(whole + best)
    # A full rack gives up one of its own; any other gives up the most expensive of all.
    gives = np.where(room == 0, costliest, spare)
    for number, members in enumerate(_members(racks)):
        entering = lead[:, members].min(axis=1, initial=np.inf)
        best = np.minimum(best, entering - gives[:, number])
    return np.asarray(whole + best)


def _pick(follow: Floats, rf: int, racks: RackCaps) -> tuple[Ints, Floats, Ints]:
    """The cheapest brokers regardless of the leader.

    Returns (rf, m) brokers, (rf, m) their costs, (m, racks) the room that is left.
    """
    rows = np.arange(len(follow))
    room = np.tile(racks.caps, (len(follow), 1))
    members = _members(racks)
    at = np.empty((rf, len(follow)), np.int64)
    cost = np.empty((rf, len(follow)))
    for i in range(rf):
        at[i] = follow.argmin(axis=1)
        cost[i] = follow[rows, at[i]]
        follow[rows, at[i]] = np.inf
        rack = racks.rack[at[i]]
        room[rows, rack] -= 1
        full = np.flatnonzero(room[rows, rack] == 0)
        if not racks.alone:
            for number in np.unique(rack[full]).tolist():
                closed = full[rack[full] == number]
                follow[np.ix_(closed, members[number])] = np.inf
    return at, cost, room


def _members(racks: RackCaps) -> list[Ints]:
    return [np.flatnonzero(racks.rack == r) for r in range(len(racks.caps))]
