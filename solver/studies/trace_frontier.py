"""The frontier of balance and cost: plans at many move costs, and proved bounds.

A plan that is optimal at the cost p of a move is Pareto optimal. And whatever bounds F
from below at cost p bounds the balance of every plan: the balance is at least that
bound minus p x the plan's cost (Lagrangian relaxation of a budget; Everett, 1963). So
every solve gives a point and a line.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from model.evaluate import evaluate
from model.files import rounded
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from model.plan.frontier import (
    Frontier,
    FrontierCorner,
    FrontierLine,
    FrontierPoint,
    best_trade_off,
    goals_at,
    lower_bound,
    undominated,
)
from model.plan.plan import Move, PlanStatus, bytes_of
from model.snapshot.snapshot import Snapshot
from model.units import count_text
from solver.budget import Budget
from solver.cpsat.model import MAX_PAIRS, pairs
from solver.problem.problem import Problem, compile_problem
from solver.repair.repair import is_broken
from solver.report.build_plan import rounded_down
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.studies.solve_tasks import SolveAll, SolveTask, solve_in_turn

FACTORS: Final = (100.0, 50.0, 25.0, 12.0, 6.0, 3.0, 1.5, 1.0, 0.5, 0.2)
"""Costs of a move that are tried, as multiples of the present one."""

WORK_OF_ROW: Final = 4e-5
"""Work units for compiling a problem and evaluating its plan, per partition; measured."""

STOPPED: Final = "stopped before a plan was found"

MOST_BUDGETS: Final = 10
"""Budgets of 1, 2, 4, ... moves tried in addition, where the model is exact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Try:
    """One solve: its cost of a move, its budget and the result."""

    price: float
    budget: int | None
    result: Result


def trace_plans(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver,
    solve_all: SolveAll = solve_in_turn,
) -> tuple[Frontier, tuple[Result | None, ...]]:
    """Trace points and proved lines, from no move to nearly all that gain anything.

    Returns the frontier with the result behind each of its points, in their order; None for the
    present state. The work of `limits` is shared among all solves; when `observer` stops one, no
    further ones are started. Without a stop, equal arguments give an equal frontier, wherever
    `solve_all` solves. It has no points, only reasons, where no plan was found and the present
    state is not allowed.
    """
    problem = compile_problem(snapshot, goals)
    exact = pairs(problem) <= MAX_PAIRS
    solves = len(FACTORS) * (2 if exact else 1)
    present = rounded(_present_price(problem))
    whole = Budget(limits=limits, observer=observer)
    part = whole.part(limits.work / solves).limits

    def attempts(wanted: Sequence[tuple[float, int | None]]) -> list[_Try]:
        """Solve at costs of a move, each with a budget of moves, until the work is spent."""
        # Rounded first, so that the file has exactly the cost that was proved.
        at = [(rounded(price), budget) for price, budget in wanted]
        tasks = [SolveTask(goals=goals_at(goals, *each), limits=part) for each in at]
        made: list[_Try] = []
        for (price, budget), result in zip(at, solve_all(snapshot, tasks, observer), strict=False):
            made.append(_Try(price=price, budget=budget, result=result))
            whole.work += result.work + WORK_OF_ROW * len(snapshot)
            if whole.over():
                break
        return made

    # The present cost first, so that its plan exists however early the trace ends.
    factors = sorted(FACTORS, key=lambda f: f != 1.0)
    made = dict(zip(factors, attempts([(f * present, None) for f in factors]), strict=False))
    tries = [made[factor] for factor in FACTORS if factor in made]
    skipped = len(FACTORS) - len(tries)
    # Under a budget, plans may repair less than the bounds assume.
    stuck = all(t.result.status is PlanStatus.INFEASIBLE for t in tries)
    if exact and not stuck and not is_broken(problem):
        plans = [t.result.best for t in tries if t.result.best]
        most = max((sum(len(m.added) for m in plan.moves) for plan in plans), default=0)
        budgets = list(_budgets(problem, goals, most))
        price = FACTORS[-1] * present
        under = [] if whole.over() else attempts([(price, budget) for budget in budgets])
        skipped += len(budgets) - len(under)
        tries += under
    return _frontier(problem, limits, present, tries, _limited(whole, tries, skipped))


def _limited(whole: Budget, tries: list[_Try], skipped: int) -> str:
    """What ended solves before optimality was proved; empty if nothing did."""
    if whole.stops():
        return "stopped"
    open_ = sum(t.result.exhausted for t in tries) + skipped
    if not open_:
        return ""
    solves = count_text(len(tries) + skipped, "solve")
    return f"search budget exhausted in {open_} of {solves}"


def _present_price(problem: Problem) -> float:
    """The cost of one move in units of the balance, under the goals.

    Under `band` any excess outweighs the cost of moves, so costs are tried around what
    moving an average partition gains.
    """
    if not problem.band:
        return problem.costs.move
    tolerance = min((g.tolerance for g in problem.counted), default=0.1)
    brokers = int(problem.may.holding.sum())
    return tolerance * max(1, brokers) / max(1, len(problem.leader))


