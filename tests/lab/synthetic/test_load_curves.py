"""Synthetic loads have the documented days, weeks, bursts and growth."""

from collections.abc import Iterator

import numpy as np
import pytest

from lab.synthetic.load_curves import DAY_MS, HOUR_MS, WEEK_MS, LoadCurves, Rhythm
from lab.synthetic.observe import END_MS
from tests.support.lab.synthetic_orders import STILL

TOPIC = np.repeat(np.arange(40), 3)
WEEKS = 4
HOURS = range(END_MS - WEEKS * WEEK_MS, END_MS, HOUR_MS)


def curves_of(rhythm: Rhythm = STILL, seed: int = 3) -> LoadCurves:
    return LoadCurves(TOPIC, rhythm, seed=seed, end_ms=END_MS)


def history(rhythm: Rhythm = STILL) -> np.ndarray:
    """(hours, partitions) against the mean."""
    made = curves_of(rhythm)
    return np.stack([made.rates(t) for t in HOURS])


def hour_of_week(time_ms: int) -> int:
    """From Monday 0:00 UTC."""
    return (time_ms // HOUR_MS - 4 * 24) % (7 * 24)


def test_the_strongest_cycle_is_the_day_and_the_week_stands_out() -> None:
    total = history(Rhythm()).sum(axis=1)
    power = np.abs(np.fft.rfft(total - total.mean())) ** 2
    by_day, by_week = 7 * WEEKS, WEEKS
    assert power.argmax() == by_day
    assert power[by_week] > 20 * np.median(power)


def test_hourly_means_of_the_week_show_the_weekend_and_the_afternoon() -> None:
    slots = np.array([hour_of_week(t) for t in HOURS])
    total = history(Rhythm()).mean(axis=1)
    means = np.bincount(slots, total) / np.bincount(slots)
    by_day = means.reshape(7, 24)
    assert by_day[5:].mean() < 0.85 * by_day[:5].mean()
    assert 12 <= by_day[:5].mean(axis=0).argmax() <= 18


def test_daily_and_weekly_cycles_leave_the_mean_unchanged() -> None:
    np.testing.assert_allclose(history().mean(axis=0), 1.0, rtol=1e-6)


def test_partitions_of_a_topic_differ_by_noise_alone() -> None:
    assert (np.ptp(history().reshape(-1, 40, 3), axis=2) == 0).all()
    noisy = history(Rhythm(growth=0.0, bursts=0.0, noise=0.1)) / history()
    assert np.log(noisy).std() == pytest.approx(0.1, rel=0.05)


def lengths(on: np.ndarray) -> Iterator[int]:
    """Lengths of the runs of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on.astype(int), [0]])))
    yield from edges[1::2] - edges[::2]


def test_bursts_multiply_the_load_by_two_to_six_for_hours() -> None:
    times = history(Rhythm(growth=0.0, bursts=2.0, noise=0.0)) / history()
    of_topics = times[:, ::3]
    on = of_topics > 1.0 + 1e-3
    assert ((of_topics[on] > 1.999) & (of_topics[on] < 6.001)).all()
    result = [length for column in on.T for length in lengths(column)]
    assert max(result) <= 6  # of two that meet
    # Those that are shorter than an hour may fall between two looks.
    assert 0.7 * 2 * 40 * WEEKS < len(result) < 1.1 * 2 * 40 * WEEKS


def test_rates_and_sizes_grow_by_the_same_share_a_week() -> None:
    made, still = curves_of(Rhythm(growth=0.1, bursts=0.0, noise=0.0)), curves_of()
    week_ago = END_MS - WEEK_MS
    grown = made.rates(END_MS) / made.rates(week_ago)
    cycles = still.rates(END_MS) / still.rates(week_ago)
    sizes = made.sizes(END_MS) / made.sizes(week_ago)
    np.testing.assert_allclose(grown / cycles, sizes, rtol=1e-4)
    assert np.log(sizes).mean() == pytest.approx(0.1, abs=0.03)
    assert (made.sizes(END_MS) == 1).all()


def test_loads_at_a_time_do_not_depend_on_earlier_calls() -> None:
    first, again = curves_of(Rhythm()), curves_of(Rhythm())
    for time_ms in (END_MS, END_MS - DAY_MS):
        first.rates(time_ms)
    assert (first.rates(END_MS) == again.rates(END_MS)).all()
    assert (curves_of(Rhythm(), seed=4).rates(END_MS) != again.rates(END_MS)).any()
