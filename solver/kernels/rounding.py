"""Rounding of the relaxed placement to a whole one."""

from typing import Final

import numpy as np

from solver.kernels.compiled import Array, changed, compiled
from solver.kernels.copying import copy_to
from solver.kernels.move_deltas import State, fits, racks_hold, reassign, within_budgets
from solver.kernels.pricing import PricingScratch, change_cost, cheapest, price_row
from solver.kernels.problem_arrays import Columns
from solver.kernels.relaxation import NONE, Masses

FRUGAL_COST: Final = 1e3
"""Cost of a new replica, in units of F, that outweighs any imbalance it could cure."""


@compiled
def _local_cost(c: Columns, s: State, at: Array, rf: int) -> float:
    """Cost of the deviations of some brokers."""
    total = 0.0
    for k in range(rf):
        b = at[k]
        if c.holding[b]:
            for d in range(s.v.shape[1]):
                total += c.weight[d] * s.v[b, d] * s.v[b, d]
    return total


@compiled
def allowed_now(c: Columns, s: State, p: int) -> bool:
    """Return whether row p complies with racks, limits and budgets in this state."""
    if not racks_hold(c, s, p):
        return False
    for k in range(c.rf[p]):
        if not fits(c, s, s.at[p, k]):
            return False
        if not within_budgets(c, s, p, c.home[p, k], s.at[p, k]):
            return False
    return True


@compiled
def _switch_cost(c: Columns, s: State, p: int, to: Array, held: Array) -> float:
    """Move row p to a configuration, and return the change of F.

    `held` is (2 M,) working memory.
    """
    rf = c.rf[p]
    n = 0
    before = 0.0
    for k in range(2 * rf):
        b = s.at[p, k] if k < rf else to[k - rf]
        seen = False
        for j in range(n):
            seen |= held[j] == b
        if not seen:
            held[n] = b
            n += 1
    before = _local_cost(c, s, held, n) + change_cost(c, p, s.at[p])
    reassign(c, s, p, to)
    return _local_cost(c, s, held, n) + change_cost(c, p, s.at[p]) - before


@compiled
def place_forced(c: Columns, s: State, rows: Array, r: PricingScratch) -> bool:
    """Move rows that may not stay to where F rises least, in the given order.

    Each row is priced at the present deviations plus half of its own effect, so that a
    single row is placed at its least true cost. Returns False at the first row without an
    allowed place; the rows before it stay placed.
    """
    brokers, dims = s.v.shape
    q = np.empty((dims, brokers))
    for i in range(len(rows)):
        p = rows[i]
        for b in range(brokers):
            for d in range(dims):
                own = c.lead[p, d] * c.scale[b, d]
                for k in range(c.rf[p]):
                    if s.at[p, k] == b:
                        own = -own if k == 0 else own
                q[d, b] = c.weight[d] * (2.0 * s.v[b, d] + own) * c.scale[b, d]
        if not _to_cheapest(c, s, p, q, r):
            return False
    return True


def frugal(c: Columns) -> Columns:
    """Return columns by which `place_forced` moves no more replicas than it must.

    For where it fails: replicas that may stay were moved, too, and used up a budget.
    """
    return changed(c, price=c.price + FRUGAL_COST, leader_price=c.leader_price + FRUGAL_COST / 2)


@compiled
def _to_cheapest(c: Columns, s: State, p: int, q: Array, r: PricingScratch) -> bool:
    """Take the cheapest configuration that fits, excluding full brokers one by one."""
    rf = c.rf[p]
    back = s.at[p].copy()
    price_row(c, q, p, 0.0, r)
    for _ in range(64):
        if cheapest(c, p, r) == np.inf:
            return False
        reassign(c, s, p, r.best)
        if allowed_now(c, s, p):
            return True
        struck = False
        for k in range(rf):
            b = s.at[p, k]
            if not fits(c, s, b) or s.into[b] > c.budgets[5]:
                r.follow[b] = np.inf
                r.lead[b] = np.inf
                struck = True
        reassign(c, s, p, back)
        if not struck:
            return False
    return False


@compiled
def round_relaxed(c: Columns, m: Masses, s: State, order: Array) -> None:
    """Move each row to the best of the configurations that it is split over.

    `order` lists the rows; the others stay in place. Those with over 0.9 of their mass in one
    configuration go there first, if that is allowed; the others go where F is lowest after that.
    """
    held = np.empty(2 * c.home.shape[1], np.int64)
    for stage in range(2):
        for i in range(len(order)):
            p = order[i]
            if m.head[p] == NONE or _is_nearly_whole(m, p) != (stage == 0):
                continue
            back = s.at[p].copy()
            best = s.at[p].copy()
            least = 0.0
            here = 0.0
            node = m.head[p]
            while node != NONE:
                here += _switch_cost(c, s, p, m.at[node], held)
                better = here < least or (stage == 0 and m.mass[node] > 0.5)
                if better and allowed_now(c, s, p):
                    least = here
                    copy_to(best, s.at[p])
                node = m.next[node]
            if not c.forced[p] and stage == 1:
                here += _switch_cost(c, s, p, c.home[p], held)
                if here < least and allowed_now(c, s, p):
                    copy_to(best, s.at[p])
            reassign(c, s, p, best)
            if not allowed_now(c, s, p):
                reassign(c, s, p, back)


@compiled
def _is_nearly_whole(m: Masses, p: int) -> bool:
    node = m.head[p]
    while node != NONE:
        if m.mass[node] > 0.9:
            return True
        node = m.next[node]
    return False


@compiled
def place_single_replicas(c: Columns, s: State, rows: Array, to: Array) -> None:
    """Move rows with one replica to the brokers `to`, one after the other.

    `rows` and `to` are (m,). A row stays where it is if it would break racks, limits or
    budgets; broker states, pins and returns are not checked.
    """
    target = np.empty(c.home.shape[1], np.int64)
    for i in range(len(rows)):
        back = s.at[rows[i]].copy()
        copy_to(target, back)
        target[0] = to[i]
        reassign(c, s, rows[i], target)
        if not allowed_now(c, s, rows[i]):
            reassign(c, s, rows[i], back)
