"""Least costs of rows at given prices: overall, and with a given broker included.

Racks bind as in `solver.kernels.pricing`. Including one broker exchanges at most one
other of the greedy choice, as another leader does.
"""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.pricing import PricingScratch, cheapest, price_row, stays_cheapest
from solver.kernels.problem_arrays import Columns


@compiled
def cheapest_of_all(c: Columns, q: Floats, best: Ints, least: Floats, r: PricingScratch) -> None:
    """Find the cheapest placement of every row that may change.

    `q` is (K, B), prices per unit of load. Fills `best`, (n, M) int32 brokers, leader
    first, and `least`, (n,) costs: 0 for rows that stay, infinite where no placement is
    allowed.
    """
    lowest = np.empty(len(q))
    for d in range(len(q)):
        lowest[d] = q[d].min()
    for p in range(len(c.rf)):
        least[p] = 0.0
        for k in range(c.rf[p]):
            best[p, k] = c.home[p, k]
        if not c.free[p]:
            continue
        if stays_cheapest(c, q, lowest, p, 0.0):
            for k in range(c.rf[p]):
                for d in range(len(q)):
                    load = c.lead[p, d] if k == 0 else c.follow[p, d]
                    least[p] += load * q[d, c.home[p, k]]
            continue
        price_row(c, q, p, 0.0, r)
        least[p] = cheapest(c, p, r)
        for k in range(c.rf[p]):
            best[p, k] = r.best[k]


@compiled
def _choose(c: Columns, p: int, follow: Floats, chosen: Ints) -> float:
    """Choose the cheapest brokers that the racks allow; return their cost as followers."""
    group, total = c.group[p], 0.0
    for k in range(c.rf[p]):
        found, cost = -1, np.inf
        for b in range(len(follow)):
            if follow[b] < cost and _has_room(c, group, b, chosen, k):
                found, cost = b, follow[b]
        if found < 0:
            return np.inf
        chosen[k] = found
        total += cost
    return total


@compiled
def _has_room(c: Columns, group: int, b: int, chosen: Ints, count: int) -> bool:
    """Whether a broker can join the first `count` of those chosen."""
    same = 0
    for j in range(count):
        if chosen[j] == b:
            return False
        if c.rack[chosen[j]] == c.rack[b]:
            same += 1
    return bool(same < c.most[group, c.rack[b]])


@compiled
def _lead(
    c: Columns, p: int, follow: Floats, lead: Floats, chosen: Ints, total: float, kept: int
) -> float:
    """Cost with the best leader, in exchange for a follower if it is not one.

    `kept` is a broker that must not be exchanged, -1 for none.
    """
    cost = np.inf
    for b in range(len(lead)):
        if lead[b] == np.inf:
            continue
        k = _leaves(c, p, b, follow, chosen, kept)
        if k >= 0 and total - follow[chosen[k]] + lead[b] < cost:
            cost = total - follow[chosen[k]] + lead[b]
    return cost


@compiled
def _leaves(c: Columns, p: int, b: int, follow: Floats, chosen: Ints, kept: int) -> int:
    """Which of the chosen makes room for broker b; b itself if it is one of them."""
    rack, same = c.rack[b], 0
    for k in range(c.rf[p]):
        if chosen[k] == b:
            return k
        same += c.rack[chosen[k]] == rack
    full = same >= c.most[c.group[p], rack]
    found = -1
    for k in range(c.rf[p]):
        if chosen[k] == kept or (full and c.rack[chosen[k]] != rack):
            continue
        if found < 0 or follow[chosen[k]] > follow[chosen[found]]:
            found = k
    return found


@compiled
def least_with(c: Columns, q: Floats, holds: Floats, leads: Floats, r: PricingScratch) -> None:
    """Find the least cost of each row with a given broker in it.

    Fills `holds`, (n, B) with a replica on the broker, and `leads`, (n, B) with the
    broker as the leader.
    """
    brokers, most = len(c.scale), c.home.shape[1]
    base, chosen = np.zeros(most, np.int64), np.zeros(most, np.int64)
    for p in range(len(c.rf)):
        for b in range(brokers):
            holds[p, b] = np.inf
            leads[p, b] = np.inf
        if not c.free[p]:
            continue
        price_row(c, q, p, 0.0, r)
        follow, lead = r.follow, r.lead
        if c.rf[p] == 1:
            for b in range(brokers):
                holds[p, b] = lead[b]
                leads[p, b] = lead[b]
            continue
        total = _choose(c, p, follow, base)
        if total < np.inf:
            for b in range(brokers):
                _with_broker(c, p, b, follow, lead, base, chosen, total, holds, leads)
        _at_home(c, p, follow, lead, holds, leads)


@compiled
def _with_broker(
    c: Columns,
    p: int,
    b: int,
    follow: Floats,
    lead: Floats,
    base: Ints,
    chosen: Ints,
    total: float,
    holds: Floats,
    leads: Floats,
) -> None:
    k = _leaves(c, p, b, follow, base, -1)
    if follow[b] == np.inf or k < 0:
        return
    without = total - follow[base[k]]
    leads[p, b] = without + lead[b]
    for j in range(c.rf[p]):
        chosen[j] = base[j]
    chosen[k] = b
    as_follower = _lead(c, p, follow, lead, chosen, without + follow[b], b)
    holds[p, b] = min(leads[p, b], as_follower)


@compiled
def _at_home(
    c: Columns, p: int, follow: Floats, lead: Floats, holds: Floats, leads: Floats
) -> None:
    """The same for replicas that stay, which the racks need not allow."""
    if c.forced[p]:
        return
    total, gain = 0.0, np.inf
    for k in range(c.rf[p]):
        b = c.home[p, k]
        total += follow[b]
        gain = min(gain, lead[b] - follow[b])
    for k in range(c.rf[p]):
        b = c.home[p, k]
        holds[p, b] = min(holds[p, b], total + gain)
        leads[p, b] = min(leads[p, b], total + lead[b] - follow[b])


@compiled
def shifts(c: Columns, row: Ints, at: Ints, broker: Ints, shift: Floats) -> None:
    """Compute what m placements change in the deviations.

    `row` is (m,) and `at` (m, M) brokers of each, leader first. Fills `broker`, (m, 2M)
    brokers that gain or lose load, -1 as filler, and `shift`, (m, 2M, K) by how much.
    """
    for i in range(len(row)):
        p, count = row[i], 0
        for side in range(2):
            for k in range(c.rf[p]):
                b = at[i, k] if side == 0 else c.home[p, k]
                sign = 1.0 if side == 0 else -1.0
                place = 0
                while place < count and broker[i, place] != b:
                    place += 1
                if place == count:
                    broker[i, count] = b
                    count += 1
                for d in range(len(c.weight)):
                    load = c.lead[p, d] if k == 0 else c.follow[p, d]
                    shift[i, place, d] += sign * load * c.scale[b, d]


@compiled
def price_changes(c: Columns, row: Ints, at: Ints, price: Floats) -> None:
    """Fill `price`, (m,), with the cost of placing rows, in units of F.

    `row` is (m,) and `at` (m, M) brokers, leader first, as for `shifts`. Each broker
    without a replica in the snapshot costs `c.price`, another leader `c.leader_price`.
    """
    for i in range(len(row)):
        p = row[i]
        price[i] = 0.0 if at[i, 0] == c.home[p, 0] else c.leader_price
        for k in range(c.rf[p]):
            at_home = False
            for j in range(c.rf[p]):
                at_home |= c.home[p, j] == at[i, k]
            if not at_home:
                price[i] += c.price[p]
