"""The plans of all efforts beside each other."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from control.planning.effort_stages import (
    KEPT,
    OPTIMAL,
    EffortStage,
    StageInputs,
    solve_stages,
    stage_of,
)
from control.planning.plan_gain import PlanGain
from model.goals.effort import Effort
from model.goals.goals import Budgets, Goals, SolveLimits
from model.plan.plan import Move, Plan, PlanStatus
from model.snapshot.file import read_snapshot
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve
from tests.support.control.loop_parts import EASY, MB, cluster, one_of_twelve_dead
from tests.support.paths import FIXTURES

REPLICATED = read_snapshot(FIXTURES / "replicated.json.gz")
LIMITS = SolveLimits(seed=0)


@functools.cache
def remembered(replica_moves: int | None, work: float) -> Result:
    """The plan of the replicated cluster; solved once for all tests."""
    goals = EASY.model_copy(update={"budgets": Budgets(replica_moves=replica_moves)})
    return solve(REPLICATED, goals, SolveLimits(work=work))


def planner(
    snapshot: Snapshot,
    goals: Goals,
    limits: SolveLimits,
    observer: SolveObserver,
    earlier: Plan | None = None,
) -> Result:
    if snapshot is REPLICATED:
        return remembered(goals.budgets.replica_moves, limits.work)
    return solve(snapshot, goals, limits, observer, earlier)


def inputs(snapshot: Snapshot = REPLICATED, **changes: Any) -> StageInputs:
    usual: dict[str, Any] = {
        "snapshot": snapshot,
        "goals": EASY,
        "limits": LIMITS,
        "planner": planner,
        "duration": lambda plan: float(len(plan.moves)),
    }
    return StageInputs(**(usual | changes))


@pytest.fixture(scope="module")
def stages() -> tuple[EffortStage, ...]:
    return solve_stages(inputs(), SolveObserver())


@pytest.mark.slow
def test_each_stage_gains_more_and_costs_more(stages: tuple[EffortStage, ...]) -> None:
    quick, good, best = stages
    assert [s.effort for s in stages] == list(Effort)
    assert (quick.replica_moves, quick.bytes_to_copy) == (0, 0)
    assert quick.leader_changes > 0
    assert good.replica_moves > 0
    assert good.bytes_to_copy
    assert quick.gain is not None
    assert good.gain is not None
    assert best.gain is not None
    assert 0 < quick.gain.gain < good.gain.gain <= best.gain.gain
    assert good.outside == ()
    assert good.plan is not None
    assert good.seconds == len(good.plan.moves)


def test_an_optimal_plan_is_not_searched_again(stages: tuple[EffortStage, ...]) -> None:
    _, good, best = stages
    assert good.status is PlanStatus.OPTIMAL
    assert best == replace(good, effort=Effort.BEST, notes=(OPTIMAL,))


def test_stages_stop_with_the_observer() -> None:
    class Stopping(SolveObserver):
        def stops(self) -> bool:
            return True

    (stage,) = solve_stages(inputs(), Stopping())
    assert stage.effort is Effort.QUICK


def test_only_the_wanted_efforts_are_solved() -> None:
    chosen = inputs(efforts=(Effort.GOOD, Effort.QUICK))
    found = solve_stages(chosen, SolveObserver())
    assert [s.effort for s in found] == [Effort.QUICK, Effort.GOOD]


Canned = Callable[[Snapshot, Goals, SolveLimits, SolveObserver, Plan | None], Result]


def canned(good: Result, best: Result) -> Canned:
    """A planner that returns one result with the budget of `good`, and another beyond."""

    def plan(
        _snapshot: Snapshot,
        _goals: Goals,
        limits: SolveLimits,
        *_others: SolveObserver | Plan | None,
    ) -> Result:
        return best if limits.work > 20 else good

    return plan


def test_best_keeps_the_plan_of_good_unless_it_finds_a_better_one() -> None:
    skewed = cluster([2] * 8, [MB] * 8)
    balanced = solve(skewed, EASY, LIMITS)
    improved = replace(balanced, status=PlanStatus.IMPROVED)
    idle_goals = Goals.model_validate({"excluded_topics": [".*"]}, strict=False)
    idle = replace(solve(skewed, idle_goals, LIMITS), status=PlanStatus.IMPROVED)
    efforts = (Effort.GOOD, Effort.BEST)
    worse = inputs(skewed, planner=canned(improved, idle), efforts=efforts)
    good, best = solve_stages(worse, SolveObserver())
    assert best == replace(good, effort=Effort.BEST, notes=(KEPT,))
    better = inputs(skewed, planner=canned(idle, improved), efforts=efforts)
    _, best = solve_stages(better, SolveObserver())
    assert best.plan == balanced.best


def test_without_a_plan_a_stage_has_the_reasons() -> None:
    (quick, good, _best) = solve_stages(
        inputs(one_of_twelve_dead(), limits=SolveLimits(work=2.0)), SolveObserver()
    )
    assert "22 partitions that would have to leave broker 11 (dead) stay" in quick.notes[0]
    assert good.replica_moves == 22
    nothing = Result(
        status=PlanStatus.INFEASIBLE, best=None, objective=None, bound=None, work=0, seconds=0
    )
    stage = stage_of(Effort.GOOD, nothing)
    assert (stage.gain, stage.outside, stage.notes) == (None, None, ("no reason known",))


# ---- gains


def with_sizes(plan: Plan, size: int | None) -> Plan:
    def sized(move: Move) -> Move:
        return move.model_copy(update={"bytes_to_copy": size})

    return plan.model_copy(update={"moves": tuple(map(sized, plan.moves))})


def test_copies_are_paid_for_what_they_add_to_leader_changes() -> None:
    plan = remembered(None, 20.0).best
    assert plan is not None
    assert plan.leaders_only is not None
    gain = PlanGain.of(plan)
    size = plan.bytes_to_copy
    assert size
    assert gain.gain == plan.objective_before - plan.objective
    assert gain.free == plan.objective_before - plan.leaders_only.objective
    assert gain.per_byte == pytest.approx((plan.leaders_only.objective - plan.objective) / size)
    assert gain.per_byte_text.endswith("% per GB")
    assert "free, by leader changes alone; the copies gain" in gain.words


def test_a_plan_that_copies_nothing_is_free_and_unknown_sizes_are_unknown() -> None:
    plan = solve(cluster([2] * 8, [MB] * 8), EASY, LIMITS).best
    assert plan is not None
    free = PlanGain.of(plan)
    assert (free.free, free.per_byte, free.per_byte_text) == (free.gain, None, "free")
    unknown = PlanGain.of(with_sizes(plan, None))
    assert (unknown.free, unknown.per_byte, unknown.per_byte_text) == (0.0, None, "-")
    small = PlanGain.of(with_sizes(plan, 1000))
    assert small.per_byte_text.endswith("% for 5.00 kB")
