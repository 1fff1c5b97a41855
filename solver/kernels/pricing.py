"""The cheapest configuration of one row at given prices per unit of load on each broker.

A configuration is a set of brokers with a leader. Under the caps per rack the sets of
followers are the bases of a truncated partition matroid, so the greedy choice is the
cheapest (Edmonds, 1971), and for another leader at most one element is exchanged.
"""

from typing import Final, NamedTuple

import numpy as np

from solver.kernels.compiled import Array, by_reference, compiled, linked
from solver.kernels.copying import copy_to
from solver.kernels.problem_arrays import Columns

INFINITE = np.inf
FIRST_LEADERS: Final = 8
"""Cheapest leaders of a row that are tried in order, before all others."""


@by_reference
class PricingScratch(NamedTuple):
    """Working memory for pricing one row over B brokers in Q racks."""

    follow: Array
    """(B,) cost of each broker as a follower."""
    lead: Array
    """(B,) cost of each broker as the leader."""
    best: Array
    """(M,) the cheapest configuration, leader first."""
    chosen: Array
    """(M,) the greedy choice of followers."""
    in_rack: Array
    """(Q,) replicas chosen in each rack."""


def new_pricing_scratch(c: Columns) -> PricingScratch:
    """Allocate working memory for pricing one row at a time."""
    brokers, most, racks = len(c.scale), c.home.shape[1], c.usable.shape[1]
    record = PricingScratch(
        follow=np.empty(brokers),
        lead=np.empty(brokers),
        best=np.empty(most, np.int64),
        chosen=np.empty(most, np.int64),
        in_rack=np.zeros(racks, np.int64),
    )
    return linked(record)


@compiled
def at_home(c: Columns, p: int, b: int) -> bool:
    """Return whether a replica of row p is on broker b in the snapshot."""
    for k in range(c.rf[p]):
        if c.home[p, k] == b:
            return True
    return False


@compiled
def change_cost(c: Columns, p: int, at: Array) -> float:
    """Compute what row p pays, in units of F, for changing to `at`, (M,) leader first.

    `c.price` for each broker without a replica in the snapshot, and `c.leader_price`
    for another leader. Nothing is refunded to rows that must move.
    """
    total = 0.0
    for k in range(c.rf[p]):
        if not at_home(c, p, at[k]):
            total += c.price[p]
    if at[0] != c.home[p, 0]:
        total += c.leader_price
    return total


@compiled
def lowest_prices(q: Array) -> Array:
    """Return (K,) the lowest of the prices q, (K, B), over all brokers."""
    lowest = np.empty(q.shape[0])
    for d in range(len(lowest)):
        lowest[d] = q[d].min()
    return lowest


@compiled
def discounted(price: float, discount: float) -> float:
    """Return a price less a discount, but at least half the price."""
    return max(0.5 * price, price - discount)


@compiled
def price_row(c: Columns, q: Array, p: int, discount: float, r: PricingScratch) -> None:
    """Fill `r.follow` and `r.lead` with loads at prices q, (K, B), plus costs of changes.

    In units of F. Costs of changes are lowered as in `discounted`; forbidden brokers cost
    infinity. `r.follow` is not filled for a row with one replica, except on its home.
    """
    brokers = q.shape[1]
    g = c.group[p]
    new = discounted(c.price[p], discount)
    change = discounted(c.leader_price, discount)
    r.lead[:] = new + change
    for d in range(q.shape[0]):
        a = c.lead[p, d]
        for b in range(brokers):
            r.lead[b] += a * q[d, b]
    if c.rf[p] > 1:
        r.follow[:] = new
        for d in range(q.shape[0]):
            a = c.follow[p, d]
            if a != 0.0:
                for b in range(brokers):
                    r.follow[b] += a * q[d, b]
    for b in range(brokers):
        if not c.allow[g, b]:
            r.lead[b] = INFINITE
            r.follow[b] = INFINITE
        elif not c.may_lead[g, b]:
            r.lead[b] = INFINITE
    for i in range(c.barred_start[p], c.barred_start[p + 1]):
        r.lead[c.barred[i]] = INFINITE
        r.follow[c.barred[i]] = INFINITE
    _price_home(c, q, p, change, r)
    for i in range(c.barred_leader_start[p], c.barred_leader_start[p + 1]):
        if c.barred_leader[i] != c.home[p, 0]:
            r.lead[c.barred_leader[i]] = INFINITE


@compiled
def _price_home(c: Columns, q: Array, p: int, change: float, r: PricingScratch) -> None:
    g = c.group[p]
    for k in range(c.rf[p]):
        b = c.home[p, k]
        if not c.stays[p, k]:
            r.lead[b] = INFINITE
            r.follow[b] = INFINITE
            continue
        leads, follows = 0.0, 0.0
        for d in range(q.shape[0]):
            leads += c.lead[p, d] * q[d, b]
            follows += c.follow[p, d] * q[d, b]
        r.follow[b] = follows
        if k == 0:
            r.lead[b] = leads if c.leads_on[p] else INFINITE
        else:
            r.lead[b] = leads + change if c.may_lead[g, b] else INFINITE


