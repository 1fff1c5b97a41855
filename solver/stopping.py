"""CP-SAT, ended when whoever follows the solve asks to."""

import threading
from typing import Final

from ortools.sat.python import cp_model

from solver.search import Search

LOOK_S: Final = 0.05
"""Between two looks whether the observer asks to stop."""


def solve_heeding(
    search: Search,
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    found: cp_model.CpSolverSolutionCallback | None = None,
) -> cp_model.CpSolverStatus:
    """Solve; where the observer asks to stop, end with what there is.

    CP-SAT asks nobody while it looks for plans, so a thread beside it does. What comes
    out is the same whoever looks, as long as nobody asks.
    """
    over = threading.Event()
    look = threading.Thread(target=_look, args=(search, solver, over), daemon=True)
    look.start()
    try:
        return solver.solve(model, found)
    finally:
        over.set()
        look.join()


def _look(search: Search, solver: cp_model.CpSolver, over: threading.Event) -> None:
    while not search.stopped:
        if over.wait(LOOK_S):
            return
        search.stopped = search.observer.stops()
    # Again and again, since it is heeded only once the solver has begun.
    while not over.wait(LOOK_S):
        solver.stop_search()
