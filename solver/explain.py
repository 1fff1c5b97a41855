"""Why a move is made, in words: whom it relieves, whom it fills."""

import numpy as np

from model.snapshot import Floats
from solver.placement import Placement, deviations, row_loads
from solver.problem import Problem


def reason(problem: Problem, placement: Placement, row: int) -> str:
    """What one changed row does for the brokers, as they were before the plan."""
    must = np.flatnonzero(problem.home[row] & problem.may.leaving)
    if len(must):
        broker = problem.snapshot.header.brokers[int(must[0])]
        return f"leaves broker {broker.id}, which is {broker.state}"
    return _balance(problem, placement, row)


def _balance(problem: Problem, placement: Placement, row: int) -> str:
    before = row_loads(problem, Placement.home(problem), row)
    shift = row_loads(problem, placement, row) - before
    shift = shift[:, problem.column] * problem.slope
    if not np.any(shift):
        return "lets other moves pay"
    source, target, k = _served(problem, shift)
    where = deviations(problem, problem.loads_before)
    over, under = where[source, k], where[target, k]
    resource = str(problem.counted[k].resource)
    return (
        f"{'relieves' if over > 0 else 'takes from'} "
        f"broker {problem.brokers[source]} ({resource} {_to_level(over)}); "
        f"broker {problem.brokers[target]} is {_to_level(under)}"
    )


def _served(problem: Problem, shift: Floats) -> tuple[int, int, int]:
    """The broker that loses, the one that gains, and the goal served most.

    shift: (B, K) change of deviation that the move makes.
    """
    where = deviations(problem, problem.loads_before)
    served = -(shift * where * problem.weight).sum(axis=0)
    k = int(np.argmax(np.where(np.any(shift, axis=0), served, -np.inf)))
    source = int(np.argmax(np.where(shift[:, k] < 0, where[:, k], -np.inf)))
    target = int(np.argmin(np.where(shift[:, k] > 0, where[:, k], np.inf)))
    return source, target, k


def _to_level(deviation: float) -> str:
    """`+200 % over level`, `100 % under it`, `at level`."""
    percent = round(100 * abs(deviation))
    if percent == 0:
        return "at its level"
    return f"{percent} % {'over' if deviation > 0 else 'under'} its level"