@compiled
def cheapest(c: Columns, p: int, r: PricingScratch) -> float:
    """Return the cost of the cheapest configuration of the priced row p, in units of F.

    Call `price_row` first. `r.best` gets its brokers, leader first, in `c.rf[p]` places.
    Infinite, and `r.best` undefined, where no configuration is allowed. Staying at home is
    allowed whatever the racks, unless the row is displaced or has an explicit placement.
    """
    if c.rf[p] == 1:
        at = 0
        for b in range(1, len(r.lead)):
            if r.lead[b] < r.lead[at]:
                at = b
        r.best[0] = at
        return r.lead[at]
    return _cheapest_set(c, p, r)


@compiled
def _cheapest_set(c: Columns, p: int, r: PricingScratch) -> float:
    rf, g = c.rf[p], c.group[p]
    cost = greedy(c, p, r)
    if cost == INFINITE:
        # `chosen` is incomplete here: it still has brokers of earlier rows.
        return _or_home(c, p, r, INFINITE)
    least, leader, without = INFINITE, -1, -1
    for b in range(len(r.lead)):
        if r.lead[b] == INFINITE:
            continue
        out = _exchanged(c, g, rf, b, r)
        if out < 0:
            continue
        total = cost - r.follow[r.chosen[out]] + r.lead[b]
        if total < least:
            least, leader, without = total, b, out
    if leader >= 0:
        _lead_by(r, rf, r.chosen, without, leader)
    return _or_home(c, p, r, least)


@compiled
def _lead_by(r: PricingScratch, rf: int, at: Array, without: int, leader: int) -> None:
    """Store a leader in `r.best`, and the brokers `at`, (rf,), but for one position."""
    r.best[0] = leader
    place = 1
    for k in range(rf):
        if k != without:
            r.best[place] = at[k]
            place += 1


@compiled
def greedy(c: Columns, p: int, r: PricingScratch) -> float:
    """Choose the cheapest followers of the priced row p within the caps per rack.

    Call `price_row` first. Fills `r.chosen` with `c.rf[p]` brokers, in ascending order of
    their costs, and returns the sum of these in units of F; infinite, and `r.chosen`
    incomplete, where there are too few brokers. Of equal brokers the first is chosen.
    """
    g = c.group[p]
    r.in_rack[:] = 0
    cost = 0.0
    for k in range(c.rf[p]):
        at = -1
        for b in range(len(r.follow)):
            if r.follow[b] == INFINITE or (at >= 0 and r.follow[b] >= r.follow[at]):
                continue
            if r.in_rack[c.rack[b]] >= c.most[g, c.rack[b]]:
                continue
            taken = False
            for j in range(k):
                taken |= r.chosen[j] == b
            if not taken:
                at = b
        if at < 0:
            return INFINITE
        r.chosen[k] = at
        r.in_rack[c.rack[at]] += 1
        cost += r.follow[at]
    return cost


@compiled
def _exchanged(c: Columns, g: int, rf: int, b: int, r: PricingScratch) -> int:
    """Index of the chosen follower that leader b replaces: itself, one in its rack, the last."""
    rack = c.rack[b]
    full = r.in_rack[rack] >= c.most[g, rack]
    worst = -1
    for k in range(rf):
        if r.chosen[k] == b:
            return k
        if not full or c.rack[r.chosen[k]] == rack:
            worst = k
    return worst


@compiled
def _or_home(c: Columns, p: int, r: PricingScratch, least: float) -> float:
    """Compare with staying, allowed even where the rack rule forbids moving there."""
    rf = c.rf[p]
    if c.displaced[p] or c.mode[c.group[p]] == 3:
        return least
    stay = 0.0
    for k in range(rf):
        stay += r.follow[c.home[p, k]]
    leader = -1
    for k in range(rf):
        b = c.home[p, k]
        if r.lead[b] == INFINITE:
            continue
        total = stay - r.follow[b] + r.lead[b]
        if total < least:
            least, leader = total, k
    if leader >= 0:
        _lead_by(r, rf, c.home[p], leader, c.home[p, leader])
    return least


@compiled
def stays_cheapest(c: Columns, q: Array, lowest: Array, p: int, discount: float) -> bool:
    """Tell cheaply whether no configuration can beat home, by the lowest prices (K,).

    A conservative test: True is always right. `q` is (K, B), `lowest` as in
    `lowest_prices`, or below. Costs of changes are lowered as in `discounted`.
    """
    rf = c.rf[p]
    if c.forced[p]:
        return False
    new, change = discounted(c.price[p], discount), discounted(c.leader_price, discount)
    most = 0.0
    for k in range(rf):
        b = c.home[p, k]
        for d in range(q.shape[0]):
            a = c.lead[p, d] if k == 0 else c.follow[p, d]
            most += a * (q[d, b] - lowest[d])
    if rf == 1:
        return most < new + change
    if most >= new:
        return False
    i = c.home[p, 0]
    for k in range(1, rf):
        b = c.home[p, k]
        gain = -change
        for d in range(q.shape[0]):
            gain += (c.lead[p, d] - c.follow[p, d]) * (q[d, i] - q[d, b])
        if gain >= 0.0:
            return False
    return True


