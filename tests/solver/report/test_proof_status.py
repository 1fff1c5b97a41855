"""What a finished search is called, and what ended it."""

import pytest

from model.goals.goals import SolveLimits
from model.plan.plan import PlanStatus
from solver.problem.placement import Placement
from solver.problem.problem import Problem, compile_problem
from solver.report.proof_status import limited_by, verdict
from solver.search.observer import SolveObserver
from solver.search.search import Search
from solver.solve import NO_GAIN, OPEN, solve
from tests.support.solver.exact_oracle import Row, broker, cluster, goals


@pytest.fixture
def problem() -> Problem:
    """Two partitions on the first of two brokers: F is 4."""
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2)
    return compile_problem(snapshot, goals(0.5))


def searched(problem: Problem, bound: float, **known: object) -> Search:
    search = Search(problem=problem, limits=SolveLimits(work=2.0), observer=SolveObserver())
    search.offer(Placement.home(problem))
    search.prove(bound)
    for name, value in known.items():
        setattr(search, name, value)
    return search


@pytest.mark.parametrize(
    ("bound", "known", "status", "ended"),
    [
        (4.0, {}, PlanStatus.NO_IMPROVEMENT, "proved optimal"),
        (
            3.6,
            {"work": 2.0},
            PlanStatus.NO_IMPROVEMENT,
            "search budget exhausted (2 units of work)",
        ),
        (1.0, {"work": 2.0}, PlanStatus.NONE_IN_TIME, "search budget exhausted (2 units of work)"),
        (
            3.6,
            {"work": 1.0, "ended": "exact model ended with the gap open"},
            PlanStatus.NO_IMPROVEMENT,
            "exact model ended with the gap open",
        ),
        (
            3.6,
            {"work": 1.0},
            PlanStatus.NO_IMPROVEMENT,
            "no step of the search closes the gap further",
        ),
        (
            3.6,
            {"work": 2.0, "repair_cut": True},
            PlanStatus.NO_IMPROVEMENT,
            "search budget for repairs exhausted, a share of 2 units of work",
        ),
        (1.0, {"stopped": True}, PlanStatus.STOPPED, "stopped"),
        (4.0, {"stopped": True}, PlanStatus.NO_IMPROVEMENT, "proved optimal"),
    ],
)
def test_the_status_of_an_empty_plan_follows_the_proof(
    problem: Problem, bound: float, known: dict[str, object], status: PlanStatus, ended: str
) -> None:
    search = searched(problem, bound, **known)
    assert verdict(search, Placement.home(problem))[0] is status
    assert limited_by(search) == ended


def test_a_gap_below_the_cost_of_a_move_is_good_enough(problem: Problem) -> None:
    _, reasons = verdict(searched(problem, 3.6), Placement.home(problem))
    assert reasons[0] == (
        "at most 0.4 can still be gained, less than the cost of one move, 0.5 of F"
    )


def test_a_remaining_gap_is_reported_with_objective_and_bound(problem: Problem) -> None:
    _, reasons = verdict(searched(problem, 1.0), Placement.home(problem))
    assert reasons[0] == (
        "no better plan was found within 2 units of work; F is 4 and the "
        "proved bound is 1; raise the search budget to search further"
    )


@pytest.mark.parametrize(
    ("replicas", "ended"), [(1, f"search for a better bound {OPEN}"), (2, NO_GAIN)]
)
def test_a_search_that_ends_early_says_which_part_of_it_did(replicas: int, ended: str) -> None:
    """Partitions without load leave nothing to search for once limits are repaired."""
    at = [tuple((b + k) % 12 for k in range(replicas)) for b in range(12)]
    rows = [Row(replicas=held, load=(0.0, 0.0)) for held in at for _ in range(200)]
    most = 160 * replicas
    state = cluster([broker(b) for b in range(16)], rows)
    result = solve(state, goals(1e-3, replicas_per_broker=most), SolveLimits(work=0.5))
    assert result.limited_by == ended
    assert result.work < 0.5
