"""Solve: from a snapshot and goals to a plan that states how good it is."""

import logging
import time
from functools import partial
from typing import Final

import numpy as np

from model.errors import ConfigError
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Snapshot
from solver.band import solve_band
from solver.bounds.branch_and_bound import branch_and_bound
from solver.bounds.lagrangian import improve_bound
from solver.bounds.reduced_cost_fixing import prove_over_open_choices
from solver.bounds.replica_counts import prove_by_replica_counts
from solver.bounds.single_replica_choices import MOST_CHOICES
from solver.cpsat.model import MAX_PAIRS, is_small, pairs, solve_exactly
from solver.infeasible.messages import conflict_text
from solver.infeasible.minimal_conflict import find_conflict
from solver.infeasible.plain_reasons import plain_reasons
from solver.kernels.compiled import interpreted
from solver.kernels.move_deltas import new_state
from solver.kernels.pricing import new_pricing_scratch
from solver.kernels.problem_arrays import find_columns, placement_of
from solver.kernels.rounding import place_forced
from solver.leaders.keep_minimums import keep_minimums
from solver.log_dirs.balance import reserved_work
from solver.problem.leader_minimums import find_minimums
from solver.problem.placement import Placement, changed_rows, is_allowed, revert_needless
from solver.problem.problem import compile_problem
from solver.repair.repair import find_repair
from solver.report.build_plan import build_plan
from solver.report.proof_status import limited_by, verdict
from solver.report.result import Result
from solver.search.leaders_only import offer_leader_changes
from solver.search.local_search import search_locally
from solver.search.neighbourhoods import largest_first
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.search.stay_near import stay_near
from solver.studies.goal_repair import relaxations
from solver.tolerance.keep_tolerance import is_kept_outside, keep_tolerance, work_for_tolerance

FEW_MOVES: Final = 500
"""Number of moves up to which each is checked once more for being needed."""

SEARCH_SHARE: Final = 0.5
"""Share of the search budget for local search, where a proof may follow."""

PROVABLE_SEARCH_SHARE: Final = 0.1
"""The same where branch and bound finds better plans, and sooner."""

TIDYING_SHARE: Final = 0.1
"""Share of the search budget, beyond the search, for reverting needless changes."""

REASONS_SHARE: Final = 0.25
"""Share of the search budget reserved, while there is no incumbent, to explain infeasibility."""

UNEXPLAINED: Final = (
    "no placement keeps every rule, which is proved; the search budget was exhausted "
    "before the conflicting rules were identified"
)

FORCED_SEARCH_SHARE: Final = 0.05
"""The same where rules keep brokers outside the tolerance, which local search leaves out."""

LARGE_SEARCH_SHARE: Final = 0.7
"""Share of the search budget for local search where only the bound can still improve."""

WORK_PER_PLACE: Final = 1e-6
"""Work units for trying one broker for a row that must move."""

PROVABLE_PAIRS: Final = 2_000
"""Movable rows x brokers up to which a proof over the open choices is within reach."""

BUT_DIRECTORIES: Final = "proved optimal but for log directories"
"""What ended a solve whose bound does not include the cost of log directories."""

NO_START: Final = "local search found no placement to start from"
NO_GAIN: Final = "local search gains no more with any of its settings"
"""What ended a solve whose last part was the local search."""

OPEN: Final = "ended with the gap open"
"""What ended a solve, after the name of its last part."""

log = logging.getLogger("plimsoll.solver")


def solve(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver | None = None,
    earlier: Plan | None = None,
    *,
    spent: float = 0.0,
) -> Result:
    """Find the plan with the least F, and prove its quality as far as the limits allow.

    F is the imbalance score plus the cost of changes. The plan stays near `earlier`, a plan for
    about the same cluster, where F allows. `spent` is the work units that earlier
    steps of the same command have used of `limits.work`; without an observer, the solve is
    never stopped early. Equal arguments give an equal plan, byte for byte, unless the observer
    stops the solve: only `Result.seconds` depends on a clock. Raises ValueError if CP-SAT
    rejects the exact model as invalid, and ConfigError for goals that empty directories, whose
    replicas `empty_directories` places.
    """
    if goals.emptied:
        raise ConfigError(
            "goals.emptied is for plimsoll disk remove alone; take it out of the goals"
        )
    started = time.perf_counter()
    problem = compile_problem(snapshot, goals)
    search = Search(
        problem=problem, limits=limits, observer=observer or SolveObserver(), work=spent
    )
    with interpreted(is_small(problem)):
        minimums = find_minimums(snapshot, goals, problem.may.alive)
        run = partial(_run, earlier=earlier)
        reasons = keep_minimums(search, minimums, run) if minimums else run(search)
        result = _result(search, reasons, started)
    log.info("%s", result.summary())
    return result


def _run(search: Search, earlier: Plan | None) -> tuple[str, ...]:
    """Search for a plan; return why there is none where that is evident."""
    search.reserved_for_tolerance = work_for_tolerance(search)
    reasons = find_placement(search) or _conflict(search)
    keep_tolerance(search)
    if earlier is not None:
        stay_near(search, earlier)
    return reasons


def _repair(search: Search) -> None:
    """Repair what can be repaired before plans are compared; plans may not undo it."""
    repair = find_repair(search.problem, search.limits, search.observer)
    search.problem = repair.problem
    search.work += repair.work
    search.unrepaired, search.repaired_most = repair.unrepaired, repair.proved
    search.repair_cut = repair.cut
    if repair.placement is not None:
        search.offer(repair.placement)


