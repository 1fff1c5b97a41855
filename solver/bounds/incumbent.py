"""The incumbent as a choice of configurations, and the trees searched for a better one."""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.configurations import ConfigurationList
from solver.bounds.reduced_cost_fixing import SLACK
from solver.kernels.configuration_search import EXHAUSTED, FOUND, explore
from solver.kernels.node_bound import (
    CUTOFF,
    EFFORT,
    LEVEL,
    Configurations,
    SearchTree,
    bound_node,
    new_tree,
)
from solver.problem.placement import Placement, is_allowed
from solver.search.local_search import LocalSearch

METHOD: Final = "branch and bound"

WORK_PER_OPERATION: Final = 2e-9

WORK_PER_OFFER: Final = 5e-4
"""Work units for evaluating one choice of all rows; measured."""

HEAT: Final = 1e-3
"""Temperature of the smoothed bound, in costs of a move."""

MANY_NODES: Final = 1_000
"""Nodes of a tree between two checks of the limits."""

MOST_EFFORT: Final = 100_000_000
"""Operations between two checks of the limits, about 0.2 s."""

FIRST_FREE: Final = 10
"""Rows set free at first; more when the search among them completes, otherwise fewer."""


class Incumbent:
    """The search's best plan as a choice of configurations, one of each open row.

    The search must have a plan, and `listed` must have its configurations.
    """

    def __init__(self, local: LocalSearch, listed: ConfigurationList) -> None:
        best = local.search.best
        assert best is not None  # noqa: S101  # asked for at the entrance
        self.local, self.listed = local, listed
        self.prices: Floats = (local.relaxation.prices / np.sqrt(local.columns.weight)).ravel()
        """(J,) dual prices to start from."""
        self.chosen = _choice(listed, best)
        """(R,) configurations of the incumbent."""
        self.free = FIRST_FREE
        """Rows to set free next."""
        self.rng = np.random.default_rng(local.search.limits.seed)

    @property
    def heat(self) -> float:
        """Temperature of the smoothed bound, in units of F; proportional to a replica's cost."""
        return max(1e-9, HEAT * self.local.relaxation.price)

    @property
    def goal(self) -> float:
        """F below which a plan improves by more than half the accepted gap.

        Nodes with a bound above it need no search.
        """
        search = self.local.search
        return search.objective - search.limits.gap / 2

    def price_bounds(self) -> None:
        """Adapt the prices to bounds of deviations, and keep the bound of F that they prove."""
        c, listed = self.listed.configurations, self.listed
        tree = new_tree(c, listed.fixed, self.prices, listed.between)
        bound = float(bound_node(c, tree, 0, self.heat))
        self.local.search.work += float(tree.counter[EFFORT]) * WORK_PER_OPERATION
        self.prices = tree.pi[0].copy()
        self.prove(bound)

    def offer(self, chosen: Ints) -> None:
        """Offer a choice of all rows to the search; ignore it if it breaks a rule.

        `chosen` is (R,) configurations by index. Charges the work of checking it.
        """
        search = self.local.search
        search.work += WORK_PER_OFFER
        problem, before = search.problem, search.objective
        replicas, leader = problem.replicas.copy(), problem.leader.copy()
        at = self.listed.brokers[chosen]
        replicas[self.listed.rows], leader[self.listed.rows] = at, at[:, 0]
        placement = Placement(replicas=replicas, leader=leader)
        if is_allowed(problem, placement):
            search.offer(placement)
        if search.objective < before:
            self.chosen = chosen

    def explore(self, c: Configurations, tree: SearchTree, nodes: int) -> int:
        """Explore a tree for up to `nodes` nodes, or until limits must be checked.

        Returns `EXHAUSTED`, `INTERRUPTED` or `FOUND`, as
        `solver.kernels.configuration_search.explore` does; charges the work.
        """
        search, before = self.local.search, int(tree.counter[EFFORT])
        effort = min(MOST_EFFORT, int(search.work_left / WORK_PER_OPERATION))
        found = int(explore(c, tree, nodes, effort, self.heat))
        made = int(tree.counter[EFFORT]) - before
        search.work += made * WORK_PER_OPERATION
        return found

    def exhaust(self, c: Configurations, tree: SearchTree, end: float) -> bool:
        """Offer every better plan under a tree's cutoff; return whether it completed.

        The tree must be of all rows. Stops, and returns False, when the search has spent
        `end` work units, is near enough or is over.
        """
        search = self.local.search
        while not search.near_enough and not search.over(end):
            found = self.explore(c, tree, MANY_NODES)
            if found == FOUND:
                self.offer(found_choice(tree))
                tree.figure[CUTOFF] = min(tree.figure[CUTOFF], self.goal)
            elif found == EXHAUSTED:
                return True
        return False

    def prove(self, floor: float) -> None:
        """Prove that no choice left out has an F below `floor`.

        Lowered by `SLACK` against rounding, and never above the incumbent's F.
        """
        search = self.local.search
        search.prove(min(floor, search.objective) - SLACK, METHOD)


def found_choice(tree: SearchTree) -> Ints:
    """Return a copy of the choice that the tree has just found: (R,) indices of configurations.

    Only right after `explore` has returned `FOUND`.
    """
    chosen: Ints = tree.chosen[tree.counter[LEVEL] + 1].copy()
    return chosen


def _choice(listed: ConfigurationList, placement: Placement) -> Ints:
    """(R,) configurations of a placement."""
    start = listed.configurations.start
    found: Ints = start[:-1].copy()
    for r, row in enumerate(listed.rows.tolist()):
        held, leader = placement.holders(row), int(placement.leader[row])
        for i in range(start[r], start[r + 1]):
            at = [x for x in listed.brokers[i].tolist() if x >= 0]
            if at[0] == leader and sorted(at) == held:
                found[r] = i
    return found
