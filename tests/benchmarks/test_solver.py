"""The benchmark of the planner measures what it says, and tabulates it."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bounds import Bounds
from benchmarks.measure import measure
from benchmarks.shapes import shape_of
from benchmarks.solver import read_measured, table, write_measured
from tests.benchmarks.test_bounds import ONE


@pytest.fixture
def bounds(tmp_path: Path) -> Bounds:
    return Bounds(tmp_path / "bounds.json")


def test_a_solve_is_measured_and_its_plan_verified() -> None:
    one = measure(shape_of("3x60"), 1, 0.5)
    assert (one.valid, one.broken) == (True, "")
    assert one.moves > 0
    assert one.bound is not None
    assert one.objective is not None
    assert one.bound <= one.objective
    assert one.first_cpu_s is not None
    assert one.rss_mib > 0


def test_the_table_gives_the_gap_to_the_best_bound_not_to_the_plans_own(bounds: Bounds) -> None:
    better = replace(ONE, work=10.0, bound=0.0499)
    bounds.learn([ONE, better])
    (row,) = [r for r in table([ONE], bounds).splitlines() if r.startswith("| 10x500")]
    assert "0.20%" in row


def test_the_table_shows_the_median_and_the_worst_seed(bounds: Bounds) -> None:
    result = [
        replace(ONE, seed=seed, objective=objective)
        for seed, objective in enumerate([0.041, 0.042, 0.048], start=1)
    ]
    bounds.learn(result)
    (row,) = [r for r in table(result, bounds).splitlines() if r.startswith("| 10x500")]
    assert "5.00%" in row
    assert "20.00%" in row


def test_the_table_names_the_claim_of_a_plan_that_does_not_hold(bounds: Bounds) -> None:
    wrong = replace(ONE, valid=False, broken="rules: racks")
    assert "seed 1: rules: racks" in table([wrong], bounds)


def test_written_measurements_read_back_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "solver.json"
    write_measured({ONE.key: ONE}, path)
    assert read_measured(path) == {ONE.key: ONE}
