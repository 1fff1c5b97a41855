"""Placements of rows into the tolerance band: the cheapest ones, and what any of them changes."""

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.kernels.compiled import compiled
from solver.kernels.copying import copy_rows_to
from solver.kernels.pricing import (
    PricingScratch,
    at_home,
    cheapest,
    lowest_prices,
    price_row,
    stay_cost,
    stays_cheapest,
)
from solver.kernels.problem_arrays import Columns


@compiled
def cheapest_of_all(c: Columns, q: Floats, best: Ints, least: Floats, r: PricingScratch) -> None:
    """Find the cheapest placement of every row that may change.

    `q` is (K, B), prices per unit of load. Fills `best`, (n, M) brokers, leader first, -1 as
    filler, and `least`, (n,) costs in units of F, of changes and of loads at these prices.
    Rows that may not change get their home and 0; `least` is infinite, and `best` undefined,
    where no placement is allowed.
    """
    lowest = lowest_prices(q)
    least[:] = 0.0
    copy_rows_to(best, c.home)
    for p in range(len(c.rf)):
        if not c.free[p]:
            continue
        if stays_cheapest(c, q, lowest, p, 0.0):
            least[p] = stay_cost(c, q, p)
            continue
        price_row(c, q, p, 0.0, r)
        least[p] = cheapest(c, p, r)
        for k in range(c.rf[p]):
            best[p, k] = r.best[k]


@compiled
def describe_placements(
    c: Columns, row: Ints, at: Ints, price: Floats, broker: Ints, shift: Floats
) -> None:
    """Compute what m placements cost, and what they change in the deviations.

    `row` is (m,) and `at` (m, M) brokers of each, leader first, -1 as filler. Fills `price`,
    (m,), in units of F, `broker`, (m, 2M) brokers that gain or lose load, and `shift`, (m, 2M,
    K): how their deviations change. `broker` must be filled with -1 and `shift` with 0 before.
    """
    for i in range(len(row)):
        p, count = row[i], 0
        price[i] = placement_price(c, p, at, i)
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
def placement_price(c: Columns, p: int, at: Ints, i: int) -> float:
    """Compute the cost of placing row p on the brokers `at[i]`, leader first, in units of F.

    Each broker without a replica in the snapshot costs `c.price`, another leader
    `c.leader_price`. `at` is (m, M), -1 as filler.
    """
    price = 0.0 if at[i, 0] == c.home[p, 0] else c.leader_price
    for k in range(c.rf[p]):
        if not at_home(c, p, at[i, k]):
            price += c.price[p]
    return price


@compiled
def stay_costs(c: Columns, q: Floats) -> Floats:
    """Compute (n,) costs of the rows' loads where they are, at prices q, (K, B), in units of F."""
    found = np.empty(len(c.rf))
    for p in range(len(found)):
        found[p] = stay_cost(c, q, p)
    return found
