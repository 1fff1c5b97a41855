"""The best choice of configurations so far, and the trees that look for better ones."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from model.snapshot.snapshot import Floats, Ints
from solver.bounds.configurations import ConfigurationList
from solver.bounds.reduced_cost_fixing import SLACK
from solver.kernels.node_bound import CUTOFF, EFFORT, LEVEL, Configurations, SearchTree
from solver.kernels.tree_exploration import EXHAUSTED, FOUND, explore
from solver.problem.placement import Placement, is_allowed
from solver.search.local_search import LocalSearch

METHOD: Final = "branch and bound"

WORK_PER_OPERATION: Final = 2e-9

WORK_PER_OFFER: Final = 5e-4
"""Work of judging one choice of all rows; measured."""

HEAT: Final = 1e-3
"""Temperature of the smoothed bound, in prices of a move."""

MANY_NODES: Final = 1_000
"""Nodes of a tree between two looks at the limits."""

MOST_EFFORT: Final = 100_000_000
"""Operations between two looks at the limits, about 0.2 s."""

FIRST_FREE: Final = 10
"""Rows set free at first; more where the search among them ends, else fewer."""


@dataclass(slots=True, kw_only=True)
class Incumbent:
    """The open rows' configurations, and the best choice of them."""

    local: LocalSearch
    listed: ConfigurationList
    prices: Floats
    """(J,) to start at."""
    chosen: Ints
    """(R,) configurations of the best plan."""
    free: int = FIRST_FREE
    rng: np.random.Generator = field(default_factory=np.random.default_rng)

    @property
    def heat(self) -> float:
        """Temperature of the smoothed bound, in units of F."""
        return max(1e-9, HEAT * self.local.relaxation.price)

    @property
    def goal(self) -> float:
        """F under which a plan is better by more than may be left open."""
        search = self.local.search
        return search.objective - search.limits.gap / 2

    def offer(self, chosen: Ints) -> None:
        """Offer a choice of all rows, (R,); one that breaks a rule is dropped."""
        search = self.local.search
        search.work += WORK_PER_OFFER
        placement = self._placement(chosen)
        if not is_allowed(search.problem, placement):
            return
        before = search.objective
        search.offer(placement)
        if search.objective < before:
            self.chosen = chosen

    def explore(self, c: Configurations, tree: SearchTree, nodes: int) -> int:
        """Explore a tree for so many nodes, or until it is time to look at the limits.

        Returns what `solver.kernels.tree_exploration.explore` does.
        """
        search, before = self.local.search, int(tree.counter[EFFORT])
        effort = min(MOST_EFFORT, int(search.work_left / WORK_PER_OPERATION))
        found = int(explore(c, tree, nodes, effort, self.heat))
        made = int(tree.counter[EFFORT]) - before
        search.work += made * WORK_PER_OPERATION
        return found

    def exhaust(self, c: Configurations, tree: SearchTree, end: float) -> bool:
        """Offer every better plan under a tree's cutoff; whether it ended in time.

        The tree is of all rows.
        """
        while not self.local.search.over(end):
            found = self.explore(c, tree, MANY_NODES)
            if found == FOUND:
                self.offer(found_choice(tree))
                tree.figure[CUTOFF] = min(tree.figure[CUTOFF], self.goal)
            elif found == EXHAUSTED:
                return True
        return False

    def prove(self, floor: float) -> None:
        """No choice that was left out is under the floor."""
        search = self.local.search
        search.prove(min(floor, search.objective) - SLACK, METHOD)

    def _placement(self, chosen: Ints) -> Placement:
        problem = self.local.search.problem
        replicas, leader = problem.replicas.copy(), problem.leader.copy()
        at = self.listed.brokers[chosen]
        replicas[self.listed.rows] = at
        leader[self.listed.rows] = at[:, 0]
        return Placement(replicas=replicas, leader=leader)


def start_incumbent(local: LocalSearch, listed: ConfigurationList) -> Incumbent:
    """The best plan as a choice; some plan is known."""
    best = local.search.best
    assert best is not None  # noqa: S101  # asked for at the entrance
    root = np.sqrt(local.columns.weight)
    return Incumbent(
        local=local,
        listed=listed,
        prices=(local.relaxation.prices / root).ravel(),
        chosen=_choice(listed, best),
        rng=np.random.default_rng(local.search.limits.seed),
    )


def found_choice(tree: SearchTree) -> Ints:
    """(R,) the choice that the tree has just found."""
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
