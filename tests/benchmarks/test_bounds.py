"""Bounds are stored per instance, and only the best one."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.bounds import Bounds
from benchmarks.measure import Measurement

ONE = Measurement(
    instance="10x500",
    seed=1,
    work=3.0,
    digest="a",
    status="improved",
    valid=True,
    broken="",
    objective_before=4.0,
    objective=0.05,
    bound=0.04,
    price_bound=0.04,
    moves=30,
    move_price=1e-3,
    cpu_s=3.0,
    wall_s=3.0,
    work_done=3.0,
    first_cpu_s=0.1,
    rss_mib=100.0,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bounds.json"


def test_a_better_bound_replaces_the_one_before(path: Path) -> None:
    Bounds(path).learn([ONE, replace(ONE, bound=0.045)])
    assert Bounds(path).bound(ONE) == 0.045


def test_a_worse_bound_is_ignored(path: Path) -> None:
    Bounds(path).learn([ONE, replace(ONE, bound=0.01)])
    assert Bounds(path).bound(ONE) == 0.04


def test_the_best_known_plan_is_stored_with_the_bound(path: Path) -> None:
    Bounds(path).learn([ONE, replace(ONE, objective=0.044)])
    assert Bounds(path).objective(ONE) == 0.044


def test_a_bound_of_another_instance_of_the_same_name_does_not_count(path: Path) -> None:
    Bounds(path).learn([ONE])
    assert Bounds(path).bound(replace(ONE, digest="b")) == 0.0


def test_a_plan_rejected_by_the_evaluator_leaves_the_bounds_unchanged(path: Path) -> None:
    Bounds(path).learn([replace(ONE, valid=False)])
    assert Bounds(path).bound(ONE) == 0.0


def test_a_bound_above_a_valid_plan_raises_an_error(path: Path) -> None:
    with pytest.raises(ValueError, match="above a valid plan"):
        Bounds(path).learn([ONE, replace(ONE, bound=0.06)])


def test_a_bound_is_rounded_down(path: Path) -> None:
    Bounds(path).learn([replace(ONE, bound=0.0411111111999)])
    assert Bounds(path).bound(ONE) <= 0.0411111111999
