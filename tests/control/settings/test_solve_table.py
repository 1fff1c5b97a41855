"""The search budget at each effort."""

import pytest

from control.settings.settings import Settings
from control.settings.solve_table import BEST_WORK, QUICK_WORK, SolveTable, limits_at
from model.goals.effort import Effort
from model.goals.goals import SolveLimits


@pytest.mark.parametrize(
    ("effort", "work", "gap_share"),
    [(Effort.QUICK, QUICK_WORK, 0.001), (Effort.GOOD, 20.0, 0.001), (Effort.BEST, BEST_WORK, 0.0)],
)
def test_an_effort_has_its_own_budget(effort: Effort, work: float, gap_share: float) -> None:
    limits = limits_at(SolveTable(), effort)
    assert (limits.work, limits.gap_share, limits.seed) == (work, gap_share, 0)
    assert type(limits) is SolveLimits


def test_good_has_the_default_limits() -> None:
    assert limits_at(SolveTable(), Effort.GOOD) == SolveLimits()


def test_limits_that_are_set_take_precedence_even_where_they_equal_the_defaults() -> None:
    best = limits_at(SolveTable(work=20.0, gap_share=0.001, seed=7), Effort.BEST)
    assert best == SolveLimits(work=20.0, gap_share=0.001, seed=7)


def test_limits_of_one_effort_can_be_passed_on_for_another() -> None:
    quick = limits_at(SolveTable(seed=3), Effort.QUICK)
    assert limits_at(quick, Effort.BEST) == limits_at(SolveTable(seed=3), Effort.BEST)


def test_commands_without_an_effort_move_replicas_and_get_the_usual_budget() -> None:
    assert SolveTable(effort=Effort.QUICK).limits == SolveLimits()
    assert SolveTable(effort=Effort.BEST).limits.work == BEST_WORK


def test_the_environment_sets_effort_and_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__EFFORT", "best")
    monkeypatch.setenv("PLIMSOLL_SOLVE__SEED", "4")
    solve = Settings().solve
    assert (solve.effort, solve.model_fields_set) == (Effort.BEST, {"effort", "seed"})
    assert limits_at(solve, solve.effort).work == BEST_WORK
