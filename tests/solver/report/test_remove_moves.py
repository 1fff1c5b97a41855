"""Removing moves from a plan: the others stay, and what is proved still holds."""

import random

import pytest

from control.cli.plan_claims import claims
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits, Stay
from model.plan.plan import Move, Plan
from model.snapshot.snapshot import Snapshot
from solver.report.remove_moves import without_removed_moves
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals
from tests.support.solver.hard_clusters import hard, with_directories

LIMITS = SolveLimits(work=1.0)


def skewed(dice: random.Random) -> Snapshot:
    """Most replicas on broker 1; capacities and racks that may rule moves out."""
    size = dice.randint(3, 5)
    capacity = dice.choice([None, None, 60.0])
    members = [broker(i + 1, "abc"[i % 3], capacity=capacity) for i in range(size)]
    rows = []
    for _ in range(dice.randint(6, 10)):
        rf = dice.randint(1, 2)
        others = dice.sample(range(2, size + 1), rf)
        replicas = tuple([1, *others][:rf] if dice.random() < 0.8 else others)
        load = dice.paretovariate(1.2), dice.paretovariate(1.2)
        rows.append(Row(replicas=replicas, load=load))
    return cluster(members, rows)


def staying(given_goals: Goals, moves: list[Move]) -> Goals:
    stay = tuple(Stay(topic=m.topic, partitions=(m.partition,)) for m in moves)
    return given_goals.model_copy(update={"stay": (*given_goals.stay, *stay)})


def edited_plan(snapshot: Snapshot, less: Goals, plan: Plan, rest: list[Move]) -> Plan | None:
    """The plan of the other moves; None, and only then, where they break a rule."""
    edited = without_removed_moves(snapshot, less, LIMITS, plan)
    if evaluate(snapshot, less, rest).violations:
        assert edited is None
        return None
    assert edited is not None
    assert edited.best is not None
    return edited.best


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("objective", ["variance", "band"])
@pytest.mark.slow
def test_the_other_moves_stay_and_the_bound_still_holds(seed: int, objective: str) -> None:
    dice = random.Random(seed)
    snapshot, given_goals = skewed(dice), goals(0.01, objective=objective)
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    assert len(plan.moves) > 1
    removed = dice.sample(plan.moves, dice.randint(1, len(plan.moves) - 1))
    less = staying(given_goals, removed)
    rest = [m for m in plan.moves if m not in removed]
    edited = edited_plan(snapshot, less, plan, rest)
    if edited is None:
        return
    remaining = {m.id: m.replicas_after for m in rest}
    assert {m.id: m.replicas_after for m in edited.moves} == remaining
    assert not evaluate(snapshot, less, edited.moves).violations
    best = solve(snapshot, less, LIMITS).best
    assert best is not None
    assert edited.bound <= best.objective * (1 + 1e-9)


def broken(dice: random.Random) -> Snapshot:
    """ReplicationFactor that share racks, and brokers over their capacity."""
    size = dice.randint(3, 6)
    capacity = dice.choice([None, None, 25.0, 40.0])
    members = [broker(i, "ab"[i % 2], capacity=capacity) for i in range(1, size + 1)]
    rows = []
    for _ in range(dice.randint(4, 10)):
        rf = min(dice.randint(1, 3), size)
        step = 2 if rf == 2 and dice.random() < 0.6 else 1
        replicas = tuple(dice.sample(range(1, size + 1, step), rf))
        load = dice.paretovariate(1.1), dice.paretovariate(1.1)
        rows.append(Row(replicas=replicas, load=load))
    return cluster(members, rows)


@pytest.mark.parametrize("seed", [0, 6, 15, 37, 54, 59, 94, 121])
def test_an_edited_plan_that_repairs_less_does_not_keep_the_bound(seed: int) -> None:
    dice = random.Random(seed)
    snapshot = broken(dice)
    price, objective = dice.choice([0.01, 0.1, 0.5]), dice.choice(["variance", "band"])
    given_goals = goals(price, objective=objective)
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    removed = dice.sample(plan.moves, dice.randint(1, len(plan.moves) - 1))
    less = staying(given_goals, removed)
    edited = without_removed_moves(snapshot, less, LIMITS, plan)
    assert edited is not None
    assert edited.best is not None
    assert not [c for c in claims(edited.best, snapshot) if c.holds is False]
    best = solve(snapshot, less, LIMITS).best
    assert best is not None
    assert edited.best.bound <= best.objective * (1 + 1e-9)
    left = {v.id: v.reason for v in plan.rack_violations if v.reason}
    for violation in edited.best.rack_violations:
        if violation.id in left:
            assert violation.reason == left[violation.id]


@pytest.mark.parametrize("seed", [11, 13, 19])
def test_the_other_moves_keep_their_log_directories(seed: int) -> None:
    snapshot, given_goals = hard(seed, most_brokers=5, most_rows=25)
    snapshot = with_directories(snapshot, seed)
    given_goals = given_goals.model_copy(update={"level_directories": True})
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    assert any(m.log_dirs_after for m in plan.moves)
    removed = random.Random(seed).choice(plan.moves)
    less = staying(plan.goals, [removed])
    rest = [m for m in plan.moves if m is not removed]
    edited = edited_plan(snapshot, less, plan, rest)
    if edited is None:
        return
    assert not [c for c in claims(edited, snapshot) if c.holds is False]
    lie = {m.id: m.log_dirs_after for m in rest}
    assert {m.id: m.log_dirs_after for m in edited.moves} == lie


def test_removing_the_only_move_leaves_no_plan() -> None:
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2)
    given_goals = goals(0.01)
    plan = solve(snapshot, given_goals, LIMITS).best
    assert plan is not None
    less = staying(given_goals, list(plan.moves))
    assert without_removed_moves(snapshot, less, LIMITS, plan) is None
