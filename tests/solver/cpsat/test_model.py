"""Invariants of the exact model: hints, symmetry, tangents."""

import pytest
from ortools.sat.python import cp_model

from model.goals.goals import Goal, Goals, SolveLimits
from model.snapshot.snapshot import BrokerState, Count, Snapshot
from solver.cpsat.model import ExactModel
from solver.cpsat.objective import MEAN_UNITS, WholeLoads
from solver.problem.placement import Placement, objective
from solver.problem.problem import Problem, compile_problem
from solver.solve import solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals
from tests.support.solver.zipf_clusters import synthetic

EQUALS = cluster(
    [broker(i, r) for i, r in ((1, "a"), (2, "b"), (3, "c"))], [Row(replicas=(1,))] * 8
)
PAIRS = cluster([broker(i, "aabb"[i - 1]) for i in (1, 2, 3, 4)], [Row(replicas=(1, 2))] * 3)
CLUSTERS = {
    "equal rows and brokers": (EQUALS, goals()),
    "pairs in one rack": (PAIRS, goals()),
    "uneven": (synthetic(3, 30, seed=1), Goals()),
    "three replicas": (synthetic(6, 20, rf=3, seed=1), Goals()),
}


def built_model(snapshot: Snapshot, given_goals: Goals) -> tuple[Problem, ExactModel]:
    problem = compile_problem(snapshot, given_goals)
    most = objective(problem, Placement.home(problem))
    return problem, ExactModel(problem, most)


@pytest.mark.parametrize("case", CLUSTERS.values(), ids=CLUSTERS.keys())
def test_a_hint_is_complete_and_feasible(case: tuple[Snapshot, Goals]) -> None:
    """Every variable has one value, and fixing them all leaves a solution."""
    problem, model = built_model(*case)
    model.hint(Placement.home(problem))
    proto = model.variables.model.proto
    assert sorted(proto.solution_hint.vars) == list(range(len(proto.variables)))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.fix_variables_to_their_hinted_value = True
    assert solver.solve(model.variables.model) == cp_model.OPTIMAL


@pytest.mark.parametrize("case", CLUSTERS.values(), ids=CLUSTERS.keys())
def test_the_model_is_valid(case: tuple[Snapshot, Goals]) -> None:
    _, model = built_model(*case)
    assert model.variables.model.validate() == ""


def test_variables_have_readable_names() -> None:
    _, model = built_model(EQUALS, goals())
    names = [v.name for v in model.variables.on.values()]
    assert names[:3] == ["on[orders-0,1]", "on[orders-0,2]", "on[orders-0,3]"]


def test_fixed_rows_have_no_variables() -> None:
    """An excluded topic stays, so the model needs nothing for it."""
    _, model = built_model(EQUALS, goals(excluded_topics=("orders",)))
    assert model.variables.rows == ()


def test_equivalent_placements_give_the_same_hint() -> None:
    """Exchanging equal rows and equal brokers does not change the hint."""
    problem, model = built_model(EQUALS, goals())
    hints = set()
    for leaders in ([0, 0, 0, 1, 1, 1, 2, 2], [2, 2, 1, 2, 0, 1, 0, 0]):
        on = problem.home.copy()
        on[:] = False
        on[range(8), leaders] = True
        leader = problem.leader.copy()
        leader[:] = leaders
        model.hint(Placement.of(on, leader, 1))
        hints.add(tuple(model.variables.model.proto.solution_hint.values))
    assert len(hints) == 1


@pytest.mark.parametrize("deviation", [-0.9, -0.01, 0.0, 1e-5, 0.3, 1.7])
def test_tangents_never_exceed_the_square(deviation: float) -> None:
    """The tangent added at a deviation nearly touches the square there."""
    _, model = built_model(*CLUSTERS["uneven"])
    part = model.objective
    (term, *_) = part.terms.values()
    assert not term.exact
    term.add_tangent(deviation)
    for at in (-1.0, -0.3, -0.001, 0.0, 0.0004, 0.11, 0.8, 2.0, deviation):
        units = round(at * MEAN_UNITS)
        lines = (slope * units + h for slope, h in term.tangents.items())
        square = term.weight * (units / MEAN_UNITS) ** 2 * part.units
        highest = max(lines)
        assert highest <= square
        if at == deviation:
            assert highest >= square - 1e-6 * part.units


def test_equal_loads_have_lines_through_all_squares() -> None:
    """Eight equal rows add up to nine loads, so no line has to be added later."""
    problem, model = built_model(EQUALS, goals())
    part = model.objective
    for term in part.terms.values():
        assert len(term.attainable) == 9
        for at in term.attainable:
            square = term.weight * (at / MEAN_UNITS) ** 2 * part.units
            highest = max(slope * at + h for slope, h in term.tangents.items())
            assert square - 1e-9 * part.units <= highest <= square
    assert not part.refine(Placement.home(problem))


@pytest.mark.parametrize(
    ("loads", "low", "high", "wanted"),
    [
        ([4, 4, 6], -9, 5, [-8, -6, -4, -2, 0, 2, 4]),
        ([4, 4, 6], -10, 4, [-10, -8, -6, -4, -2, 0, 2, 4]),
        ([0, 3], 0, 3, [2]),
        ([0], -100, 100, [-10]),
        ([], -100, 100, [-10]),
    ],
)
def test_attainable_deviations(loads: list[int], low: int, high: int, wanted: list[int]) -> None:
    """Multiples of the greatest common divisor of the loads, from -10 up."""
    whole = WholeLoads(units=loads, start=-10, error=0.0)
    assert [*whole.attainable(low, high)] == wanted


@pytest.mark.search
def test_equal_loads_are_proved() -> None:
    """One of 12 brokers is dead: 4.4 replicas and 2.2 leaders each leave a large imbalance.

    Tangents alone proved two thirds of it within 20 units of work.
    """
    ring = [Row(replicas=(i % 12, (i + 1) % 12)) for i in range(24)]
    brokers = [
        broker(b, state=BrokerState.DEAD if b == 11 else BrokerState.ALIVE) for b in range(12)
    ]
    result = solve(cluster(brokers, ring), goals(), SolveLimits(work=4.0))
    assert result.objective is not None
    assert result.bound is not None
    assert result.objective - result.bound <= 1e-3 * result.objective


def test_the_secants_of_a_topic_are_posted_on_its_count() -> None:
    """A count of n rows has n lines; over the rows they would be n x n terms."""
    given_goals = Goals(balance=(Goal(resource=Count.TOPIC_LEADERS),))
    brokers, terms = [broker(b) for b in (1, 2, 3)], []
    for rows in (50, 200):
        _, model = built_model(cluster(brokers, [Row(replicas=(1,))] * rows), given_goals)
        posted = model.variables.model.proto.constraints
        terms.append(sum(len(c.linear.vars) for c in posted))
    assert terms[1] < 6 * terms[0]
