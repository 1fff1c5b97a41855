"""What a finished search is called, and what ended it."""

import pytest

from model.goals.goals import SolveLimits
from model.plan.plan import PlanStatus
from solver.problem.placement import Placement
from solver.problem.problem import Problem, compile_problem
from solver.report.proof_status import limited_by, verdict
from solver.search.observer import SolveObserver
from solver.search.search import Search
from tests.support.solver.exact_oracle import Row, broker, cluster, goals


@pytest.fixture
def problem() -> Problem:
    """Two partitions on the first of two brokers: F is 4."""
    snapshot = cluster([broker(1), broker(2)], [Row(replicas=(1,))] * 2)
    return compile_problem(snapshot, goals(0.5))


def searched(problem: Problem, bound: float, **known: object) -> Search:
    search = Search(
        problem=problem, limits=SolveLimits(work=2.0), observer=SolveObserver()
    )
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
        (
            1.0,
            {"work": 2.0},
            PlanStatus.NONE_IN_TIME,
            "search budget exhausted (2 units of work)",
        ),
        (
            3.6,
            {"work": 1.0},
            PlanStatus.NO_IMPROVEMENT,
            "no step of the search closes the gap further",
        ),
        (1.0, {"stopped": True}, PlanStatus.STOPPED, "stopped"),
        (4.0, {"stopped": True}, PlanStatus.NO_IMPROVEMENT, "proved optimal"),
    ],
)
def test_the_status_of_an_empty_plan_follows_the_proof(
    problem: Problem,
    bound: float,
    known: dict[str, object],
    status: PlanStatus,
    ended: str,
) -> None:
    search = searched(problem, bound, **known)
    assert verdict(search, Placement.home(problem))[0] is status
    assert limited_by(search) == ended


def test_a_gap_under_the_price_of_a_move_is_no_reason_to_go_on(
    problem: Problem,
) -> None:
    _, reasons = verdict(searched(problem, 3.6), Placement.home(problem))
    assert reasons[0] == (
        "all that may still be gained, 0.4, is less than the price of one move, 0.5 "
        "of F"
    )


def test_a_gap_that_is_left_is_told_with_both_ends(problem: Problem) -> None:
    _, reasons = verdict(searched(problem, 1.0), Placement.home(problem))
    assert reasons[0] == (
        "no better plan was found within 2 units of work; F is 4, and down to 1 none "
        "is ruled out: allow more work"
    )
