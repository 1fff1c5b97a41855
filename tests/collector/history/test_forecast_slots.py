"""Slots of snapshots: which hours are chosen, for which reasons, with which loads."""

import datetime as dt
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.connection import Connection
from collector.assemble import assemble
from collector.collector import Collector
from collector.collector_settings import CollectorSettings
from collector.history.forecast_slots import SlotForecaster, choose, coming, name_of, with_slots
from collector.history.history_settings import Horizon
from collector.history.slots import DAY, WEEK, Calendar
from collector.history.weekly_forecast import COLUMNS, WeeklyForecast, read_weekly_forecast
from collector.history.weekly_profile import week_of
from collector.samples import SAMPLES
from collector.spark.vectors import VECTORS
from collector.state_dir import claim
from model.snapshot.checks import MOST_SLOTS
from model.snapshot.snapshot import Floats, Resource, Snapshot
from tests.support.collector.sample_rows import cluster, topic
from tests.support.collector.seasonal_loads import FIRST_HOUR, daily, hours_of

NET = (Resource.NET_IN, Resource.NET_OUT)
DAYS = 14
NOW_HOUR = FIRST_HOUR + DAYS * DAY + 2
PARTITIONS = [("night", 0), ("night", 1), ("office", 0), ("steady", 0)]


def weekly_forecast(days: int = DAYS, **other: Any) -> WeeklyForecast:
    """A forecast of topics with peaks at 3:00 and 15:00, and of one without any."""
    hours = days * DAY
    loads = np.stack(
        [
            1e6 * daily(hours, peak=3) ** 2,
            2e6 * daily(hours, peak=3) ** 2,
            6e6 * daily(hours, peak=15) ** 2,
            np.full(hours, 1e6),
        ]
    )
    calendar = Calendar.of(FIRST_HOUR, hours, dt.UTC)
    ahead = Calendar.of(FIRST_HOUR + hours, WEEK, dt.UTC)
    newest = dt.datetime.fromtimestamp(3600 * (FIRST_HOUR + hours - 1), dt.UTC)
    made = WeeklyForecast(
        week_of(hours_of(PARTITIONS, loads), calendar, ahead).select(COLUMNS),
        method="seasonal with trend",
        zone="UTC",
        days=days,
        newest_day=newest.date().isoformat(),
        held_back_days=3,
    )
    return replace(made, **other)


TOPICS = (
    topic("night", [[1], [2]]),
    topic("office", [[3]]),
    topic("other", [[1]]),
    topic("steady", [[2]]),
)


def now() -> pa.Table:
    """Vectors of the forecast's partitions, and of one that it does not contain."""
    rows = [
        dict.fromkeys(VECTORS.names)
        | {"topic": name, "partition": number, "time_ms": 3_600_000 * NOW_HOUR, "broker": 1}
        | {"samples": 16, "span_ms": 15_000, "net_in": 5.0, "net_out": 7.0}
        | {"disk": 1000.0, "total_bytes": 9000.0}
        | {"in_measured": True, "out_measured": True}
        for name, number in [*PARTITIONS, ("other", 0)]
    ]
    return pa.Table.from_pylist(rows, schema=VECTORS)


def snapshot() -> Snapshot:
    return assemble(cluster(*TOPICS), now(), window_s=15.0)


def loads_of(result: Snapshot) -> Floats:
    assert result.partitions.slot_loads is not None
    return result.partitions.slot_loads


def test_the_peak_and_a_dissimilar_hour_are_chosen_with_their_reasons() -> None:
    forecast = coming(weekly_forecast(), NOW_HOUR, Horizon.DAY, NET).forecast
    assert not forecast.unused
    peak = next(s for s in forecast.slots if s.name == "mon-15")
    assert peak.why.startswith("the most net_in, ")
    assert "; the most net_out, " in peak.why
    assert peak.begins_ms == 3_600_000 * (NOW_HOUR + 13)
    others = [s for s in forecast.slots if s is not peak]
    assert others
    assert all("of the load in other topics than at" in s.why for s in others)
    assert {s.topic for s in others} <= {"night", "office", "steady"}


