"""A plan with some moves removed and the others unchanged."""

import numpy as np

from model.bound.bound import price_bound
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Snapshot
from model.units import count_text
from solver.log_dirs.balance import keep_directories
from solver.problem.leader_minimums import find_minimums, has_minimums
from solver.problem.placement import Placement, changed_rows, is_allowed
from solver.problem.problem import compile_problem
from solver.problem.remaining_violations import over_limits, rack_violations
from solver.report.build_plan import build_plan
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.search.search import Search


def without_removed_moves(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, plan: Plan
) -> Result | None:
    """Rebuild a plan without the moves of partitions that `goals.stay` now keeps.

    `snapshot` is the one the plan was made for; `goals` are the plan's, with more partitions in
    `stay`. Nothing is searched; the status is `IMPROVED`, and the bound that of `plan` as far as it
    holds. Returns None where no move would remain, or the others break a rule or the limit of a
    log directory without those removed. Raises KeyError if the snapshot lacks a broker of the moves
    or a partition of the plan's rack violations.
    """
    problem = compile_problem(snapshot, goals)
    kept = [m for m in plan.moves if not goals.keeps(m.topic, m.partition)]
    placement = Placement.after(problem, kept)
    if not changed_rows(problem, placement) or not is_allowed(problem, placement):
        return None
    if not has_minimums(placement.leader, find_minimums(snapshot, goals, problem.may.alive)):
        return None
    directories = None
    if goals.level_directories:
        directories = keep_directories(problem, placement, kept)
        if directories is None:
            return None
    search = Search(problem=problem, limits=limits, observer=SolveObserver())
    search.unrepaired = {problem.snapshot.row_of[v.id]: v.reason for v in plan.rack_violations}
    search.offer(placement)
    _prove(search, plan, placement)
    edited = build_plan(search, placement, PlanStatus.IMPROVED, directories)
    removed = count_text(len(plan.moves) - len(edited.moves), "move")
    words = f"{removed} removed from plan {plan.hash[:12]}"
    edited = edited.model_copy(update={"limited_by": words}).seal()
    return Result(
        status=edited.status,
        best=edited,
        objective=search.objective,
        bound=search.bound,
        work=0.0,
        seconds=0.0,
    )


def _prove(search: Search, plan: Plan, placement: Placement) -> None:
    """Carry over what was proved for the original plan.

    Removing moves only shrinks the set of allowed placements, so the bound still holds,
    unless the edited plan repairs less than the original: then it may also cost less.
    """
    problem = search.problem
    racks = rack_violations(problem, placement, search.unrepaired)
    repaired = tuple(v.id for v in racks if v.repaired)
    by_broker = {b.id: b.bound_prices for b in plan.brokers}
    if any(by_broker.values()):
        budgets = plan.budget_prices
        value = price_bound(problem.snapshot, problem.goals, by_broker, repaired, budgets)
        prices = [
            [by_broker[broker].get(key, 0.0) for key in problem.keys] for broker in problem.brokers
        ]
        shape = (len(problem.brokers), len(problem.keys))
        search.prove_by_prices(value, np.array(prices, np.float64).reshape(shape), budgets)
    exceeded = {(o.broker, o.dimension): o.after for o in plan.over_limit}
    exceeds_no_more = all(
        o.after <= max(o.limit, exceeded.get((o.broker, o.dimension), o.limit))
        for o in over_limits(problem, placement)
    )
    if set(repaired) == set(plan.repaired) and exceeds_no_more:
        search.prove(min(plan.bound, search.objective), plan.bound_method)
