"""CP-SAT within a search budget, stopped when the observer asks."""

import logging
import math
import threading
from typing import Final

from ortools.sat.python import cp_model

from solver.budget import Budget

log = logging.getLogger("plimsoll.solver")

POLL_S: Final = 0.05
"""Seconds between two checks whether the observer asks to stop."""

FREE_SOLUTIONS: Final = 100
"""Solutions of one CP-SAT solve that its deterministic time covers."""

WORK_OF_SOLUTION: Final = 5e-4
"""Work units for each further solution. CP-SAT charges next to nothing for solutions
found without a conflict, such as those whose objective falls by one unit at a time."""


class Solutions(cp_model.CpSolverSolutionCallback):
    """Counts the solutions of one solve, and stops it when they exhaust the budget."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.most = float("inf")
        """Number of solutions that the search budget allows."""

    @property
    def work(self) -> float:
        """Work units of the solutions so far, beyond `FREE_SOLUTIONS`."""
        return WORK_OF_SOLUTION * max(0, self.count - FREE_SOLUTIONS)

    def on_solution_callback(self) -> None:
        """Count the solution and stop at the most allowed; called by CP-SAT."""
        self.count += 1
        if self.count >= self.most:
            self.stop_search()


def solve_stoppable(
    budget: Budget,
    solver: cp_model.CpSolver,
    model: cp_model.CpModel,
    found: Solutions | None = None,
    *,
    rate: float = 1.0,
) -> cp_model.CpSolverStatus:
    """Run CP-SAT, charge its work to the budget, and stop it on the observer's request.

    Returns CP-SAT's status, UNKNOWN where memory ran out; the caller sets the solver's own limit of
    time. `found` is called with each solution, and its `most` is set. `rate` is work units per unit
    of CP-SAT's deterministic time. A thread polls the observer between solutions; unless that asks
    to stop, the result does not depend on it.
    """
    found = found or Solutions()
    found.most = FREE_SOLUTIONS + budget.work_left / WORK_OF_SOLUTION
    over = threading.Event()
    poller = threading.Thread(target=_poll, args=(budget, solver, over), daemon=True)
    poller.start()
    # After an error all that was allowed counts as done, so that no other round follows.
    spent = min(rate * solver.parameters.max_deterministic_time, budget.work_left)
    try:
        status = _solve(solver, model, found)
        spent = rate * solver.response_proto.deterministic_time
        return status
    except MemoryError:
        log.warning("an exact step of the solve ended without a result, for want of memory")
        return cp_model.UNKNOWN
    finally:
        over.set()
        poller.join()
        budget.work += spent + found.work


def proved_bound(solver: cp_model.CpSolver) -> float:
    """Return the bound of the objective that CP-SAT proved, -inf where it has no response."""
    try:
        return solver.best_objective_bound
    except RuntimeError:
        return -math.inf


def _solve(
    solver: cp_model.CpSolver, model: cp_model.CpModel, found: Solutions
) -> cp_model.CpSolverStatus:
    try:
        return solver.solve(model, found)
    except IndexError:
        # Presolve of 9.15 fails to carry some hints over (google/or-tools#5288).
        model.clear_hints()  # type: ignore[no-untyped-call]  # untyped upstream
        return solver.solve(model, found)


def _poll(budget: Budget, solver: cp_model.CpSolver, over: threading.Event) -> None:
    """Poll the observer until the solve is over; stop the solver on request."""
    while not budget.stops():
        if over.wait(POLL_S):
            return
    # Repeat the request: it has no effect before the solver has started.
    while not over.wait(POLL_S):
        solver.stop_search()
