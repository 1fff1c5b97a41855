"""Reduced-cost fixing: the exact model over the choices that dual prices leave open.

A plan better than the incumbent uses no choice whose reduced cost exceeds the gap
between incumbent and bound, so a proof over the other choices holds for all (Dantzig,
Fulkerson and Johnson, 1954).
"""

from typing import Final

import numpy as np

from model.snapshot.snapshot import Bools, Ints
from solver.cpsat.model import WORK_OF_PAIR, solve_in_rounds
from solver.cpsat.variables import Choices, choices
from solver.kernels.pricing import least_with
from solver.kernels.problem_arrays import unit_prices
from solver.search.local_search import LocalSearch

SLACK: Final = 1e-9
"""Share by which reduced costs may be wrong."""


def prove_over_open_choices(local: LocalSearch) -> None:
    """Prove the incumbent optimal over the open choices, or find a better plan.

    Reduced-cost fixing: choices whose reduced cost exceeds the gap cannot be part of a better
    plan, so the exact model decides only the others. Does nothing without an incumbent.
    Raises ValueError if CP-SAT rejects the model as invalid.
    """
    search = local.search
    if search.best is None:
        return
    left = open_choices(local)
    holders, _ = left
    solve_in_rounds(search, WORK_OF_PAIR * sum(map(len, holders.values())), left)


def open_choices(local: LocalSearch) -> Choices:
    """Return the choices whose reduced cost is within the gap: holders and leaders by row.

    Brokers are positions, for each row that may change. The gap is that between F of the
    incumbent, which must exist, and the bound of the dual prices. Choices of the snapshot and
    of the incumbent are always included where rules allow them.
    """
    search = local.search
    problem, best = search.problem, search.best
    assert best is not None  # noqa: S101  # only called once there is one
    all_holders, all_leaders = choices(problem)
    r, refund = local.relaxation, float(problem.costs.refund.sum())
    within = (search.objective + refund + r.given_back - r.bound) * (1 + SLACK) + SLACK
    near_hold, near_lead = _near(local, np.array([*all_holders], np.int64), within)
    holders: dict[int, tuple[int, ...]] = {}
    leaders: dict[int, tuple[int, ...]] = {}
    for i, (row, held) in enumerate(all_holders.items()):
        home = problem.replicas[row].tolist()
        leads = {int(best.leader[row]), int(problem.leader[row])}
        leads.update(np.flatnonzero(near_lead[i]).tolist())
        holds = leads.union(home, best.holders(row), np.flatnonzero(near_hold[i]).tolist())
        holders[row] = tuple(b for b in held if b in holds)
        leaders[row] = tuple(b for b in all_leaders[row] if b in leads)
    return holders, leaders


def _near(local: LocalSearch, rows: Ints, within: float) -> tuple[Bools, Bools]:
    """(m, B) whether each broker as a holder, and as the leader, costs at most `within` more."""
    relaxation = local.relaxation
    c = relaxation.columns
    hold, lead = np.empty((len(rows), len(c.scale))), np.empty((len(rows), len(c.scale)))
    least_with(c, unit_prices(c, relaxation.prices), rows, hold, lead, relaxation.scratch)
    least = hold.min(axis=1, keepdims=True)
    return hold - least <= within, lead - least <= within
