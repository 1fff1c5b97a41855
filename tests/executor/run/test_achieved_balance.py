"""Planned against achieved, judged by the evaluator that judges plans."""

from pathlib import Path

import pytest

from executor.executor import Executor
from executor.journal.run_history import past_run
from executor.run.operator_control import Steering
from executor.run.run_outcome import recounted
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan, read_plan, write_plan
from model.run import MoveState, RunReport, RunState
from solver.replication.replication_plan import replication_plan
from solver.solve import solve
from tests.support.control.loop_parts import MB, cluster
from tests.support.control.simulated_tasks import TOPIC, SimulatedTask
from tests.support.executor.simulated_runs import run_until_stopped
from tests.support.lab.simulated_clusters import simulated_of

GOALS = Goals()
SNAPSHOT = cluster([1] * 6, [40 * MB, 30 * MB, 20 * MB, 10 * MB, 5 * MB, 5 * MB])


def planned() -> Plan:
    plan = solve(SNAPSHOT, GOALS, SolveLimits(work=2.0)).best
    assert plan is not None
    assert len(plan.moves) > 2
    return plan


def executed(folder: Path, plan: Plan, stop_after_s: float) -> RunReport:
    return _run(folder, plan, stop_after_s)[0]


def _run(folder: Path, plan: Plan, stop_after_s: float) -> tuple[RunReport, Executor]:
    simulated = simulated_of(SNAPSHOT)
    report, executor = run_until_stopped(simulated, plan, folder, stop_after_s)
    # Until partitions in shared storage may return to where they were.
    simulated.timing.pause(61.0)
    return report, executor


@pytest.mark.parametrize("stop_after_s", [1.0, 2.5, 100.0])
def test_the_achieved_balance_matches_the_evaluator(tmp_path: Path, stop_after_s: float) -> None:
    plan = planned()
    report = executed(tmp_path, plan, stop_after_s)
    pairs = zip(plan.moves, report.moves, strict=True)
    done = [move for move, reported in pairs if reported.state is MoveState.DONE]
    assert (len(done) == len(plan.moves)) == (stop_after_s == 100.0)
    past = past_run(tmp_path, plan.cluster_id)
    assert recounted(plan, past.moves) == report.brokers
    evaluation = evaluate(SNAPSHOT, GOALS, done)
    for broker, change in zip(report.brokers, plan.brokers, strict=True):
        assert (broker.before, broker.planned) == (change.before, change.after)
        assert broker.achieved == pytest.approx(evaluation.loads[broker.id], abs=1.0)
        assert set(broker.deviation_achieved) == set(change.deviation_after)
        for dimension, deviation in broker.deviation_achieved.items():
            by_evaluator = evaluation.deviations[dimension][broker.id]
            assert deviation == pytest.approx(by_evaluator, abs=1e-6)


def test_an_older_plan_keeps_its_hash_and_reports_what_it_has(tmp_path: Path) -> None:
    """Its partitions' loads are not in it: only a run that did all can be judged."""
    unknown: dict[str, object] = {"leader_load": {}, "follower_load": {}}
    moves = tuple(m.model_copy(update=unknown) for m in planned().moves)
    old = planned().model_copy(update={"schema_version": "1.1", "moves": moves}).seal()
    assert b"leader_load" not in old.model_dump_json().encode()
    write_plan(tmp_path / "plan.json", old)
    plan = read_plan(tmp_path / "plan.json")
    halfway = executed(tmp_path / "one", plan, 2.5)
    assert (halfway.state, halfway.brokers) == (RunState.STOPPED, ())
    whole = executed(tmp_path / "two", plan, 100.0)
    assert [b.achieved for b in whole.brokers] == [b.after for b in plan.brokers]


@pytest.mark.parametrize("stop_after_s", [1.0, 2.5, 100.0])
def test_a_rollback_plan_starts_from_the_present_loads(tmp_path: Path, stop_after_s: float) -> None:
    plan = planned()
    report, executor = _run(tmp_path, plan, stop_after_s)
    pairs = zip(plan.moves, report.moves, strict=True)
    done = [move for move, reported in pairs if reported.state is MoveState.DONE]
    back, left = executor.plan_rollback(tmp_path, None)
    assert (len(back.moves), left) == (len(done), [])
    now, first = evaluate(SNAPSHOT, GOALS, done), evaluate(SNAPSHOT, GOALS, ())
    assert back.objective_before == pytest.approx(now.objective - now.prices, abs=1e-6)
    assert back.objective == pytest.approx(first.objective)
    for broker, change in zip(back.brokers, plan.brokers, strict=True):
        assert broker.replicas_after == change.replicas_before
        gained = sum((broker.id in m.added) - (broker.id in m.removed) for m in done)
        assert broker.replicas_before == change.replicas_before + gained
        assert broker.before == pytest.approx(now.loads[broker.id], abs=1.0)
        assert broker.after == pytest.approx(first.loads[broker.id], abs=1.0)
        for key, deviation in broker.deviation_before.items():
            at_once = now.deviations[key][broker.id]
            assert deviation == pytest.approx(at_once, abs=1e-6)
            before = first.deviations[key][broker.id]
            assert broker.deviation_after[key] == pytest.approx(before, abs=1e-6)


def test_a_dimension_that_counts_only_at_the_end_is_reported(tmp_path: Path) -> None:
    at = SimulatedTask(folder=tmp_path, places=[(1, 2), (2, 3)], remove=())
    plan = replication_plan(at.snapshot(), GOALS, SolveLimits(), {TOPIC: 3})
    assert plan is not None
    new = {key for b in plan.brokers for key in {*b.deviation_after} - {*b.deviation_before}}
    assert new
    executor = at.executor()
    report = executor.execute(
        plan, journal_dir=tmp_path, observe=lambda _: None, steering=Steering()
    )
    assert report.state is RunState.DONE
    assert new <= {key for broker in report.brokers for key in broker.deviation_achieved}
    back, left = executor.plan_rollback(tmp_path, None)
    assert (len(back.moves), left) == (len(plan.moves), [])
