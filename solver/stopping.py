"""CP-SAT within a search budget, ended when whoever follows the solve asks to."""

import threading
from typing import Final

from ortools.sat.python import cp_model

from solver.budget import Budget

LOOK_S: Final = 0.05
"""Between two looks whether the observer asks to stop."""


def solve_heeding(
    budget: Budget,
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    found: cp_model.CpSolverSolutionCallback | None = None,
    *,
    rate: float = 1.0,
) -> cp_model.CpSolverStatus:
    """Solve and charge the work; where the observer asks to stop, end with what is.

    rate: work of a unit of the solver's deterministic time.

    CP-SAT asks nobody while it looks for plans, so a thread beside it does. What comes
    out is the same whoever looks, as long as nobody asks.
    """
    over = threading.Event()
    look = threading.Thread(target=_look, args=(budget, solver, over), daemon=True)
    look.start()
    try:
        return solver.solve(model, found)
    finally:
        over.set()
        look.join()
        budget.work += rate * solver.response_proto.deterministic_time


def _look(budget: Budget, solver: cp_model.CpSolver, over: threading.Event) -> None:
    while not budget.stops():
        if over.wait(LOOK_S):
            return
    # Again and again, since it is heeded only once the solver has begun.
    while not over.wait(LOOK_S):
        solver.stop_search()
