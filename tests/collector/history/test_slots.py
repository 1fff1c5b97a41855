"""Hours of several weeks are averaged into the hours of one week."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

from collector.history.hours import HOUR_MS, hourly
from collector.history.slots import WEEK, Calendar, LoadHistory, load_histories, slots
from collector.history.weekly_profile import week_of
from tests.support.collector.seasonal_loads import FIRST_HOUR, daily, hours_of, same, vectors_of

ORDERS = ("orders", 3)
AUDIT = ("größe.v1", 0)


def calendar(hours: int) -> Calendar:
    return Calendar.of(FIRST_HOUR, hours, dt.UTC)


def past_of(*weeks: float) -> LoadHistory:
    """One partition with this load at every hour of a week; NaN for none."""
    mean = np.repeat(np.array([weeks]), WEEK, axis=1)
    samples = np.where(np.isnan(mean), 0.0, 10.0)
    week = np.tile(np.arange(WEEK), len(weeks))
    return LoadHistory(mean=mean, p95=mean, largest=mean, samples=samples, week=week)


def test_an_hours_vectors_become_one_row() -> None:
    times = [FIRST_HOUR * HOUR_MS + 60_000 * i for i in range(70)]
    result = hourly(vectors_of([ORDERS, AUDIT], times, np.arange(140.0).reshape(2, 70)))
    rows = {(r["topic"], r["partition"], r["hour"]): r for r in result.to_pylist()}
    assert len(rows) == 4
    first = rows["orders", 3, FIRST_HOUR]
    assert first["net_in_mean"] == 29.5
    assert (first["net_in_p95"], first["net_in_max"]) == (56.0, 59.0)
    assert first["net_in_samples"] == 60
    assert rows["größe.v1", 0, FIRST_HOUR + 1]["net_in_max"] == 139.0


def test_unknown_loads_of_an_hour_have_no_samples() -> None:
    result = hourly(vectors_of([ORDERS], [0, 1], np.array([[np.nan, np.nan]])))
    assert result["net_in_samples"].to_pylist() == [0]
    assert np.isnan(result["net_in_mean"].to_pylist()[0])
    assert result["disk_samples"].to_pylist() == [2]


def test_no_vectors_give_no_hours() -> None:
    assert hourly(vectors_of([], [], np.zeros((0, 0)))).num_rows == 0


def test_a_slot_is_the_mean_of_its_hours_weighted_by_their_samples() -> None:
    past = past_of(10.0, 40.0)
    past.samples[0, 0] = 30.0
    result = slots(past)
    assert result["mean"][0, 0] == pytest.approx((30 * 10 + 10 * 40) / 40)
    assert result["mean"][0, 1] == pytest.approx(25.0)
    assert result["samples"][0, 0] == 40.0
    assert result["max"][0].tolist() == [40.0] * WEEK


def test_confidence_grows_with_weeks_and_falls_with_their_spread() -> None:
    def confidence(*weeks: float) -> float:
        return float(slots(past_of(*weeks))["confidence"][0, 17])

    assert confidence(np.nan) == 0.0
    assert confidence(10.0) == 0.5
    assert confidence(10.0, np.nan, 10.0) == pytest.approx(2 / 3)
    assert confidence(10.0, 10.0, 10.0, 10.0) == 0.8
    assert confidence(0.0, 0.0) == pytest.approx(2 / 3)
    assert confidence(5.0, 15.0) == pytest.approx(2 / 3 / 1.5)


def test_an_hour_never_observed_is_unknown() -> None:
    result = slots(past_of(10.0).until(5))
    assert np.isnan(result["mean"][0, 5:]).all()
    assert np.isnan(result["max"][0, 5:]).all()
    assert result["samples"][0, 5:].sum() == 0


def test_hours_of_the_week_follow_the_clocks_of_the_zone() -> None:
    assert Calendar.of(FIRST_HOUR, 2, dt.UTC).week.tolist() == [0, 1]
    assert Calendar.of(FIRST_HOUR, 2, ZoneInfo("Asia/Tokyo")).week.tolist() == [9, 10]
    # On Sunday, 29 March, the hour from 2 to 3 is left out in Berlin.
    sunday = FIRST_HOUR + 27 * 24
    night = Calendar.of(sunday, 3, ZoneInfo("Europe/Berlin")).week
    assert night.tolist() == [145, 147, 148]


def test_results_have_the_same_bits_however_partitions_are_divided() -> None:
    random = np.random.default_rng(3)
    hours = hours_of([ORDERS, AUDIT], random.exponential(1e6, (2, 500)))
    whole = week_of(hours, calendar(504), calendar(WEEK)).sort_by("topic")
    for name, row in (("größe.v1", 0), ("orders", 1)):
        alone = week_of(
            hours.filter(np.asarray(hours["topic"]) == name), calendar(504), calendar(WEEK)
        )
        assert same(alone, whole.slice(row, 1))


def test_fields_missing_from_older_files_are_unknown() -> None:
    hours = hours_of([ORDERS], daily(24, peak=14)[None])
    for name in ("net_out_mean", "net_out_p95", "net_out_max", "net_out_samples"):
        at = hours.schema.get_field_index(name)
        field = hours.schema.field(at)
        hours = hours.set_column(at, field, pa.nulls(24, field.type))
    result = load_histories(hours, calendar(24))[1]
    assert slots(result["net_out"])["samples"].sum() == 0
    assert np.isnan(slots(result["net_out"])["mean"]).all()
    assert slots(result["net_in"])["samples"].sum() == 240


def test_hours_outside_the_calendar_do_not_count() -> None:
    hours = hours_of([ORDERS], daily(48, peak=14)[None])
    ids, result = load_histories(hours, calendar(24))
    assert ids.to_pylist() == [{"topic": "orders", "partition": 3}]
    assert result["net_in"].mean.shape == (1, 24)
