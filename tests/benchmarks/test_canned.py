"""The canned loop for measurements of the screen."""

import itertools

import pytest

from benchmarks.canned import GOALS, CannedPast, ready, seconds, snapshots
from control.loop.view import LoopView
from model.goals.goals import SolveLimits
from model.plan.plan import Plan
from model.run import MoveState, RunState
from solver.solve import solve

BROKERS, PARTITIONS = 6, 60


@pytest.fixture(scope="module")
def plan() -> Plan:
    best = solve(snapshots(BROKERS, PARTITIONS)[0], GOALS, SolveLimits(work=0.5)).best
    assert best is not None
    return best


@pytest.fixture(scope="module")
def views(plan: Plan) -> list[LoopView]:
    states = snapshots(BROKERS, PARTITIONS)
    return list(itertools.islice(seconds(ready(states[0], plan), states), 12))


def test_each_second_of_a_run_completes_another_move(views: list[LoopView]) -> None:
    done = [view.run.count(MoveState.DONE) for view in views if view.run is not None]
    assert done[:3] == [0, 1, 2]
    assert len(done) == len(views)


def test_each_second_has_other_loads_on_the_same_brokers(views: list[LoopView]) -> None:
    loads = [view.evaluation.loads for view in views if view.evaluation is not None]
    assert all(one != other for one, other in itertools.pairwise(loads))
    assert {tuple(load) for load in loads} == {tuple(loads[0])}


def test_a_previous_run_is_done_at_the_end_of_its_replay(plan: Plan) -> None:
    past = CannedPast(plan)
    (run, *_) = past.runs()
    replay = past.replay(run.run_id)
    assert run.state is RunState.DONE
    assert replay.at(len(replay) - 1).count(MoveState.DONE) == len(run.moves)