def _budgets(problem: Problem, goals: Goals, most: int) -> Iterator[int]:
    """1, 2, 4, ... moves besides the forced ones, below what was found without a budget."""
    forced = int(problem.may.forced.sum())
    for step in range(MOST_BUDGETS):
        budget = forced + 2**step
        limit = goals.budgets.replica_moves
        if budget < most and (limit is None or budget < limit):
            yield budget


def _frontier(
    problem: Problem, limits: SolveLimits, present: float, tries: list[_Try], limited_by: str
) -> tuple[Frontier, tuple[Result | None, ...]]:
    snapshot, goals = problem.snapshot, problem.goals
    lines = _lines(goals, tries)
    found = [(t, _point(snapshot, goals, t, lines)) for t in tries]
    made = [(t, point) for t, point in found if point is not None]
    before = rounded(_balance(snapshot, goals, ())[0])
    must = problem.may.forced.any() or is_broken(problem)
    home = () if must else (_home(before, present, lines),)
    points = undominated((*home, *(point for _, point in made)))
    asked = [p for t, p in made if t.price == present and t.budget is None]
    most = max((point.cost for point in points), default=0.0)
    frontier = Frontier(
        cluster_id=snapshot.header.cluster_id,
        snapshot_fingerprint=snapshot.fingerprint,
        goals=goals,
        limits=limits,
        measure="excess" if goals.objective is ObjectiveKind.BAND else "deviation",
        move_price=present,
        balance_before=before,
        points=points,
        knee=best_trade_off(points),
        chosen=_nearest(points, asked),
        lines=lines,
        lower=tuple(_corners(lines, most)),
        reasons=() if points else tries[0].result.reasons if tries else (STOPPED,),
        limited_by=limited_by,
    )
    behind = [next((t.result for t, p in made if p is point), None) for point in points]
    return frontier, tuple(behind)


def _home(before: float, present: float, lines: tuple[FrontierLine, ...]) -> FrontierPoint:
    """The point of the present state."""
    proved = max((line.at(0.0) for line in lines), default=0.0)
    return FrontierPoint(
        cost=0.0,
        balance=before,
        bound=rounded_down(min(before, max(0.0, proved))),
        moves=0,
        leader_changes=0,
        bytes_to_copy=0,
        move_price=present,
        most_moves=0,
    )


def _corners(lines: tuple[FrontierLine, ...], most: float) -> Iterator[FrontierCorner]:
    """The lower bound, rounded as in a file, without corners that this merges."""
    last = None
    for corner in lower_bound(lines, most):
        kept = FrontierCorner(cost=rounded(corner.cost), balance=rounded_down(corner.balance))
        if kept != last:
            yield kept
        last = kept


def _lines(goals: Goals, tries: Iterable[_Try]) -> tuple[FrontierLine, ...]:
    """One line per cost; a budget's bound says nothing about plans without it."""
    band = goals.objective is ObjectiveKind.BAND
    return tuple(
        FrontierLine(
            move_price=t.price, bound=rounded_down(t.result.bound * (t.price if band else 1.0))
        )
        for t in tries
        if t.budget is None and t.result.bound is not None
    )


def _point(
    snapshot: Snapshot, goals: Goals, tried: _Try, lines: tuple[FrontierLine, ...]
) -> FrontierPoint | None:
    result = tried.result
    if result.best is None and result.status is not PlanStatus.NONE_IN_TIME:
        return None
    moves = result.best.moves if result.best else ()
    if not moves and result.objective is None:
        return None
    found = point_at(snapshot, goals, moves, lines, tried.price)
    return found.model_copy(update={"most_moves": tried.budget})


def point_at(
    snapshot: Snapshot,
    goals: Goals,
    moves: tuple[Move, ...],
    lines: Iterable[FrontierLine],
    move_price: float,
) -> FrontierPoint:
    """Compute the frontier point of a plan, with the bound that the proved lines give there.

    `move_price` is the cost of a move at which the plan was found, in units of F; the point's own
    cost is in move equivalents, and its `most_moves` is None. Raises InvalidCluster if the snapshot
    lacks a move's partition, or two moves name the same one.
    """
    balance, cost = _balance(snapshot, goals, moves)
    proved = max((line.at(cost) for line in lines), default=0.0)
    return FrontierPoint(
        cost=rounded(cost),
        balance=rounded(balance),
        bound=rounded_down(min(balance, max(0.0, proved))),
        moves=sum(len(m.added) for m in moves),
        leader_changes=sum(m.leader_before != m.leader_after for m in moves),
        bytes_to_copy=bytes_of(moves),
        move_price=move_price,
    )


def _balance(snapshot: Snapshot, goals: Goals, moves: tuple[Move, ...]) -> tuple[float, float]:
    """Balance and cost of a plan, by the independent evaluator."""
    found = evaluate(snapshot, goals, moves)
    band = goals.objective is ObjectiveKind.BAND
    cost = found.prices / found.move_price if found.move_price else 0.0
    return (found.excess if band else found.deviation), max(0.0, cost)


def _nearest(points: tuple[FrontierPoint, ...], asked: list[FrontierPoint]) -> int | None:
    """Position of the plan at the present cost, or of the point that dominates it."""
    for wanted in asked:
        at = [i for i, p in enumerate(points) if p.cost <= wanted.cost]
        if at:
            return at[-1]
    return None
