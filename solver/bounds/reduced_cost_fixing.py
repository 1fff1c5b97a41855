"""Reduced-cost fixing: the exact model over the choices that dual prices leave open.

A plan better than the incumbent uses no choice whose reduced cost exceeds the gap
between incumbent and bound, so a proof over the other choices holds for all (Dantzig,
Fulkerson and Johnson, 1954).
"""

from typing import Final

import numpy as np

from solver.cpsat.model import WORK_OF_PAIR, solve_in_rounds
from solver.cpsat.variables import Choices, choices
from solver.kernels.pricing import forced_costs
from solver.problem.placement import Placement
from solver.search.local_search import LocalSearch

SLACK: Final = 1e-9
"""Share by which reduced costs may be wrong."""


def prove_over_open_choices(local: LocalSearch) -> None:
    """Prove the incumbent optimal over the open choices, or find a better plan.

    Reduced-cost fixing: choices whose reduced cost exceeds the gap cannot be part of a better
    plan, so the exact model decides only the others. Does nothing without an incumbent.
    """
    search = local.search
    if search.best is None:
        return
    left = open_choices(local)
    holders, _ = left
    solve_in_rounds(search, WORK_OF_PAIR * sum(map(len, holders.values())), left)


def open_choices(local: LocalSearch) -> Choices:
    """Return the choices whose reduced cost is within the gap, by row.

    Those of the snapshot and of the incumbent, which must exist, are always included.
    """
    search = local.search
    problem, best = search.problem, search.best
    assert best is not None  # noqa: S101  # only called once there is one
    all_holders, all_leaders = choices(problem)
    within = (search.objective - search.price_bound) * (1 + SLACK) + SLACK
    holders: dict[int, tuple[int, ...]] = {}
    leaders: dict[int, tuple[int, ...]] = {}
    for row, held in all_holders.items():
        least, hold, lead = _reduced_costs(local, row)
        keep, kept = _kept(problem.replicas[row], best, row)
        keep.update(np.flatnonzero(hold - least <= within).tolist())
        kept.update(np.flatnonzero(lead - least <= within).tolist(), {int(problem.leader[row])})
        holders[row] = tuple(b for b in held if b in keep or b in kept)
        leaders[row] = tuple(b for b in all_leaders[row] if b in kept)
    return holders, leaders


def _kept(home: np.ndarray, best: Placement, row: int) -> tuple[set[int], set[int]]:
    keep = {b for b in home.tolist() if b >= 0} | set(best.holders(row))
    return keep, {int(best.leader[row])}


def _reduced_costs(local: LocalSearch, row: int) -> tuple[float, np.ndarray, np.ndarray]:
    c, relaxation = local.columns, local.relaxation
    brokers = len(c.scale)
    hold, lead = np.empty(brokers), np.empty(brokers)
    q = np.ascontiguousarray((relaxation.prices * c.scale).T)
    least = forced_costs(c, q, row, relaxation.scratch, hold, lead)
    return float(least), hold, lead
