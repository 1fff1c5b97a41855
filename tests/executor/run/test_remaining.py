"""Violations that remain after a run, compared with the evaluator."""

from pathlib import Path

import pytest

from executor.executor import Executor
from executor.run.operator_control import Steering
from lab.simulated_cluster.faults import Faults
from lab.simulated_cluster.simulated_admin import SimulatedAdmin
from model.evaluate import evaluate
from model.goals.goals import SolveLimits
from model.plan.unplaceable import with_placeless_deferred
from model.run import MoveState
from model.snapshot.snapshot import BrokerState, StorageKind
from solver.solve import solve
from tests.support.executor.simulated_runs import run_until_stopped
from tests.support.lab.simulated_clusters import simulated_of
from tests.support.solver.exact_oracle import TOPIC, Row, broker, cluster, goals

GOALS = goals(rack_rule="spread")
SNAPSHOT = cluster(
    [broker(i, rack, capacity=8) for i, rack in enumerate("aabb", start=1)],
    [Row(replicas=(1, 2), load=(3.0, 1.0))] * 4,
    storage=StorageKind.REPLICATED,
)


@pytest.mark.parametrize("stop_after_s", [0.5, 2.5, 1000.0])
def test_remaining_violations_match_the_evaluator(tmp_path: Path, stop_after_s: float) -> None:
    plan = solve(SNAPSHOT, GOALS, SolveLimits(work=2.0)).best
    assert plan is not None
    assert plan.over_limit
    assert any(v.repaired for v in plan.rack_violations)
    simulated = simulated_of(SNAPSHOT)
    report, _ = run_until_stopped(simulated, plan, tmp_path, stop_after_s)
    pairs = zip(plan.moves, report.moves, strict=True)
    done = [move for move, reported in pairs if reported.state is MoveState.DONE]
    evaluation = evaluate(SNAPSHOT, GOALS, done)
    expected = {(o.broker, o.dimension): o.after for o in evaluation.over_limit if o.remains}
    reported = {(o.broker, o.dimension): o.after for o in report.over_limit}
    assert reported == pytest.approx(expected)
    left = {v.id for v in evaluation.rack_violations if not v.repaired}
    assert {v.id for v in report.rack_violations} == left
    assert bool(left) == (len(done) < len(plan.moves))


def test_partitions_that_cannot_leave_a_dead_broker_are_in_the_report(tmp_path: Path) -> None:
    dead = broker(3, state=BrokerState.DEAD)
    rows = [Row(replicas=(1,))] * 6
    snapshot = cluster([broker(1), broker(2), dead], [*rows, Row(replicas=(1, 2, 3))])
    given_goals = with_placeless_deferred(goals(), snapshot)
    plan = solve(snapshot, given_goals, SolveLimits(work=2.0)).best
    assert plan is not None
    assert plan.moves
    simulated = simulated_of(snapshot)
    simulated.kill(dead.id)
    executor = Executor(SimulatedAdmin(simulated, Faults()), timing=simulated.timing)
    report = executor.execute(
        plan, journal_dir=tmp_path, observe=lambda _: None, steering=Steering()
    )
    assert {m.state for m in report.moves} == {MoveState.DONE}
    assert [(s.topic, s.partitions) for s in report.deferred] == [(TOPIC, (6,))]
