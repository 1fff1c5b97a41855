"""Status of a finished search, with reasons where there are no moves."""

from collections.abc import Iterator
from math import inf

import numpy as np

from model.files import rounded
from model.plan.plan import PlanStatus
from model.plan.remaining import load_text, remaining_text
from model.plan.tolerance import OutsideTolerance, tolerance_text
from model.snapshot.snapshot import Measure
from model.units import count_text, percent_text
from solver.problem.eligibility import FIXED_REASONS
from solver.problem.placement import (
    EDGE,
    Placement,
    changed_rows,
    deviations,
    loads_of,
    tolerance_excess,
)
from solver.problem.problem import Problem
from solver.problem.remaining_violations import over_limits, rack_violations
from solver.repair.repair import ruled_out
from solver.report.unmovable import unmovable_text
from solver.search.search import Search


def verdict(search: Search, placement: Placement) -> tuple[PlanStatus, tuple[str, ...]]:
    """Return the status of the best placement, and sentences on what it leaves unchanged and why.

    `placement` is the incumbent of `search`, which must have one. `NONE_IN_TIME` if it changes
    nothing and the bound leaves more to gain than one move costs.
    """
    problem = search.problem
    left = (
        *_outside_text(search, placement),
        *unmovable_text(problem),
        *_remaining(search, placement),
    )
    if search.stopped and not search.proved:
        return PlanStatus.STOPPED, (_stopped(search), *left)
    if changed_rows(problem, placement):
        best = search.proved and search.repaired_most and search.least_excess
        return PlanStatus.OPTIMAL if best else PlanStatus.IMPROVED, left
    idle = tuple(nothing_to_balance(problem))
    if idle:
        return PlanStatus.ALREADY_BALANCED, (*idle, *_remaining(search, placement))
    if within_band(problem):
        return PlanStatus.ALREADY_BALANCED, (_band(problem), *_staying(problem), *left)
    closest = problem.most_excess < inf
    if not closest and search.objective - search.bound > max(problem.costs.move, search.limits.gap):
        return PlanStatus.NONE_IN_TIME, (_unproved(search), *_staying(problem), *left)
    reasons = [ruled_out(problem, placement) or _not_worth_it(search)]
    if problem.may.fixed_reason.all():
        reasons = []
    return PlanStatus.NO_IMPROVEMENT, (*reasons, *_staying(problem), *left)


def _remaining(search: Search, placement: Placement) -> tuple[str, ...]:
    """Limits still exceeded and racks still shared."""
    problem = search.problem
    over = over_limits(problem, placement)
    racks = rack_violations(problem, placement, search.unrepaired)
    return tuple(remaining_text(over, racks))


def _outside_text(search: Search, placement: Placement) -> Iterator[str]:
    """Clause on brokers outside the tolerance; none where other reasons say that all stays."""
    if not search.problem.may.fixed_reason.all():
        outside = outside_after(search.problem, placement)
        yield from tolerance_text(outside, unmet_reason(search, placement))


def outside_after(problem: Problem, placement: Placement) -> tuple[OutsideTolerance, ...]:
    """List brokers that a placement leaves outside the tolerance, the furthest first."""
    relative = deviations(problem, loads_of(problem, placement))
    found = [
        OutsideTolerance(
            broker=problem.brokers[b],
            dimension=problem.keys[k],
            deviation=rounded(float(relative[b, k])),
            tolerance=float(problem.tolerance[k]),
        )
        for b, k in np.argwhere(np.abs(relative) > problem.tolerance + EDGE).tolist()
        if problem.weight[k] > 0
    ]
    return tuple(sorted(found, key=lambda o: (-o.excess, o.broker, o.dimension)))


def unmet_reason(search: Search, placement: Placement) -> str:
    """Return why a placement leaves brokers outside their tolerance; empty where none is."""
    problem = search.problem
    if tolerance_excess(problem, placement) <= 0.0:
        return ""
    if search.tolerance_unmet:
        return search.tolerance_unmet
    if problem.band:
        return "no allowed plan comes closer" + ("" if search.proved else ", as far as is known")
    if not problem.goals.tolerance_first:
        return "the goals do not put the tolerance first"
    return "no plan inside was looked for"


