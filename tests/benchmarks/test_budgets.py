"""The benchmark of budgets: what it plans within, on a small instance."""

from benchmarks.budgets import budgets_of
from benchmarks.instances import build, goals_of, small
from benchmarks.shapes import shape_of
from control.planning.validate import refuse_broken
from model.goals.goals import SolveLimits
from solver.solve import solve


def test_budgets_are_shares_of_what_a_plan_without_them_changes() -> None:
    shape = small(shape_of("9x500-rf3"))
    snapshot = build(shape, 1)
    found = dict(budgets_of(snapshot, shape, 1.0))
    moves = [b.replica_moves for name, b in found.items() if "replica moves" in name]
    assert moves == sorted(moves, key=lambda most: -(most or 0))
    assert found["no replica moves"].replica_moves == 0
    goals = goals_of(shape).model_copy(update={"budgets": found["1/5 of the replica moves"]})
    plan = solve(snapshot, goals, SolveLimits(work=1.0)).best
    assert plan is not None
    refuse_broken(snapshot, plan)
