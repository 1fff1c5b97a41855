"""Plans that keep a minimum of leaders per broker: planned without it first, then with anchors.

Most plans of balanced leaders keep the minimum unasked, and what is planned without a rule proves
a bound for plans with it. Where the first plan breaks the rule, rows are anchored to the brokers
that must lead them (`solver.leaders.anchors`), which every search understands, and the search is
repeated. At sizes of the exact model that then looks for a better choice of rows, and proves it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from model.files import rounded
from solver.cpsat.model import MAX_PAIRS, pairs, solve_exactly
from solver.leaders.anchors import anchored, find_anchors
from solver.problem.leader_minimums import LeaderMinimum, has_minimums
from solver.problem.placement import EDGE, Placement, loads_of, tolerance_excess
from solver.problem.problem import Problem
from solver.problem.remaining_violations import excess, held, sharing
from solver.search.search import Search

FIRST_SHARE: Final = 0.4
"""Share of the search budget for the plan without the rule."""

ANCHORED_SHARE: Final = 0.5
"""Share of what is then left for the plan with anchors, where the exact model follows."""

NOT_FOUND: Final = (
    "no placement that also gives every broker its minimum of leaders was found within the limits"
)
RULED_OUT: Final = (
    "no placement gives every broker its minimum of leaders and keeps the other rules, which is "
    "proved; lower min_leaders, or raise limits and budgets"
)

Run = Callable[[Search], tuple[str, ...]]
"""Searches for a plan; returns why there is none where that is evident."""


def keep_minimums(search: Search, minimums: tuple[LeaderMinimum, ...], run: Run) -> tuple[str, ...]:
    """Search as `run` does for a plan that gives every broker its minimum of leaders.

    Results are left in `search`. Returns why there is no plan where that is known, or ().
    Raises ValueError if CP-SAT rejects a model as invalid.
    """
    whole = search.problem
    first = _part(search, whole, FIRST_SHARE * search.work_left)
    reasons = run(first)
    _spend(search, first)
    _adopt(search, first)
    if first.infeasible or (first.best is not None and has_minimums(first.best.leader, minimums)):
        return reasons
    near = Placement.home(whole) if first.best is None else first.best
    anchors = find_anchors(whole, minimums, near)
    search.work += anchors.work
    _forget_placement(search)
    if anchors.lacking:
        search.infeasible = True
        return anchors.lacking
    few = pairs(whole) <= MAX_PAIRS
    second = _part(
        search, anchored(whole, anchors.leader), search.work_left * (ANCHORED_SHARE if few else 1.0)
    )
    run(second)
    _spend(search, second)
    _take(search, second, first)
    if few and not search.proved and not search.over():
        _choose_exactly(search, whole, minimums)
    _judge(search, first)
    search.problem = replace(search.problem, minimums=minimums)
    if search.best is None:
        return (RULED_OUT,) if search.infeasible else (NOT_FOUND,)
    return ()


def _part(search: Search, problem: Problem, work: float) -> Search:
    """A search of its own for a part of the work that is left."""
    limits = search.limits.model_copy(update={"work": max(1e-9, work)})
    return Search(problem=problem, limits=limits, observer=search.observer, stopped=search.stopped)


def _spend(search: Search, part: Search) -> None:
    search.work += part.work
    search.stopped = search.stopped or part.stopped
    search.exhausted = search.work_left <= 0.0


def _adopt(search: Search, part: Search) -> None:
    """Take over all results of a part."""
    search.problem, search.infeasible = part.problem, part.infeasible
    search.bound, search.method = part.bound, part.method
    search.prices, search.price_bound = part.prices, part.price_bound
    search.budget_prices = part.budget_prices
    _take_placement(search, part)


def _forget_placement(search: Search) -> None:
    search.best, search.objective, search.moves = None, float("inf"), 0


def _take_placement(search: Search, part: Search) -> None:
    search.best, search.objective, search.moves = part.best, part.objective, part.moves
    search.unrepaired, search.repaired_most = part.unrepaired, part.repaired_most
    search.tolerance_unmet, search.near_to = part.tolerance_unmet, part.near_to
    search.optimal_without_tolerance = part.optimal_without_tolerance
    search.least_excess = part.least_excess
    search.exhausted = part.exhausted


def _take(search: Search, second: Search, first: Search) -> None:
    """Take over an anchored plan; what was proved under anchors holds for these alone.

    What was proved without the rule holds for plans that repair as much as the first plan does,
    and come as close to the tolerance.
    """
    _take_placement(search, second)
    search.optimal_without_tolerance = False
    search.problem = replace(second.problem, may=first.problem.may)
    alike = _repairs(first) == _repairs(second)
    search.repaired_most = alike and first.repaired_most
    close = second.best is None or (
        tolerance_excess(second.problem, second.best) <= first.problem.most_excess
    )
    if not (alike and close):
        search.bound, search.method = 0.0, "none"
        search.prices, search.price_bound, search.budget_prices = None, 0.0, {}


def _repairs(part: Search) -> tuple[int, float] | None:
    """Rows that share racks and excess over limits, as the incumbent leaves them."""
    if part.best is None:
        return None
    problem, placement = part.problem, part.best
    shared = int(sharing(problem, placement.replicas).sum())
    over = excess(problem, loads_of(problem, placement), held(problem, placement.replicas))
    return shared, rounded(over)


def _unanchored(search: Search, whole: Problem, minimums: tuple[LeaderMinimum, ...]) -> Problem:
    """The problem for the exact model: plans must repair as much as the incumbent does."""
    best = search.best
    if best is None:
        return replace(whole, minimums=minimums)
    repaired = sharing(whole, whole.replicas) & ~sharing(whole, best.replicas)
    repaired &= whole.may.fixed_reason == 0
    return replace(search.problem, may=whole.may.displacing(repaired), minimums=minimums)


def _choose_exactly(search: Search, whole: Problem, minimums: tuple[LeaderMinimum, ...]) -> None:
    """Let the exact model choose who leads which row, starting from the anchored plan.

    Where its plan is further outside the tolerance, it is asked for one that is not.
    """
    before = search.best
    excess_before = float("inf")
    if before is not None and _tolerance_comes_first(whole):
        excess_before = tolerance_excess(whole, before)
    exact = _unanchored(search, whole, minimums)
    for most in (exact.most_excess, min(exact.most_excess, excess_before)):
        part = _part(search, replace(exact, most_excess=most), search.work_left)
        if before is not None:
            part.offer(before)
        solve_exactly(part)
        _spend(search, part)
        search.prove(part.bound, part.method)
        search.infeasible = part.infeasible
        if part.best is None:
            return
        if tolerance_excess(whole, part.best) <= excess_before + EDGE:
            if part.objective < search.objective:
                search.best, search.objective = part.best, part.objective
                search.moves = part.moves
            return
        if search.over():
            return


def _judge(search: Search, first: Search) -> None:
    """Whether the plan is proved as close to the tolerance as any."""
    if search.best is None or not _tolerance_comes_first(first.problem):
        return
    outside = tolerance_excess(first.problem, search.best)
    if outside <= EDGE:
        search.least_excess, search.tolerance_unmet = True, ""
        return
    if first.best is None or tolerance_excess(first.problem, first.best) < outside - EDGE:
        search.least_excess = False
        search.tolerance_unmet = "no plan that keeps the minimum of leaders was found inside"


def _tolerance_comes_first(problem: Problem) -> bool:
    return problem.goals.tolerance_first and not problem.band
