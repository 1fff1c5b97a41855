"""The frontier with the current plan as one of its points."""

from dataclasses import replace

from control.planning.plan_view import TracedFrontier
from control.planning.validate import refuse_broken
from model.ids import PartitionId
from model.plan.frontier import Frontier, FrontierPoint, best_trade_off, undominated
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result


def checked(
    snapshot: Snapshot, frontier: Frontier, answers: tuple[Result | None, ...]
) -> TracedFrontier:
    """Return a frontier whose plans the independent evaluator has accepted.

    answers: result per point; None for the current placement. Raises PlimsollError if
    a plan is invalid.
    """
    for answer in answers:
        if answer is not None:
            refuse_broken(snapshot, answer.best)
    return TracedFrontier(frontier=frontier, snapshot=snapshot, answers=answers)


def with_plan(traced: TracedFrontier, result: Result) -> TracedFrontier:
    """Add the plan of `result` to the frontier as its chosen point, in order of cost.

    Points that the plan dominates are removed. Without a plan, nothing changes.
    """
    plan, frontier = result.best, traced.frontier
    if plan is None:
        return traced
    pairs = list(zip(frontier.points, traced.answers, strict=True))
    at = point_of(traced, plan)
    if at is not None:
        chosen = frontier.points[at]
    else:
        chosen = _point(traced, plan)
        pairs = [pair for pair in pairs if not _beats(chosen, pair[0])]
        at = sum(point.cost <= chosen.cost for point, _ in pairs)
        pairs.insert(at, (chosen, result))
    points = tuple(point for point, _ in pairs)
    update = {"points": points, "chosen": at, "knee": _knee(points)}
    return replace(
        traced,
        frontier=frontier.model_copy(update=update),
        answers=tuple(answer for _, answer in pairs),
    )


def point_of(traced: TracedFrontier, plan: Plan | None) -> int | None:
    """Index of the point that is exactly this plan; None if there is none."""
    if plan is None:
        return None
    moves = _places(plan)
    for at, answer in enumerate(traced.answers):
        # No result: the current placement.
        best = answer.best if answer is not None else None
        if moves == ({} if best is None else _places(best)):
            return at
    return None


def _places(plan: Plan) -> dict[PartitionId, tuple[object, ...]]:
    return {m.id: (m.replicas_after, m.leader_after, m.log_dirs_after) for m in plan.moves}


def _point(traced: TracedFrontier, plan: Plan) -> FrontierPoint:
    from solver.studies.trace_frontier import point_at

    frontier = traced.frontier
    return point_at(
        traced.snapshot, frontier.goals, plan.moves, frontier.lines, frontier.move_price
    )


def _beats(one: FrontierPoint, other: FrontierPoint) -> bool:
    return one.cost <= other.cost and one.balance <= other.balance


def _knee(points: tuple[FrontierPoint, ...]) -> int | None:
    best = undominated(points)
    knee = best_trade_off(best)
    return None if knee is None else points.index(best[knee])
