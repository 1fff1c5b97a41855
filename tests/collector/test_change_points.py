"""Levels in short series of rates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.change_points import (
    LEAST_POINTS,
    MATERIAL,
    Floats,
    agrees,
    began_before,
    last_levels,
    relative_error,
)

NOISE = 0.05
POINTS = 15


def noisy(level: list[float], seed: int, count: int = 200) -> Floats:
    """Series around a level each second, with normal noise."""
    rng = np.random.default_rng(seed)
    mean = np.asarray(level)
    return np.asarray(mean * (1 + rng.normal(0, NOISE, (count, len(level)))))


def stepped(factor: float, points: int) -> list[float]:
    return [1.0] * (POINTS - points) + [factor] * points


@pytest.mark.parametrize("factor", [2.0, 1.5, 0.5])
@pytest.mark.parametrize("points", [2, 3, 5, 8, 13])
def test_a_step_is_found_where_it_is(factor: float, points: int) -> None:
    found = last_levels(noisy(stepped(factor, points), seed=points))
    assert np.mean(found == POINTS - points) > 0.98


@pytest.mark.parametrize("length", [3, 5, 9])
@pytest.mark.parametrize("points", [2, 3])
def test_the_level_after_a_burst_does_not_contain_the_burst(length: int, points: int) -> None:
    level = [1.0] * (POINTS - points - length) + [2.0] * length + [1.0] * points
    assert np.mean(last_levels(noisy(level, seed=length)) == POINTS - points) > 0.98


def test_noise_alone_is_hardly_ever_a_change() -> None:
    assert np.mean(last_levels(noisy([1.0] * POINTS, seed=1, count=5000)) > 0) < 0.002


@given(st.integers(0, 14), st.floats(0.0, 100.0))
def test_one_outlier_is_never_a_level(at: int, factor: float) -> None:
    rates = noisy([1.0] * POINTS, seed=3, count=1)
    rates[0, at] *= factor
    start = int(last_levels(rates)[0])
    assert start == 0 or abs(start - at) > 1


@given(st.floats(-0.99 * MATERIAL, 0.99 * MATERIAL), st.integers(2, 13))
def test_an_immaterial_change_keeps_all_samples(change: float, points: int) -> None:
    assert last_levels(np.array([stepped(1 + change, points)]))[0] == 0


@given(st.lists(st.floats(0, 1e12), min_size=0, max_size=40), st.floats(1e-3, 1e3))
def test_any_series_has_a_level_that_does_not_depend_on_its_unit(
    rates: list[float], unit: float
) -> None:
    series = np.array([rates])
    start = int(last_levels(series)[0])
    assert start == 0 or LEAST_POINTS <= start <= len(rates) - LEAST_POINTS
    if start:
        level, before = series[0, start:].mean(), series[0, start - LEAST_POINTS : start].mean()
        assert level != before
    assert np.isfinite(relative_error(series[0], start)) or len(rates) - start <= LEAST_POINTS
    # Powers of two change no digit.
    assert last_levels(series * 4.0)[0] == start
    assert len(agrees(series * unit, np.array([start]))) == 1


def test_series_are_judged_one_by_one() -> None:
    rates = np.concatenate([noisy(stepped(2.0, p), seed=p, count=1) for p in range(2, 12)])
    together = last_levels(rates)
    assert together.tolist() == [int(last_levels(row[None])[0]) for row in rates]


def test_the_newest_rate_contradicts_a_burst_that_has_just_ended() -> None:
    going_on = noisy([1.0] * 6 + [2.0] * 9, seed=5)
    over = noisy([1.0] * 5 + [2.0] * 9 + [1.0], seed=5)
    assert agrees(going_on, last_levels(going_on)).all()
    assert not agrees(over, last_levels(over)).any()


def test_a_broker_that_is_idle_is_steady() -> None:
    idle = np.zeros((1, POINTS))
    assert last_levels(idle)[0] == 0
    assert agrees(idle, last_levels(idle)).all()
    assert relative_error(idle[0], 0) == 0.0


def test_the_error_of_a_level_covers_its_mean() -> None:
    series = noisy([1.0] * 10, seed=7, count=2000)
    covered = [abs(row.mean() - 1.0) <= 2 * relative_error(row, 0) for row in series]
    assert 0.93 < np.mean(covered) < 0.99


def test_two_rates_give_no_error() -> None:
    assert relative_error(np.array([1.0, 1.1]), 0) == float("inf")


@pytest.mark.parametrize("factor", [2.0, 1.5, 0.5])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_a_change_within_an_interval_had_begun_by_the_next(factor: float, share: float) -> None:
    within = 1.0 + share * (factor - 1.0)
    rates = noisy([1.0, 1.0, 1.0, 1.0, within, factor, factor], seed=4) ** 0.2
    rates = np.array([1.0, 1.0, 1.0, 1.0, within, factor, factor]) * rates
    assert np.mean([began_before(row, 5) for row in rates]) > 0.95


@pytest.mark.parametrize("before", [1.0, 1.05, 0.8, 2.5])
def test_a_change_between_two_intervals_had_not_begun(before: float) -> None:
    rates = np.array([1.0, 1.0, 1.01, 1.0, before, 2.0, 2.0])
    assert not began_before(rates, 5)


def test_without_an_earlier_level_no_change_had_begun() -> None:
    assert not began_before(np.array([1.0, 1.5, 2.0, 2.0]), 2)