def find_placement(search: Search) -> tuple[str, ...]:
    """Search for the best placement; return reasons where infeasibility is evident.

    Returns () otherwise, also where no placement was found. The results are left in `search`:
    incumbent, bound, work, and the problem, which repairs may have tightened. Raises ValueError
    if CP-SAT rejects the exact model as invalid.
    """
    search.reserved = reserved_work(search.problem, search.limits)
    search.reserved_for_reasons = REASONS_SHARE * search.limits.work
    reasons = plain_reasons(search.problem, search)
    search.infeasible = bool(reasons)
    if not reasons:
        _repair(search)
        _search(search)
    search.exhausted = search.work_before_tolerance <= 0.0
    search.reserved = search.reserved_for_reasons = 0.0
    return reasons


def _conflict(search: Search) -> tuple[str, ...]:
    """Explain infeasibility as far as the remaining work allows."""
    if search.best is not None or search.stopped:
        return ()
    reasons: tuple[str, ...] = ()
    if search.problem.may.forced.any() and (found := find_conflict(search.problem, search)):
        reasons = conflict_text(search.problem, found)
    if search.infeasible and not reasons:
        return (UNEXPLAINED,)
    search.infeasible = bool(reasons)
    return reasons


def _search(search: Search) -> None:
    problem = search.problem
    if not problem.may.forced.any() and problem.start is None:
        search.offer(Placement.home(problem))
    prove_by_replica_counts(search)
    if problem.band:
        _evacuate(search)
        solve_band(search)
        search.ended = f"search within the tolerance band {OPEN}"
    elif is_small(problem):
        solve_exactly(search)
        search.ended = f"exact model {OPEN}"
    else:
        offer_leader_changes(search)
        _approximate(search)
    if search.best is not None and len(changed_rows(problem, search.best)) < FEW_MOVES:
        part = search.part(TIDYING_SHARE * search.limits.work)
        search.offer(revert_needless(search.problem, search.best, part))
        search.spend(part)


def _evacuate(search: Search) -> None:
    """Offer a plan that only empties brokers which must be left, where there is no plan yet."""
    if search.best is not None or search.over():
        return
    c = find_columns(search.problem)
    state, rows = new_state(c, c.home), largest_first(c, np.flatnonzero(c.forced))
    search.work += len(rows) * len(c.scale) * WORK_PER_PLACE
    if place_forced(c, state, rows, new_pricing_scratch(c)):
        placement = placement_of(search.problem, state.at)
        if is_allowed(search.problem, placement):
            search.offer(placement)


def _approximate(search: Search) -> None:
    """Dual prices and annealing; then a better bound, or a proof over the open choices."""
    few = pairs(search.problem) <= MAX_PAIRS
    provable = pairs(search.problem) <= PROVABLE_PAIRS
    wholes = pairs(search.problem) <= MOST_CHOICES and (search.problem.rf == 1).all()
    # Nothing follows the search for rows with several replicas.
    share = 1.0 if not wholes else SEARCH_SHARE if few else LARGE_SEARCH_SHARE
    if provable:
        forced = is_kept_outside(search.problem)
        share = FORCED_SEARCH_SHARE if forced else PROVABLE_SEARCH_SHARE
    local = search_locally(search, search.work_left * share)
    search.ended = NO_START if local is None else NO_GAIN
    if local is None:
        if search.best is None and few:
            solve_exactly(search)
            search.ended = f"exact model {OPEN}"
    elif not search.over() and provable:
        if branch_and_bound(local):
            search.ended = f"branch and bound {OPEN}"
        else:
            prove_over_open_choices(local)
            search.ended = f"exact model of the open choices {OPEN}"
    elif not search.over() and wholes:
        improve_bound(local, search.work_left)
        search.ended = f"search for a better bound {OPEN}"


def _result(search: Search, reasons: tuple[str, ...], started: float) -> Result:
    best = None
    relaxation: tuple[str, ...] = ()
    if search.infeasible:
        status = PlanStatus.INFEASIBLE
        relaxation = relaxations(search.problem, search)
    elif search.best is None and search.stopped:
        status = PlanStatus.STOPPED
        reasons = ("stopped before a placement that keeps every rule was found",)
    elif search.best is None:
        status = PlanStatus.NONE_IN_TIME
        reasons = ("no placement that keeps every rule was found within the limits",)
    else:
        status, reasons = verdict(search, search.best)
        best = _plan(search, search.best, status)
        status = best.status
    if status is PlanStatus.NONE_IN_TIME:
        best = None
    return Result(
        status=status,
        best=best,
        objective=None if search.best is None else search.objective,
        bound=None if search.infeasible else search.bound,
        work=search.work,
        seconds=time.perf_counter() - started,
        reasons=reasons,
        relaxation=relaxation,
        limited_by=limited_by(search) if best is None else best.limited_by,
        exhausted=search.exhausted and not search.near_enough and not search.infeasible,
    )


def _plan(search: Search, placement: Placement, status: PlanStatus) -> Plan:
    """The plan; its status and its proof include the cost of log directories.

    That cost is not part of the bound, so such a plan is not called optimal.
    """
    plan = build_plan(search, placement, status)
    directories = search.problem.goals.level_directories
    if not directories or plan.proves(search.limits.gap):
        return plan
    if status is PlanStatus.OPTIMAL:
        plan = plan.model_copy(update={"status": PlanStatus.IMPROVED})
    if search.proved:
        plan = plan.model_copy(update={"limited_by": BUT_DIRECTORIES})
    return plan.seal()
