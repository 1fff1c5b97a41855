"""Plans near to an earlier one: few differences, all rules, and a bound that still holds."""

import dataclasses
from statistics import median

import pytest

from control.cli.plan_claims import claims
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits, Stay
from model.plan.plan import Move, Plan
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals
from tests.support.solver.hard_clusters import hard

LIMITS = SolveLimits(work=0.4)


def solved(
    snapshot: Snapshot, given_goals: Goals, limits: SolveLimits, earlier: Plan | None = None
) -> Plan | None:
    return solve(snapshot, given_goals, limits, None, earlier).best


def differences(one: Plan, other: Plan) -> int:
    """Partitions whose set of brokers or leader differs after the two plans."""
    first, second = (
        {m.id: (frozenset(m.replicas_after), m.leader_after) for m in plan.moves}
        for plan in (one, other)
    )
    return sum(first.get(p) != second.get(p) for p in first.keys() | second.keys())


def keeping(given_goals: Goals, move: Move) -> Goals:
    stay = (*given_goals.stay, Stay(topic=move.topic, partitions=(move.partition,)))
    return given_goals.model_copy(update={"stay": stay})


def scaled(snapshot: Snapshot, factor: float) -> Snapshot:
    """The same cluster with the loads of every third partition `factor` times as large."""
    loads = snapshot.partitions.loads.copy()
    loads[::3] *= factor
    return Snapshot(snapshot.header, dataclasses.replace(snapshot.partitions, loads=loads))


@pytest.mark.slow
def test_removing_one_of_many_moves_changes_few_others() -> None:
    """From scratch, most other moves change too: many plans are nearly as good."""
    rows = [Row(replicas=(1 + i % 4,), load=(5.0 + i % 17, 3.0 + i % 13)) for i in range(240)]
    snapshot = cluster([broker(i, "abc"[i % 3]) for i in range(1, 11)], rows)
    given_goals, limits = goals(0.002), SolveLimits(work=1.0)
    plan = solved(snapshot, given_goals, limits)
    assert plan is not None
    assert len(plan.moves) > 100
    near: list[int] = []
    anew: list[int] = []
    for at in range(0, len(plan.moves), len(plan.moves) // 3):
        less = keeping(given_goals, plan.moves[at])
        for found, earlier in ((near, plan), (anew, None)):
            changed = solved(snapshot, less, limits, earlier)
            assert changed is not None
            found.append(differences(plan, changed) - 1)
    assert median(near) <= 3
    assert max(near) < min(anew)


@pytest.mark.parametrize("seed", [5, 13, 20, 21, 23, 24, 26, 27, 31, 32, 40, 41, 43, 44, 55])
@pytest.mark.slow
def test_plans_near_another_keep_every_rule_and_the_bound(seed: int) -> None:
    snapshot, given_goals = hard(seed, most_brokers=6, most_rows=40)
    earlier = solved(snapshot, given_goals, LIMITS)
    assert earlier is not None
    assert earlier.moves
    later, less = scaled(snapshot, 1.3), keeping(given_goals, earlier.moves[0])
    anew = solved(later, less, LIMITS)
    near = solved(later, less, LIMITS, earlier)
    assert (near is None) == (anew is None)
    if near is None or anew is None:
        return
    assert not evaluate(later, less, near.moves).violations or evaluate(later, less, ()).violations
    assert not [c for c in claims(near, later) if c.holds is False]
    assert near.bound <= anew.objective * (1 + 1e-9)
    assert excess(near) <= excess(anew) + 1e-6
    assert (near.near_to == earlier.hash) == (near.moves != anew.moves)
    assert solved(later, less, LIMITS, earlier) == near


def excess(plan: Plan) -> float:
    return sum(o.excess for o in plan.outside)


def test_a_plan_for_a_cluster_that_changed_is_used_as_far_as_it_goes() -> None:
    rows = [Row(replicas=(1,), load=(2.0, 1.0)) for _ in range(12)]
    earlier = solved(cluster([broker(1), broker(2), broker(3)], rows), goals(0.01), LIMITS)
    assert earlier is not None
    without_third = cluster([broker(1), broker(2)], rows[:9])
    plan = solved(without_third, goals(0.01), LIMITS, earlier)
    assert plan is not None
    assert not evaluate(without_third, goals(0.01), plan.moves).violations
    assert {b for m in plan.moves for b in m.replicas_after} == {2}


def test_a_much_better_plan_replaces_the_earlier_one() -> None:
    rows = [Row(replicas=(1,), load=(2.0, 1.0)) for _ in range(12)]
    brokers = [broker(1), broker(2), broker(3)]
    one = goals(0.01).model_copy(
        update={"budgets": goals(0.01).budgets.model_copy(update={"replica_moves": 1})}
    )
    earlier = solved(cluster(brokers, rows), one, LIMITS)
    anew = solved(cluster(brokers, rows), goals(0.01), LIMITS)
    plan = solved(cluster(brokers, rows), goals(0.01), LIMITS, earlier)
    assert earlier is not None
    assert anew is not None
    assert plan is not None
    assert len(earlier.moves) == 1
    assert len(plan.moves) == len(anew.moves) == 8
    assert plan.objective == pytest.approx(anew.objective)
