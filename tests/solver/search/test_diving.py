"""Rounding by diving: what it leaves, and within which limits."""

import numpy as np
import pytest

from model.goals.goals import Goals
from solver.kernels.move_deltas import new_state, objective
from solver.kernels.problem_arrays import Columns, find_columns
from solver.kernels.rounding import round_relaxed
from solver.problem.problem import compile_problem
from solver.search.diving import dive
from solver.search.dual import Relaxation, solve_relaxation, warm_up
from solver.search.neighbourhoods import largest_first
from tests.support.solver.zipf_clusters import synthetic

pytestmark = pytest.mark.search


def solved(seed: int) -> tuple[Columns, Relaxation]:
    c = find_columns(compile_problem(synthetic(20, 400, seed=seed), Goals(move_price=0.002)))
    r = Relaxation(c, new_state(c, c.home).v, seed)
    warm_up(r)
    solve_relaxation(r, 10.0)
    return c, r


def rounded(c: Columns, r: Relaxation) -> float:
    state = new_state(c, c.home)
    split = np.flatnonzero(r.masses.head >= 0)
    round_relaxed(c, r.masses, state, largest_first(c, split))
    return float(objective(c, state))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rows_become_whole_and_the_plan_better(seed: int) -> None:
    c, r = solved(seed)
    plain, bound = rounded(c, r), r.bound
    dive(r, 10.0)
    rows = np.flatnonzero(r.masses.head >= 0)
    assert (r.masses.mass[r.masses.head[rows]] == 1.0).all()
    assert (r.masses.next[r.masses.head[rows]] == -1).all()
    at = c.home[:, 0].copy()
    at[rows] = r.masses.at[r.masses.head[rows], 0]
    whole = new_state(c, at[:, None])
    assert whole.v == pytest.approx(r.v)
    assert bound - 1e-9 <= rounded(c, r) < plain


def test_without_work_all_rows_still_become_whole() -> None:
    c, r = solved(1)
    dive(r, 0.0)
    rows = np.flatnonzero(r.masses.head >= 0)
    assert len(rows)
    assert (r.masses.next[r.masses.head[rows]] == -1).all()
    assert rounded(c, r) >= r.bound - 1e-9
