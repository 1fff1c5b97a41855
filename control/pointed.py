"""The frontier with the plan as one of its points, so that one always is the plan."""

from dataclasses import replace

from control.proposed import Traced
from model.evaluate import evaluate
from model.files import rounded
from model.frontier import Frontier, FrontierPoint
from model.goals import ObjectiveKind
from model.ids import PartitionId
from model.plan import Plan, bytes_of
from model.snapshot import Snapshot
from solver.result import Result


def with_plan(traced: Traced, result: Result | None) -> Traced:
    """The same, and the plan at its place by cost, where no point is this plan."""
    plan = result.best if result is not None else None
    if plan is None or not plan.moves or point_of(traced, plan) is not None:
        return traced
    frontier = traced.frontier
    point = _point(frontier, traced.snapshot, plan)
    at = sum(p.cost <= point.cost for p in frontier.points)
    points = (*frontier.points[:at], point, *frontier.points[at:])
    answers = (*traced.answers[:at], result, *traced.answers[at:])
    update = {
        "points": points,
        "knee": _after(frontier.knee, at),
        "chosen": _after(frontier.chosen, at),
    }
    return replace(traced, frontier=frontier.model_copy(update=update), answers=answers)


def point_of(traced: Traced, plan: Plan | None) -> int | None:
    """The point that is this very plan, not only one of its price."""
    if plan is None:
        return None
    moves = _places(plan)
    for at, answer in enumerate(traced.answers):
        best = answer.best if answer is not None else None
        if best is not None and moves == _places(best):
            return at
    return None


def _places(plan: Plan) -> dict[PartitionId, tuple[object, ...]]:
    return {m.id: (m.replicas_after, m.leader_after) for m in plan.moves}


def _after(index: int | None, at: int) -> int | None:
    return index + 1 if index is not None and index >= at else index


def _point(frontier: Frontier, snapshot: Snapshot, plan: Plan) -> FrontierPoint:
    found = evaluate(snapshot, frontier.goals, plan.moves)
    band = frontier.goals.objective is ObjectiveKind.BAND
    balance = rounded(found.excess if band else found.deviation)
    cost = found.prices / found.move_price if found.move_price else 0.0
    proved = max((line.at(cost) for line in frontier.lines), default=0.0)
    return FrontierPoint(
        cost=rounded(max(0.0, cost)),
        balance=balance,
        bound=rounded(min(balance, max(0.0, proved))),
        moves=sum(len(m.added) for m in plan.moves),
        leader_changes=sum(m.leader_before != m.leader_after for m in plan.moves),
        bytes_to_copy=bytes_of(plan.moves),
        move_price=frontier.move_price,
    )
