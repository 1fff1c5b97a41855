"""A solve stops on request, even during CP-SAT, and returns its best plan so far."""

import math

import pytest
from ortools.sat.python import cp_model

from lab.synthetic.shape import ClusterShape
from lab.time_lapse.varying_loads import synthetic_start
from model.goals.goals import Goals, ObjectiveKind, Pin, SolveLimits
from model.ids import BrokerId
from model.names import Names
from model.plan.plan import PlanStatus
from model.snapshot.snapshot import BrokerState, Snapshot
from solver.budget import Budget
from solver.cpsat import stopping
from solver.cpsat.model import new_solver, solve_exactly
from solver.cpsat.stopping import proved_bound, solve_stoppable
from solver.problem.placement import Placement
from solver.problem.problem import compile_problem
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.solve import solve
from tests.support.solver.zipf_clusters import synthetic

HARD = synthetic(8, 80, seed=2)
"""A cluster whose exact model is not solved within `LIMITS`, which take minutes."""
LIMITS = SolveLimits(work=20.0)


class Asking(SolveObserver):
    """Asks to stop after a number of plans."""

    def __init__(self, after: int) -> None:
        self._left = after

    def on_solution(self, objective: float, moves: int) -> None:
        self._left -= 1

    def stops(self) -> bool:
        return self._left <= 0


@pytest.mark.parametrize("objective", ObjectiveKind)
@pytest.mark.parametrize("better", [0, 2])
def test_the_exact_rounds_stop_with_the_best_plan_so_far(
    objective: ObjectiveKind, better: int
) -> None:
    goals = Goals(objective=objective)
    problem = compile_problem(HARD, goals)
    search = Search(problem=problem, limits=LIMITS, observer=Asking(after=1 + better))
    search.offer(Placement.home(problem))
    before = search.objective
    solve_exactly(search)
    assert search.stopped
    assert search.work < LIMITS.work / 10
    assert not search.proved
    assert search.objective < before or not better


def test_a_solve_stopped_before_any_placement_reports_that() -> None:
    """It claims no infeasibility and spends nothing on explaining one."""
    result = solve(
        _draining(synthetic(12, 200, seed=2)),
        Goals(objective=ObjectiveKind.BAND),
        LIMITS,
        Asking(after=0),
    )
    assert result.status is PlanStatus.STOPPED
    assert result.best is None
    assert result.reasons == ("stopped before a placement that keeps every rule was found",)


def _draining(snapshot: Snapshot) -> Snapshot:
    """The snapshot with its second broker draining."""
    brokers = list(snapshot.header.brokers)
    brokers[1] = brokers[1].model_copy(update={"state": BrokerState.DRAINING})
    header = snapshot.header.model_copy(update={"brokers": tuple(brokers)})
    return Snapshot(header, snapshot.partitions)


def test_an_observer_that_never_stops_does_not_change_the_plan() -> None:
    snapshot = synthetic(3, 12, seed=1)
    plans = [
        solve(snapshot, Goals(), SolveLimits(work=2.0), observer).best
        for observer in (None, Asking(after=10**9))
    ]
    assert plans[0] is not None
    assert plans[0] == plans[1]


def test_a_hint_that_crashes_presolve_is_dropped() -> None:
    """Two rows on one of five brokers each, with balanced topic counts."""
    model = cp_model.CpModel()
    takes = [model.new_bool_var("") for _ in range(14)]
    costs = [model.new_int_var(0, 178120883699710, "") for _ in range(3)]
    model.add_exactly_one(takes[:5])
    model.add(sum(takes[5:9]) == 3)
    model.add_exactly_one(takes[9:])
    for cause, effect in ((10, 6), (12, 7), (13, 8)):
        model.add_implication(takes[cause], takes[effect])
    steep = 103293009031623, 131758143395159
    lines = (15087742892259, -549755813887), (59190375961941, 43552877255795), steep
    for first, second in ((0, 9), (2, 11)):
        model.add(-steep[0] * takes[first] - steep[0] * takes[second] >= -steep[1])
    for cost, first, second in zip(costs, (1, 3, 4), (10, 12, 13), strict=True):
        for slope, height in lines:
            model.add(cost - slope * takes[first] - slope * takes[second] >= -height)
    model.minimize(sum(costs) - takes[5])
    hinted = [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0]
    for variable, value in zip(takes, hinted, strict=True):
        model.add_hint(variable, value)
    for cost, value in zip(costs, (15637498706146, *[549755813887] * 2), strict=True):
        model.add_hint(cost, value)
    budget = Budget(limits=SolveLimits(work=1.0))
    status = solve_stoppable(budget, new_solver(budget.limits, 1.0), model)
    assert status == cp_model.OPTIMAL


def test_a_solve_without_memory_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def solve(*_: object) -> cp_model.CpSolverStatus:
        raise MemoryError

    monkeypatch.setattr(cp_model.CpSolver, "solve", solve)
    budget = Budget(limits=SolveLimits(work=5.0))
    solver = new_solver(budget.limits, 1.0)
    assert solve_stoppable(budget, solver, cp_model.CpModel(), rate=2.0) == cp_model.UNKNOWN
    assert (budget.work, proved_bound(solver)) == (2.0, -math.inf)


SLOW = (ClusterShape(brokers=3, partitions=12, racks=3, rf=2, young=False), BrokerState.SLOW)
PINNED = (ClusterShape(brokers=4, partitions=12, racks=2, rf=2, young=False), BrokerState.DRAINING)
PINS = (Pin(topics=Names(prefix=("",)), brokers=(BrokerId(1), BrokerId(2))),)


@pytest.mark.parametrize(
    ("seed", "cluster", "goals"),
    [(seed, SLOW, Goals(relieve_slow=True)) for seed in (1, 26, 27)]
    + [(seed, PINNED, Goals(pins=PINS)) for seed in (6, 13)],
)
def test_sums_that_cannot_change_take_no_endless_propagation(
    seed: int,
    cluster: tuple[ClusterShape, BrokerState],
    goals: Goals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Counted, as CP-SAT's own limits do not count it: millions, seconds and gigabytes before."""
    shape, state = cluster
    start = synthetic_start(shape, 1_767_571_200_000, seed)
    first, *others = start.header.brokers
    brokers = (first.model_copy(update={"state": state}), *others)
    snapshot = Snapshot(start.header.model_copy(update={"brokers": brokers}), start.partitions)
    counts, shipped = [], stopping._solve

    def counted(
        solver: cp_model.CpSolver, model: cp_model.CpModel, found: stopping.Solutions
    ) -> cp_model.CpSolverStatus:
        status = shipped(solver, model, found)
        counts.append(solver.response_proto.num_integer_propagations)
        return status

    monkeypatch.setattr(stopping, "_solve", counted)
    solve(snapshot, goals, SolveLimits(work=0.1))
    assert 0 < sum(counts) < 1_000_000