def limited_by(search: Search) -> str:
    """Return what ended a solve, for `Plan.limited_by`.

    A proof, a request to stop, a small gap, the search budget or its share for repairs, or else
    the part of the search that ended last: `Search.ended`.
    """
    if search.infeasible:
        return "proved infeasible"
    if search.near_to and not search.proved:
        return f"kept near plan {search.near_to[:12]}"
    if search.proved:
        return "proved optimal" + _among(search)
    gap = search.objective - search.bound
    near = gap <= search.limits.gap_share * abs(search.objective)
    if search.optimal_without_tolerance and not near and gap > search.noise:
        return "the bound leaves out the tolerance"
    if search.stopped:
        return "stopped"
    if search.repair_cut:
        return f"search budget for repairs exhausted, a share of {work_text(search.limits.work)}"
    # A search that ended for another reason may have come as near.
    if search.near_enough or search.optimal_without_tolerance or (near and search.ended):
        share = f"{100 * search.limits.gap_share:g} % of F"
        return f"gap within {share if near else 'the noise of the loads'}"
    if search.exhausted or search.work_left <= 0:
        return f"search budget exhausted ({work_text(search.limits.work)})"
    return search.ended or "no step of the search closes the gap further"


def _among(search: Search) -> str:
    """Of which plans a proved one is the best; empty for all."""
    if not search.repaired_most:
        return " among plans that repair as much"
    if not search.least_excess:
        return " among plans that come as close to the tolerance"
    return ""


def work_text(work: float) -> str:
    """Format work units: `1 unit of work`, `20 units of work`."""
    return f"{work:g} {'unit' if work == 1 else 'units'} of work"


def nothing_to_balance(problem: Problem) -> Iterator[str]:
    """Yield one reason why there is nothing to balance; nothing if there is something.

    There are no brokers or partitions, or every goal is unmeasured or below its floor.
    """
    if not problem.brokers:
        yield "the cluster has no brokers"
    elif not len(problem.leader):
        yield "the cluster has no partitions"
    elif not problem.counted and not problem.topic_share:
        yield _under_floors(problem)


def within_band(problem: Problem) -> bool:
    """Return whether every broker is within the tolerance of every goal in the snapshot.

    Forecast slots count, too. False where nothing is balanced, or topics are balanced one by one.
    """
    if problem.topic_share or not problem.counted:
        return False
    return bool((np.abs(problem.deviations_before) <= problem.tolerance).all())


def _under_floors(problem: Problem) -> str:
    holding = int(problem.may.holding.sum())
    mean = problem.loads_before.sum(axis=0) / max(1, holding)
    names = (d.measure for d in problem.dimensions if d.slot == 0)
    now = [d for d, found in enumerate(problem.dimensions) if found.slot == 0]
    known = dict(zip(names, mean[now].tolist(), strict=True))
    listed = [_floor(g.resource, g.floor, known) for g in problem.goals.balance]
    return "nothing is balanced: " + ("; ".join(listed) or "no goal is set")


def _floor(resource: Measure, floor: float, known: dict[Measure, float]) -> str:
    if resource not in known:
        return f"{resource} is not measured"
    return (
        f"{resource} is {load_text(resource, known[resource])} per broker on "
        f"average, its floor is {load_text(resource, floor)}"
    )


def _band(problem: Problem) -> str:
    bands = zip(problem.keys, problem.tolerance.tolist(), strict=True)
    listed = [f"{percent_text(tolerance)} in {key}" for key, tolerance in bands]
    return f"every broker is within its tolerance band: {', '.join(listed)}"


def _staying(problem: Problem) -> Iterator[str]:
    total = count_text(len(problem.leader), "partition")
    for why in sorted(FIXED_REASONS):
        if count := int(problem.may.kept_by(why).sum()):
            yield f"{count} of {total} {why}"


def _not_worth_it(search: Search) -> str:
    prices = search.problem.costs
    if search.proved:
        price = f"{prices.move + prices.leader:.3g}"
        return f"no allowed move gains more than its cost, {price} of F"
    return (
        f"at most {search.objective - search.bound:.3g} can still be gained, less than "
        f"the cost of one move, {prices.move:.3g} of F"
    )


def _stopped(search: Search) -> str:
    return (
        f"stopped after {work_text(search.work)}; F is {search.objective:.4g}, "
        f"and {search.bound:.4g} is the bound proved so far"
    )


def _unproved(search: Search) -> str:
    return (
        f"no better plan was found within {work_text(search.limits.work)}; F is "
        f"{search.objective:.4g} and the proved bound is {search.bound:.4g}; "
        "raise the search budget to search further"
    )