def test_slots_are_few_and_in_chronological_order() -> None:
    for horizon, hours in ((Horizon.DAY, DAY), (Horizon.WEEK, WEEK)):
        forecast = coming(weekly_forecast(), NOW_HOUR, horizon, NET).forecast
        begins = [s.begins_ms // 3_600_000 for s in forecast.slots]
        assert begins == sorted(set(begins))
        assert begins[0] > NOW_HOUR
        assert begins[-1] < NOW_HOUR + hours
        assert 1 <= len(begins) <= MOST_SLOTS


def test_a_slot_has_the_loads_forecast_for_its_hour() -> None:
    result = coming(weekly_forecast(), NOW_HOUR, Horizon.DAY, NET)
    shown = with_slots(snapshot(), weekly_forecast(), result)
    at = shown.header.slots.index("mon-15")
    office = loads_of(shown)[2, at].tolist()
    assert office[:2] == pytest.approx([54e6, 54e6], rel=0.01)
    # Sizes are as now.
    assert office[2] == 1000.0


def test_partitions_with_too_little_history_keep_their_present_loads() -> None:
    result = coming(weekly_forecast(), NOW_HOUR, Horizon.DAY, NET)
    shown = with_slots(snapshot(), weekly_forecast(), result)
    forecast = shown.header.forecast
    assert forecast is not None
    assert (forecast.partitions, forecast.as_now) == (5, 1)
    assert loads_of(shown)[3].tolist() == [[5.0, 7.0, 1000.0]] * len(shown.header.slots)


@pytest.mark.parametrize(
    ("made", "horizon", "message"),
    [
        (weekly_forecast(2), Horizon.DAY, "2 of the 3 days of history that a look at the"),
        (weekly_forecast(5), Horizon.WEEK, "5 of the 8 days of history that a look at the"),
        (weekly_forecast(newest_day="2026-02-01"), Horizon.DAY, "newest day of history is 20"),
    ],
)
def test_too_little_history_gives_no_slots_but_a_reason(
    made: WeeklyForecast, horizon: Horizon, message: str
) -> None:
    result = coming(made, NOW_HOUR, horizon, NET)
    assert message in result.forecast.unused
    shown = with_slots(snapshot(), made, result)
    assert shown.header.slots == ()
    assert shown.partitions.slot_loads is None


def test_a_forecast_no_more_accurate_than_the_present_loads_is_not_used() -> None:
    made = weekly_forecast()
    worse = [made.table[f"{r}_missed_as_now"].to_numpy() + 1.0 for r in ("net_in", "net_out")]
    table = made.table
    for resource, column in zip(("net_in", "net_out"), worse, strict=True):
        at = table.schema.get_field_index(f"{resource}_missed")
        table = table.set_column(at, f"{resource}_missed", pa.array(column))
    result = coming(replace(made, table=table), NOW_HOUR, Horizon.DAY, NET)
    assert "missed no less than the last hour" in result.forecast.unused


def test_without_forecast_or_horizon_a_snapshot_is_unchanged(tmp_path: Path) -> None:
    plain = snapshot()
    assert SlotForecaster(Horizon.DAY, lambda: 0.0).add(plain) is plain
    off = SlotForecaster(Horizon.OFF, lambda: 3600.0 * NOW_HOUR)
    off.learn(weekly_forecast(), tmp_path)
    assert off.add(plain) is plain


def test_a_forecast_survives_a_restart(tmp_path: Path) -> None:
    def clock() -> float:
        return 3600.0 * NOW_HOUR

    before, after = (SlotForecaster(Horizon.DAY, clock), SlotForecaster(Horizon.DAY, clock))
    before.learn(weekly_forecast(), tmp_path)
    after.recall(tmp_path)
    expected, result = before.add(snapshot()), after.add(snapshot())
    assert result.header == expected.header
    assert result.header.slots
    assert np.array_equal(loads_of(result), loads_of(expected), equal_nan=True)


@pytest.mark.parametrize("beside", [False, True])
def test_a_collector_uses_the_forecast_in_its_clusters_folder(tmp_path: Path, beside: bool) -> None:
    settings = CollectorSettings(state_dir=tmp_path, cache_dir=tmp_path)
    other = claim(tmp_path, "c1") if beside else None
    try:
        folder = tmp_path / "clusters" / "c1"
        folder.mkdir(parents=True, exist_ok=True)
        weekly_forecast().write(folder / "outlook.parquet")
        watcher = Collector(Connection("127.0.0.1:1"), settings, clock=lambda: 3600.0 * NOW_HOUR)
        watcher._see(cluster(*TOPICS))
        watcher._take(SAMPLES.empty_table(), now())
        result = watcher.snapshot()
        watcher.close()
    finally:
        if other is not None:
            other.release()
    assert result is not None
    assert "mon-15" in result.header.slots


def test_an_unreadable_forecast_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "outlook.parquet"
    assert read_weekly_forecast(path) is None
    path.write_bytes(b"PAR1 torn")
    assert read_weekly_forecast(path) is None


def test_hours_of_the_week_have_readable_names() -> None:
    assert [name_of(h) for h in (0, 38, 167)] == ["mon-00", "tue-14", "sun-23"]


HOURS = st.integers(1, 30)


@settings(deadline=None)
@given(HOURS, st.integers(1, 4), st.integers(0, 10_000))
def test_any_loads_give_a_few_distinct_hours(hours: int, topics: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    loads = {r: random.exponential(1.0, (topics, 1 + hours)) ** 3 for r in ("a", "b")}
    loads["b"][:, random.random(1 + hours) < 0.3] = 0.0
    names = [f"h{i}" for i in range(hours)]
    result = choose(loads, [f"t{i}" for i in range(topics)], names)
    at = [c.at for c in result]
    assert at == sorted(set(at))
    assert len(at) <= min(MOST_SLOTS, hours)
    assert set(at) <= set(range(hours))
    doubled = {r: 2 * v for r, v in loads.items()}
    assert choose(doubled, [f"t{i}" for i in range(topics)], names) == result


def test_hours_similar_to_now_are_not_chosen() -> None:
    same = {"net_in": np.full((3, 25), 5.0)}
    assert choose(same, ["a", "b", "c"], [f"h{i}" for i in range(24)]) == ()
    assert choose({"net_in": np.zeros((1, 3))}, ["a"], ["x", "y"]) == ()


def test_half_the_traffic_of_the_same_mix_is_not_a_dissimilar_hour() -> None:
    loads = np.full((2, 3), 8.0)
    loads[:, 2] = 4.0
    assert choose({"net_in": loads}, ["a", "b"], ["x", "y"]) == ()
