"""A search ends at a small gap, but not before a proof had its share of the budget."""

import pytest

from model.goals.goals import GAP_SHARE, Goals, ObjectiveKind, SolveLimits
from model.plan.plan import VERSION_WITH_NOISE, PlanStatus
from solver.cpsat.model import solve_exactly
from solver.problem.placement import Placement
from solver.problem.problem import Problem, compile_problem
from solver.search.observer import SolveObserver
from solver.search.search import PROOF_SHARE, Search
from solver.solve import solve
from tests.support.solver.zipf_clusters import synthetic

GOALS = Goals(move_price=0.002)
DEAR = Goals(move_price=0.01)
SMALL = compile_problem(synthetic(3, 20), GOALS)


class Values(SolveObserver):
    """Keeps F of each plan found."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_solution(self, objective: float, moves: int) -> None:
        """A better plan was found."""
        self.values.append(objective)


def searched(gap: float, moves: int, work: float, problem: Problem = SMALL) -> Search:
    """A search with F = 10 and this gap, a share of F."""
    search = Search(problem=problem, limits=SolveLimits(work=20.0), work=work)
    search.best, search.moves = Placement.home(problem), moves
    search.objective, search.bound = 10.0, 10.0 * (1.0 - gap)
    return search


def test_ends_once_the_gap_is_small() -> None:
    done = PROOF_SHARE * 20.0
    assert searched(0.9 * GAP_SHARE, moves=3, work=done).near_enough
    assert not searched(1.1 * GAP_SHARE, moves=3, work=done).near_enough


def test_proves_on_within_the_first_share() -> None:
    early = searched(0.9 * GAP_SHARE, moves=3, work=0.9 * PROOF_SHARE * 20.0)
    assert not early.near_enough
    early.bound = early.objective
    assert early.near_enough


def test_misses_no_move_that_could_pay() -> None:
    done = PROOF_SHARE * 20.0
    cost = SMALL.costs.move / 10.0
    assert cost < 0.9 * GAP_SHARE
    assert not searched(1.1 * cost, moves=0, work=done).near_enough
    assert searched(0.9 * cost, moves=0, work=done).near_enough


@pytest.mark.parametrize("moves", [0, 3])
@pytest.mark.parametrize(
    ("gap", "noise", "ends"), [(0.9, 0.8, False), (0.9, 1.0, True), (1.1, 1e6, False)]
)
def test_ends_within_the_noise_of_the_loads_unless_a_move_could_pay(
    gap: float, noise: float, ends: bool, moves: int
) -> None:
    """gap, noise: in costs of a move."""
    cost = SMALL.costs.move
    search = searched(gap * cost / 10.0, moves, work=PROOF_SHARE * 20.0)
    search.limits = SolveLimits(work=20.0, gap_share=0.0, noise=noise * cost)
    assert search.near_enough is ends


def test_counted_moves_are_proved() -> None:
    goals = Goals(objective=ObjectiveKind.BAND)
    problem = compile_problem(synthetic(3, 20), goals)
    assert not searched(0.9 * GAP_SHARE, 3, 19.0, problem).near_enough


def test_without_a_plan_searches_on() -> None:
    search = Search(problem=SMALL, limits=SolveLimits(work=20.0), work=19.0)
    assert not search.near_enough


@pytest.mark.search
def test_the_exact_model_ends_with_the_first_plan_near_the_bound() -> None:
    optimal = Search(problem=SMALL, limits=SolveLimits(work=20.0, gap_share=0.0))
    solve_exactly(optimal)
    limits = SolveLimits(work=20.0, gap_share=0.3)
    seen = Values()
    search = Search(problem=SMALL, limits=limits, observer=seen, work=2.0)
    search.offer(Placement.home(SMALL))
    search.prove(optimal.objective)
    solve_exactly(search)
    assert search.near_enough
    assert len(seen.values) > 2
    assert all(0.7 * value > search.bound for value in seen.values[:-1])


@pytest.mark.search
@pytest.mark.slow
def test_says_why_it_ended() -> None:
    snapshot = synthetic(8, 400, seed=4)
    wide = SolveLimits(work=4.0, gap_share=0.1)
    result = solve(snapshot, GOALS, wide)
    assert result.best is not None
    assert result.bound is not None
    assert result.best.limited_by == "gap within 10 % of F"
    assert result.best.status is PlanStatus.IMPROVED
    assert not result.exhausted
    assert result.work < solve(snapshot, GOALS, SolveLimits(work=4.0, gap_share=0.0)).work
    assert result.best.gap <= 0.1 * result.best.objective


@pytest.mark.search
def test_says_that_it_ended_at_the_noise() -> None:
    limits = SolveLimits(work=4.0, gap_share=0.0, noise=1.0)
    result = solve(synthetic(8, 400, seed=4), DEAR, limits)
    assert result.best is not None
    assert result.best.limited_by == "gap within the noise of the loads"
    assert result.best.schema_version == VERSION_WITH_NOISE
    assert 0 < result.best.gap <= result.best.move_price


def test_only_limits_that_differ_are_in_plan_files() -> None:
    assert not {"gap_share", "noise"} & SolveLimits().model_dump().keys()
    limits = SolveLimits(gap_share=0.0, noise=0.001)
    assert SolveLimits.model_validate(limits.model_dump()) == limits
