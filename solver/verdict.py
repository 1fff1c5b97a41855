"""What a finished search amounts to: a status, and words where there are no moves."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from model.plan import PlanStatus
from model.snapshot import Resource
from model.units import bytes_text, count_text, percent_text
from solver.placement import Placement, changed_rows, deviations
from solver.problem import Problem
from solver.search import Search


def verdict(search: Search, placement: Placement) -> tuple[PlanStatus, tuple[str, ...]]:
    """Status and reasons of the best placement found."""
    problem = search.problem
    if changed_rows(problem, placement):
        status = PlanStatus.OPTIMAL if search.proved else PlanStatus.IMPROVED
        return status, ()
    idle = tuple(nothing_to_balance(problem))
    if idle:
        return PlanStatus.LEVEL_ALREADY, idle
    if within_band(problem):
        return PlanStatus.LEVEL_ALREADY, (_band(problem), *_staying(problem))
    if not search.proved:
        return PlanStatus.NONE_IN_TIME, (_unproved(search), *_staying(problem))
    price = f"{problem.prices.move + problem.prices.leader:.3g}"
    reasons = [f"no allowed move gains more than its price, {price} of F"]
    if len(problem.may.fixed) == len(problem.home):
        reasons = []
    return PlanStatus.NO_IMPROVEMENT, (*reasons, *_staying(problem))


def nothing_to_balance(problem: Problem) -> Iterator[str]:
    """Why there is nothing to do at all, if so."""
    if not problem.brokers:
        yield "the cluster has no brokers"
    elif not len(problem.home):
        yield "the cluster has no partitions"
    elif not problem.counted:
        yield _under_floors(problem)


def within_band(problem: Problem) -> bool:
    """Whether every broker lies within tolerance as the snapshot has it."""
    where = np.abs(deviations(problem, problem.loads_before))
    tolerance = np.array([g.tolerance for g in problem.counted])
    return bool((where <= tolerance).all())


def _under_floors(problem: Problem) -> str:
    header, holding = problem.snapshot.header, int(problem.may.holding.sum())
    mean = problem.loads_before.sum(axis=0) / max(1, holding)
    known = dict(zip(header.resources, mean.tolist(), strict=True))
    told = [_floor(g.resource, g.floor, known) for g in problem.goals.balance]
    return "nothing is balanced: " + ("; ".join(told) or "no goal is set")


def _floor(resource: Resource, floor: float, known: dict[Resource, float]) -> str:
    if resource not in known:
        return f"{resource} is not measured"
    return (
        f"{resource} is {bytes_text(known[resource])} per broker on average, "
        f"its floor is {bytes_text(floor)}"
    )


def _band(problem: Problem) -> str:
    told = [f"{percent_text(g.tolerance)} in {g.resource}" for g in problem.counted]
    return f"every broker lies within its band: {', '.join(told)}"


def _staying(problem: Problem) -> Iterator[str]:
    total = len(problem.home)
    for why, count in sorted(Counter(problem.may.fixed.values()).items()):
        yield f"{count} of {count_text(total, 'partition')} {why}"


def _unproved(search: Search) -> str:
    return (
        f"no better plan was found within {search.limits.work:g} units of work; F is "
        f"{search.objective:.4g}, and no plan is known to be impossible above "
        f"{search.bound:.4g}: allow more work"
    )
