"""Partitions without an allowed place do not prevent plans for the others."""

from typing import Any

import numpy as np
import pytest

from control.planning.validate import refuse_broken
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import PlanStatus
from model.plan.proposal import Proposal
from model.plan.unplaceable import placeless, with_placeless_deferred
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.solve import solve
from tests.support.solver.exact_oracle import (
    OTHER,
    TOPIC,
    Row,
    _all_places,
    broker,
    cluster,
    goals,
    least,
    moved,
    placement_count,
)

LIMITS = SolveLimits(work=1.0)
STATES = (BrokerState.ALIVE, BrokerState.CORDONED, BrokerState.NEW)
MOST_WAYS = 3_000


def one_dead(seed: int) -> tuple[Snapshot, Goals]:
    """A tiny cluster with a dead broker, where few brokers may hold a replica."""
    rng = np.random.default_rng(seed)

    def maybe(share: float) -> bool:
        return bool(rng.random() < share)

    size = int(rng.integers(2, 5))
    states = [STATES[int(i)] for i in rng.choice(3, size, p=[0.7, 0.2, 0.1])]
    states[-1] = BrokerState.DEAD
    members = [
        broker(i + 1, "ab"[int(rng.integers(0, 2))], state) for i, state in enumerate(states)
    ]
    rows = []
    for topic in (TOPIC, TOPIC, OTHER):
        rf = int(rng.integers(1, size + 1))
        replicas = (rng.permutation(size)[:rf] + 1).tolist()
        live = [b for b in replicas if b != size]
        leader = live[0] if live else -1
        load = (float(rng.integers(1, 5)), 1.0)
        rows.append(Row(replicas=tuple(replicas), leader=leader, load=load, topic=topic))
    recent = [moved(0, int(rng.integers(1, size + 1)), 900)] if maybe(0.5) else []
    others: dict[str, Any] = {"rack_rule": str(rng.choice(["spread", "off"]))}
    if maybe(0.3):
        others["pins"] = ({"topics": {"exact": (TOPIC,)}, "brokers": (1, size)},)
    if len(rows[-1].replicas) == 2 and maybe(0.5):
        counts = ({"count": 1, "constraints": {"rack": r}} for r in "ab")
        rule = {"version": 1, "replicas": tuple(counts)}
        others["placements"] = ({"topics": {"exact": (OTHER,)}, "placement": rule},)
    return cluster(members, rows, recent=recent), goals(**others)


@pytest.mark.parametrize("seed", range(100))
def test_partitions_that_fit_no_placement_are_found(seed: int) -> None:
    """Exactly those for which each placement breaks a rule or keeps a dead broker."""
    snapshot, given_goals = one_dead(seed)
    forced = Proposal(snapshot, given_goals, ()).forced.rows
    last = snapshot.header.brokers[-1].id
    assert placeless(snapshot, given_goals) == {
        row
        for row, places in enumerate(_all_places(snapshot, given_goals))
        if forced[row] and all(place is None or last in place.replicas for place in places)
    }


@pytest.mark.parametrize("seed", range(40))
def test_the_other_partitions_get_an_optimal_plan(seed: int) -> None:
    snapshot, given_goals = one_dead(seed)
    result = with_placeless_deferred(given_goals, snapshot)
    if result == given_goals:
        return
    assert solve(snapshot, given_goals, LIMITS).status is PlanStatus.INFEASIBLE
    plan = solve(snapshot, result, LIMITS).best
    assert placement_count(snapshot, result) <= MOST_WAYS
    if plan is None:
        assert least(snapshot, result) is None
        return
    refuse_broken(snapshot, plan)
    best = least(snapshot, result, plan)
    assert best is not None
    assert plan.objective == pytest.approx(best, abs=1e-5)
    named = {(s.topic, n) for s in plan.goals.deferred for n in s.partitions}
    assert named.isdisjoint((m.topic, m.partition) for m in plan.moves)
    (messages,) = [w for w in plan.warnings if "cannot be moved" in w]
    assert all(f"{topic}-{number}" in messages for topic, number in named)


def test_a_cluster_without_dead_brokers_defers_nothing() -> None:
    """A pin that no placement satisfies stays a contradiction."""
    pinned = goals(pins=({"topics": {"exact": (TOPIC,)}, "brokers": (2,)},))
    members = [broker(1), broker(2, state=BrokerState.CORDONED)]
    for last in ([], [broker(3, state=BrokerState.DEAD)]):
        snapshot = cluster([*members, *last], [Row(replicas=(1,))])
        assert placeless(snapshot, pinned) == {0}
        assert with_placeless_deferred(pinned, snapshot) == pinned


def test_a_drain_that_cannot_be_completed_stays_infeasible() -> None:
    """Also beside a dead broker, since the drain is a request."""
    draining = broker(2, state=BrokerState.DRAINING)
    for last in (broker(3, state=BrokerState.DEAD), broker(3)):
        snapshot = cluster([broker(1), draining, last], [Row(replicas=(1, 2, 3))])
        assert with_placeless_deferred(goals(), snapshot) == goals()
        assert solve(snapshot, goals(), LIMITS).status is PlanStatus.INFEASIBLE
