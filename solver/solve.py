"""From a snapshot and goals to a plan that says how good it is."""

import logging
import time

from model.goals import Goals, SolveLimits
from model.plan import PlanStatus
from model.snapshot import Snapshot
from solver.answer import build_plan
from solver.exact import MAX_PAIRS, pairs, solve_exactly
from solver.greedy import greedy_start
from solver.infeasible import conflict, plain_reasons
from solver.observer import SolveObserver
from solver.placement import Placement, without_needless
from solver.problem import compile_problem
from solver.result import Result
from solver.search import Search
from solver.verdict import verdict

log = logging.getLogger("plimsoll.solver")


def solve(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver | None = None,
) -> Result:
    """The plan with the least F, proved as far as the limits allow.

    Equal arguments give an equal plan, byte for byte: only `Result.seconds` is
    taken from a clock.
    """
    started = time.perf_counter()
    problem = compile_problem(snapshot, goals)
    search = Search(
        problem=problem, limits=limits, observer=observer or SolveObserver()
    )
    reasons = plain_reasons(problem)
    search.infeasible = bool(reasons)
    if not reasons:
        _search(search)
    result = _result(search, reasons, started)
    log.info("%s", result.summary())
    return result


def _search(search: Search) -> None:
    problem = search.problem
    if not problem.may.forced.any():
        search.offer(Placement.home(problem))
    start = greedy_start(problem)
    if start is not None:
        search.offer(start)
    if pairs(problem) <= MAX_PAIRS:
        solve_exactly(search)
    else:
        log.info("too large for the exact model; F has no bound but 0")
    if search.best is not None:
        search.offer(without_needless(problem, search.best))


def _result(search: Search, reasons: tuple[str, ...], started: float) -> Result:
    if search.infeasible:
        status = PlanStatus.INFEASIBLE
        reasons = reasons or conflict(search.problem, search.limits)
    elif search.best is None:
        status = PlanStatus.NONE_IN_TIME
        reasons = ("no placement that keeps every rule was found within the limits",)
    else:
        status, reasons = verdict(search, search.best)
    best = None
    if search.best is not None and status is not PlanStatus.NONE_IN_TIME:
        best = build_plan(search, search.best, status)
    return Result(
        status=status,
        best=best,
        objective=None if search.best is None else search.objective,
        bound=None if search.infeasible else search.bound,
        work=search.work,
        seconds=time.perf_counter() - started,
        reasons=reasons,
    )
