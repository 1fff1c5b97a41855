"""What changes of leader alone can do: they copy nothing, so they are worth knowing."""

from typing import Final

from model.files import rounded
from model.plan import LeadersOnly
from solver.kernels.columns import find_columns
from solver.kernels.leaders import largest_gain, sweep_leaders
from solver.kernels.moves import new_state
from solver.local import placement_of
from solver.placement import Placement, objective, usage
from solver.problem import Problem

STEP: Final = 0.5
"""Ratio of two successive thresholds: profitable changes are made first."""

LEAST: Final = 0.01
"""The last threshold, as a share of the cost of a leader change."""

MOST_SWEEPS: Final = 40


def leaders_alone(problem: Problem, planned: Placement) -> LeadersOnly | None:
    """A plan of leader changes alone, found by descent; nothing is proved of it.

    None where it would not lower F, where a partition has to move in any case or the
    plan repairs racks or limits, or where the plan itself moves no replica.
    """
    moves = (planned.replicas != problem.replicas).any()
    must = problem.may.forced.any() or problem.start is not None
    if not moves or must or int(problem.rf.max(initial=0)) < 2:
        return None
    placement = _descend(problem)
    value = objective(problem, placement)
    if value >= objective(problem, Placement.home(problem)):
        return None
    changes = usage(problem, placement)["leader_changes"]
    return LeadersOnly(leader_changes=changes, objective=rounded(value))


def _descend(problem: Problem) -> Placement:
    c = find_columns(problem)
    state = new_state(c, c.home)
    threshold = largest_gain(c, state)
    for _ in range(MOST_SWEEPS):
        threshold = max(STEP * threshold, LEAST * c.leader_price)
        changed = sweep_leaders(c, state, threshold)
        if not changed and threshold <= LEAST * c.leader_price:
            break
    return placement_of(problem, c, state)
