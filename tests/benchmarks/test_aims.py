"""The page of the planner's aims: its rows, verdicts and tables."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.aims import PAGE, ROWS, Row, compiling_table, equal_quality_table, line, renewed
from benchmarks.bounds import Bounds
from benchmarks.shapes import shape_of
from tests.benchmarks.test_bounds import ONE

HERE = PAGE.parent


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.instance)
def test_every_row_is_of_a_known_instance_and_limit(row: Row) -> None:
    assert row.work in {aim.work for aim in shape_of(row.instance).aims} | {60}


def test_the_page_has_a_place_for_every_table() -> None:
    page = PAGE.read_text()
    for name in ("instances", "equal quality", "compiling"):
        assert "changed" in renewed(page, name, "changed")
    with pytest.raises(ValueError, match="the page has no part 'other'"):
        renewed(page, "other", "")


def test_an_aim_is_met_only_with_every_seed(tmp_path: Path) -> None:
    bounds = Bounds(tmp_path / "bounds.json")
    found = [replace(ONE, seed=seed, objective=0.04) for seed in (1, 2, 3)]
    found[2] = replace(found[2], cpu_s=5.0, objective=0.05)
    bounds.learn([*found, replace(found[2], work=60.0, objective=0.041)])
    row = Row(instance=ONE.instance, work=ONE.work, must="little", cpu_s=4.0, costs=0.3, over=0.01)
    assert line(row, found, bounds)[-1] == "no: CPU, distance"
    assert line(row, found[:2], bounds)[-1] == "yes"
    assert line(row, [], bounds)[-1] == "not measured"


def test_the_best_plan_known_does_not_meet_an_aim_by_itself(tmp_path: Path) -> None:
    bounds = Bounds(tmp_path / "bounds.json")
    bounds.learn([ONE])
    row = Row(instance=ONE.instance, work=ONE.work, must="little", costs=0.3)
    assert line(row, [ONE], bounds)[-1] == "open: is the best known"
    bounds.learn([replace(ONE, work=60.0, bound=0.0499)])
    assert line(row, [ONE], bounds)[-1] == "yes"


def test_equal_quality_is_counted_by_goals() -> None:
    found = equal_quality_table((HERE / "equal-quality.md").read_text())
    assert "| moves into the same bands | default | 8 | 8 | 8 |" in found


def test_compiling_is_compared_with_the_aim() -> None:
    assert "| 3x8 | 0.0 | yes |" in compiling_table((HERE / "first-plans.md").read_text())
