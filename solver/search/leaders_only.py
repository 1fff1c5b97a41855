"""What leader changes alone can achieve: worth knowing, because they copy nothing."""

from typing import Final

import numpy as np

from model.files import rounded
from model.plan.plan import LeadersOnly
from solver.kernels.leader_changes import largest_gain, sweep_leaders
from solver.kernels.move_deltas import new_state
from solver.kernels.problem_arrays import find_columns, placement_of
from solver.problem.placement import Placement, is_allowed, objective, usage
from solver.problem.problem import Problem, compile_problem
from solver.search.search import Search

THRESHOLD_RATIO: Final = 0.5
"""Ratio of two successive thresholds, so that profitable changes come first."""

LAST_THRESHOLD: Final = 0.01
"""The last threshold, as a share of the cost of a leader change."""

MOST_SWEEPS: Final = 40

WORK_PER_ROW: Final = 2e-6
"""Work units of the descent for each row; measured."""


def offer_leader_changes(search: Search) -> None:
    """Offer the descent over leader changes, where a plan may consist of nothing else.

    The local search, which weighs replica moves, misses many of these changes where partitions
    are many.
    """
    problem = search.problem
    others = problem.may.forced.any() or problem.start is not None or problem.band
    if others or problem.goals.budgets.replica_moves != 0 or search.over():
        return
    search.work += min(WORK_PER_ROW * len(problem.leader), search.work_left)
    placement = _descend(problem)
    if is_allowed(problem, placement):
        search.offer(placement)


def plan_leaders_only(problem: Problem, planned: Placement) -> LeadersOnly | None:
    """Find a plan of leader changes alone by descent; nothing is proved about it.

    `planned` is the placement of the full plan. Returns None where leader changes would not
    lower F, where a partition must change anyway, where the full plan moves no replica, or
    where no partition has two, or the goals set a minimum of leaders. Repairs of the problem are
    not kept. No broker over a limit ends up with more load.
    """
    if not _moves_replicas(problem, planned) or int(problem.rf.max(initial=0)) < 2:
        return None
    if problem.start is not None:
        # Keeping a repair may require new replicas.
        problem = compile_problem(problem.snapshot, problem.goals)
    if problem.may.forced.any() or problem.goals.min_leaders:
        return None
    placement = _descend(problem)
    value = objective(problem, placement)
    if value >= objective(problem, Placement.home(problem)):
        return None
    changes = usage(problem, placement)["leader_changes"]
    return LeadersOnly(leader_changes=changes, objective=rounded(value))


def _moves_replicas(problem: Problem, planned: Placement) -> bool:
    """Whether a replica moves to another broker; the order of a list does not count."""
    before, after = (np.sort(r, axis=1) for r in (problem.replicas, planned.replicas))
    return not np.array_equal(before, after)


def _descend(problem: Problem) -> Placement:
    c = find_columns(problem)
    state = new_state(c, c.home)
    threshold = largest_gain(c, state)
    for _ in range(MOST_SWEEPS):
        threshold = max(THRESHOLD_RATIO * threshold, LAST_THRESHOLD * c.leader_price)
        changed = sweep_leaders(c, state, threshold)
        if not changed and threshold <= LAST_THRESHOLD * c.leader_price:
            break
    return placement_of(problem, state.at)
