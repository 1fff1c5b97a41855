"""A bound of F by how many replicas each broker has, which is a whole number.

Twenty leaders of about the same load on twelve brokers are one or two on each, whichever they are;
dual prices give each broker one and two thirds. Where n replicas of mean load make a deviation d,
the square of any deviation x is at least d (2 x - d), so n sets the price of a load on the broker.
Given the numbers, it is cheapest to give the largest loads to the brokers with the fewest. The
numbers, and the moves they need at least, are chosen by dynamic programming, with brokers in the
order of what they have now: matching the fewest with the fewest needs no more moves than any other
way.

Each dimension counts on its own, if all brokers are alike in it.
"""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.problem.problem import Problem
from solver.search.search import Search

METHOD: Final = "numbers of replicas"

MOST_PAIRS: Final = 25_000
"""Loads x brokers up to which numbers are tried."""

MOST_PER_BROKER: Final = 16
"""Loads per broker up to which whole numbers differ from prices by enough to matter."""

WORK_PER_NUMBER: Final = 3e-6
"""Work units for one broker and number of replicas; measured."""

ROUNDING: Final = 1e-9
"""What rounding may have added to a bound, as a share of it and of 1."""


def prove_by_replica_counts(search: Search) -> None:
    """Prove a bound of F from how many replicas and leaders brokers have; charges its work.

    Does nothing under `band`, and where replicas may be on brokers that are not balanced.
    """
    problem, may = search.problem, search.problem.may
    balanced = np.flatnonzero(may.holding)
    if problem.band or not problem.holds_all or not len(balanced):
        return
    here = problem.replicas >= 0
    led = np.bincount(problem.leader, minlength=len(problem.brokers))[balanced]
    held = np.bincount(problem.replicas[here], minlength=len(problem.brokers))[balanced]
    # What moves cost at least is counted in one dimension each.
    per_leader, per_replica = problem.costs.leader, _least_cost(problem)
    bound = 0.0
    for k in np.flatnonzero(problem.weight > 0).tolist():
        slope, weight = problem.slope[balanced, k], float(problem.weight[k])
        loads = problem.replica_loads(k)[::-1]
        few = len(loads) <= min(MOST_PAIRS // len(balanced), MOST_PER_BROKER * len(balanced))
        if not few or not len(loads) or not (slope == slope[0]).all() or search.over():
            continue
        now, price = np.zeros_like(held), 0.0
        if per_leader > 0.0 and _is_of_leaders(problem, k):
            now, price, per_leader = led, per_leader, 0.0
        elif len(loads) == problem.rf.sum():
            now, price, per_replica = held, per_replica, 0.0
        search.work += WORK_PER_NUMBER * len(balanced) * (len(loads) + 1)
        bound += weight * _least(loads * slope[0], np.sort(now), price / weight)
    search.prove(min(bound - ROUNDING * (1 + bound), search.objective), METHOD)


def _least_cost(problem: Problem) -> float:
    """Least cost of a new replica; 0 where some are free."""
    costs = problem.costs.replica
    return 0.0 if problem.may.least_new.any() or not len(costs) else float(costs.min())


def _is_of_leaders(problem: Problem, k: int) -> bool:
    """Whether each leader has a load in a dimension, and no other replica."""
    column = problem.column[k]
    return bool((problem.lead[:, column] > 0.0).all() and not problem.follow[:, column].any())


def _least(loads: Floats, now: Ints, price: float) -> float:
    """Least sum of squared deviations of all brokers, and of the price of what they gain.

    loads: (N,) in shares of the mean, largest first; now: (B,) numbers of them today, ascending;
    price: of each beyond that.
    """
    count, size = len(loads), len(now)
    mean = float(loads.mean())
    taken = np.concatenate(([0.0], np.cumsum(loads)))
    # The least value by the number of brokers, and of loads, used so far.
    least = np.full((size + 1, count + 1), np.inf)
    least[0, 0] = 0.0
    for n in range(count + 1):
        deviation = n * mean - 1.0
        of_loads = taken[n:] - taken[: count + 1 - n] - 1.0
        value = deviation * (2.0 * of_loads - deviation)
        # In place, so that several brokers may have this number.
        for b in range(size):
            gained = price * max(0, n - int(now[b]))
            found = least[b, : count + 1 - n] + value + gained
            np.minimum(least[b + 1, n:], found, out=least[b + 1, n:])
    return max(0.0, float(least[size, count]))
