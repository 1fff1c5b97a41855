"""From what a search found to a result: status, words, sealed plan."""

from decimal import ROUND_FLOOR, Context
from typing import Final

import numpy as np

from model.files import DIGITS, rounded
from model.ids import BrokerId
from model.plan import BrokerChange, Move, Plan, PlanStatus
from model.snapshot import BrokerState, Floats, Resource, StorageKind
from solver.explain import reason
from solver.placement import (
    Placement,
    changed_rows,
    deviations,
    gains,
    loads_of,
    objective,
)
from solver.problem import Problem
from solver.search import Search

_DOWN: Final = Context(prec=DIGITS, rounding=ROUND_FLOOR)


def build_plan(search: Search, placement: Placement, status: PlanStatus) -> Plan:
    """The sealed plan that leads to a placement."""
    problem = search.problem
    header = search.problem.snapshot.header
    live = (b.id for b in header.brokers if b.state is not BrokerState.DEAD)
    return Plan(
        cluster_id=header.cluster_id,
        snapshot_fingerprint=problem.snapshot.fingerprint,
        snapshot_taken_at_ms=header.taken_at_ms,
        live_brokers=tuple(live),
        goals=problem.goals,
        limits=search.limits,
        status=status,
        objective_before=rounded(objective(problem, Placement.home(problem))),
        objective=rounded(objective(problem, placement)),
        bound=float(_DOWN.create_decimal_from_float(search.bound)),
        move_price=rounded(problem.prices.move),
        levels={
            g.resource: rounded(level)
            for g, level in zip(problem.counted, problem.level.tolist(), strict=True)
        },
        brokers=_broker_changes(problem, placement),
        moves=_moves(problem, placement),
    ).seal()


def _moves(problem: Problem, placement: Placement) -> tuple[Move, ...]:
    """Forced moves first, internal topics last, then by gain."""
    gain = gains(problem, placement)

    def place(row: int) -> tuple[bool, bool, float, int]:
        internal = problem.snapshot.row(row).internal
        return internal, not problem.may.forced[row], -rounded(gain[row]), row

    rows = sorted(changed_rows(problem, placement), key=place)
    return tuple(_move(problem, placement, row, gain[row]) for row in rows)


def _move(problem: Problem, placement: Placement, row: int, gain: float) -> Move:
    partition = problem.snapshot.row(row)
    leader = problem.brokers[int(placement.leader[row])]
    after = _replicas_after(problem, placement, row, leader)
    added = len(set(after) - set(partition.replicas))
    shared = partition.storage is StorageKind.SHARED
    return Move(
        topic=partition.id.topic,
        topic_id=partition.topic_id,
        partition=partition.id.partition,
        storage=partition.storage,
        replicas_before=partition.replicas,
        replicas_after=after,
        leader_before=partition.leader,
        leader_after=leader,
        bytes_to_copy=0 if shared else added * max(0, partition.local_bytes),
        gain=rounded(gain),
        reason=reason(problem, placement, row),
    )


def _replicas_after(
    problem: Problem, placement: Placement, row: int, leader: BrokerId
) -> tuple[BrokerId, ...]:
    """Leader first, then those that stay in their old order, then new ones by id."""
    before = problem.snapshot.replicas(row)
    on = [problem.brokers[b] for b in np.flatnonzero(placement.on[row])]
    stay = [b for b in before if b in on and b != leader]
    new = [b for b in on if b not in before and b != leader]
    return (leader, *stay, *new)


def _broker_changes(problem: Problem, placement: Placement) -> tuple[BrokerChange, ...]:
    before, after = problem.loads_before, loads_of(problem, placement)
    resources = problem.snapshot.header.resources
    counted = [g.resource for g in problem.counted]

    def deviation(loads: Floats, b: int) -> dict[Resource, float]:
        if not problem.may.holding[b]:
            return {}
        row = deviations(problem, loads)[b].tolist()
        return dict(zip(counted, map(rounded, row), strict=True))

    return tuple(
        BrokerChange(
            id=broker.id,
            rack=broker.rack,
            state=broker.state,
            before=dict(zip(resources, map(rounded, before[b].tolist()), strict=True)),
            after=dict(zip(resources, map(rounded, after[b].tolist()), strict=True)),
            deviation_before=deviation(before, b),
            deviation_after=deviation(after, b),
            replicas_before=int(problem.home[:, b].sum()),
            replicas_after=int(placement.on[:, b].sum()),
        )
        for b, broker in enumerate(problem.snapshot.header.brokers)
    )