@compiled
def stay_cost(c: Columns, q: Array, p: int) -> float:
    """Compute the cost of row p's loads where they are, at prices q, (K, B), in units of F."""
    total = 0.0
    for k in range(c.rf[p]):
        b = c.home[p, k]
        for d in range(q.shape[0]):
            total += (c.lead[p, d] if k == 0 else c.follow[p, d]) * q[d, b]
    return total


@compiled
def least_with(
    c: Columns, q: Array, rows: Array, holds: Array, leads: Array, r: PricingScratch
) -> None:
    """Find the least cost of rows with a given broker in them, at prices q, (K, B).

    `rows` is (m,). Fills `holds`, (m, B) with a replica on the broker, and `leads`, (m, B)
    with the broker as the leader, in units of F; infinite for rows that may not change and
    where nothing is allowed. Including a broker exchanges at most one other of the greedy
    choice, as another leader does.
    """
    chosen = np.zeros(c.home.shape[1], np.int64)
    first = np.zeros(FIRST_LEADERS, np.int64)
    holds[:, :] = INFINITE
    leads[:, :] = INFINITE
    for i in range(len(rows)):
        p = rows[i]
        if not c.free[p]:
            continue
        price_row(c, q, p, 0.0, r)
        if c.rf[p] == 1:
            copy_to(holds[i], r.lead)
            copy_to(leads[i], r.lead)
            continue
        total = greedy(c, p, r)
        if total < INFINITE:
            _lowest(r.lead, first)
            for b in range(len(r.lead)):
                holds[i, b], leads[i, b] = _with_broker(c, p, b, total, chosen, first, r)
        _with_home(c, p, holds[i], leads[i], r)


@compiled
def _with_broker(
    c: Columns, p: int, b: int, total: float, chosen: Array, first: Array, r: PricingScratch
) -> tuple[float, float]:
    """Least cost with broker b, and with b as the leader; the greedy choice costs `total`.

    `first` are the brokers that lead at the least cost; see `_lowest`.
    """
    k = _leaves(c, p, b, r.chosen, -1, r)
    if r.follow[b] == INFINITE or k < 0:
        return INFINITE, INFINITE
    without = total - r.follow[r.chosen[k]]
    led = without + r.lead[b]
    copy_to(chosen, r.chosen)
    chosen[k] = b
    return min(led, _with_leader(c, p, chosen, without + r.follow[b], b, first, r)), led


@compiled
def _lowest(cost: Array, first: Array) -> None:
    """Fill `first` with the positions of the least finite costs, ascending; -1 fills."""
    first[:] = -1
    last = len(first) - 1
    for b in range(len(cost)):
        if cost[b] == INFINITE or (first[last] >= 0 and cost[b] >= cost[first[last]]):
            continue
        at = last
        while at > 0 and (first[at - 1] < 0 or cost[b] < cost[first[at - 1]]):
            first[at] = first[at - 1]
            at -= 1
        first[at] = b


@compiled
def _with_leader(
    c: Columns, p: int, chosen: Array, total: float, kept: int, first: Array, r: PricingScratch
) -> float:
    """Cost with the best leader, in exchange for a follower other than `kept` if not chosen.

    Leaders are tried from the cheapest on, as long as they can still be better.
    """
    cost = total - r.follow[kept] + r.lead[kept] if r.lead[kept] < INFINITE else INFINITE
    most = -INFINITE
    for k in range(c.rf[p]):
        if chosen[k] != kept:
            most = max(most, r.follow[chosen[k]])
    for b in first:
        # Rounding is monotonic, so the cost cannot be below this, bit by bit.
        if b < 0 or total - most + r.lead[b] >= cost:
            return cost
        k = _leaves(c, p, b, chosen, kept, r)
        if k >= 0:
            cost = min(cost, total - r.follow[chosen[k]] + r.lead[b])
    for b in range(len(r.lead)):
        if r.lead[b] < INFINITE and total - most + r.lead[b] < cost:
            k = _leaves(c, p, b, chosen, kept, r)
            if k >= 0:
                cost = min(cost, total - r.follow[chosen[k]] + r.lead[b])
    return cost


@compiled
def _leaves(c: Columns, p: int, b: int, chosen: Array, kept: int, r: PricingScratch) -> int:
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
        if found < 0 or r.follow[chosen[k]] > r.follow[chosen[found]]:
            found = k
    return found


@compiled
def _with_home(c: Columns, p: int, holds: Array, leads: Array, r: PricingScratch) -> None:
    """The same for replicas that stay, which the racks need not allow."""
    if c.displaced[p]:
        return
    total, gain = 0.0, INFINITE
    for k in range(c.rf[p]):
        b = c.home[p, k]
        total += r.follow[b]
        gain = min(gain, r.lead[b] - r.follow[b])
    for k in range(c.rf[p]):
        b = c.home[p, k]
        holds[b] = min(holds[b], total + gain)
        leads[b] = min(leads[b], total + r.lead[b] - r.follow[b])
