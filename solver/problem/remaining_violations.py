"""Limits exceeded and racks shared before or after a plan, as the solver computes them."""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from model.files import rounded
from model.plan.remaining import OverLimit, RackViolation
from model.snapshot.snapshot import Bools, Floats, Ints, Resource
from solver.problem.eligibility import FIXED_REASONS, FixedReason
from solver.problem.placement import Placement, loads_of
from solver.problem.problem import Problem

ROUNDING: Final = 1e-9
"""Share by which a load may exceed its limit; the same as in the evaluator."""

REASON_NOT_REPAIRED: Final[Mapping[FixedReason, str]] = {
    FixedReason.NO_LEADER: "it has no leader",
    FixedReason.EXCLUDED: "its topic is excluded",
    FixedReason.INTERNAL: "its topic is internal",
    FixedReason.UNKNOWN: "its load is not known yet",
    FixedReason.IN_COOLDOWN: "it is in cooldown after a recent move",
    FixedReason.KEPT: "the goals let it stay",
}
"""Why the shared racks of a row that may not move are not repaired."""

NOT_ASKED: Final = "the goals do not repair racks"


def sharing(problem: Problem, replicas: Ints) -> Bools:
    """Return (n,) whether each row's replicas share racks needlessly, as in `Spreading.shared`.

    `replicas` is (n, M) broker positions with -1 as filler.
    """
    return problem.may.spreading.shared(replicas, problem.may.alive)


def over_limits(problem: Problem, placement: Placement) -> tuple[OverLimit, ...]:
    """List the limits exceeded before or after the plan, by broker id and dimension.

    A share of `ROUNDING` over a limit of load is tolerated. Brokers that must end empty are left
    out.
    """
    found = (*_resources(problem, placement), *_counts(problem, placement))
    return tuple(sorted(found, key=lambda o: (o.broker, o.dimension)))


def _resources(problem: Problem, placement: Placement) -> Iterator[OverLimit]:
    before, after = problem.loads_before, loads_of(problem, placement)
    most = np.maximum(before, after)
    for b, d in np.argwhere(most > problem.limit * (1 + ROUNDING)).tolist():
        dimension, broker = problem.dimensions[d], problem.snapshot.header.brokers[b]
        yield OverLimit(
            broker=broker.id,
            dimension=dimension.key,
            before=rounded(float(before[b, d])),
            after=rounded(float(after[b, d])),
            limit=rounded(float(problem.limit[b, d])),
            capacity=rounded(broker.capacity[Resource(dimension.measure)]),
        )


def _counts(problem: Problem, placement: Placement) -> Iterator[OverLimit]:
    limit = problem.goals.replicas_per_broker
    before, after = held(problem, problem.replicas), held(problem, placement.replicas)
    over = (np.maximum(before, after) > limit) & problem.may.holding
    for b in np.flatnonzero(over).tolist():
        yield OverLimit(
            broker=problem.brokers[b],
            dimension="replicas",
            before=int(before[b]),
            after=int(after[b]),
            limit=limit,
        )


def held(problem: Problem, replicas: Ints) -> Ints:
    """Return the (B,) number of replicas on each broker.

    `replicas` is (n, M) broker positions with -1 as filler.
    """
    at = replicas[replicas >= 0]
    return np.bincount(at, minlength=len(problem.brokers)).astype(np.int64)


def rack_violations(
    problem: Problem, placement: Placement, reasons: Mapping[int, str]
) -> tuple[RackViolation, ...]:
    """List rows that share racks before the plan, by row, with what becomes of them.

    `reasons` gives, by row, why a row that may move is not repaired; `NOT_ASKED` without an entry.
    The reason is empty where the placement repairs the row.
    """
    before = np.flatnonzero(sharing(problem, problem.replicas))
    if not len(before):
        return ()
    after, found = sharing(problem, placement.replicas), []
    for row in before.tolist():
        pid = problem.snapshot.id(row)
        reason = reasons.get(row, NOT_ASKED)
        if why := int(problem.may.fixed_reason[row]):
            reason = REASON_NOT_REPAIRED[FIXED_REASONS[why - 1]]
        found.append(
            RackViolation(
                topic=pid.topic,
                partition=pid.partition,
                repaired=not after[row],
                reason=reason if after[row] else "",
            )
        )
    return tuple(found)


def excess(problem: Problem, loads: Floats, count: Ints) -> float:
    """Add up the load and replicas above the limits, each as a share of its limit.

    `loads` is (B, D), in the columns' units, and `count` (B,) replicas; the sum is over all
    dimensions and the brokers that may hold load. Excess of load up to `ROUNDING` counts as 0.
    """
    over = np.maximum(0.0, loads / problem.limit - 1.0)
    over[over <= ROUNDING] = 0.0
    more = np.maximum(0.0, count / problem.goals.replicas_per_broker - 1.0)
    return float(over.sum()) + float(more[problem.may.holding].sum())
