"""The text about the hours that a plan was made for."""

from dataclasses import replace

import numpy as np

from control.render.cluster_status import status_text
from control.render.forecast_text import forecast_lines, plan_lines
from control.render.plan_text import plan_text
from model.evaluate import evaluate
from model.goals.goals import Goals, SolveLimits
from model.ids import TopicName
from model.snapshot.forecast import LoadForecast, SlotReason
from model.snapshot.snapshot import Snapshot
from solver.solve import solve
from tests.support.model.clusters import brokers, snapshot

FORECAST = LoadForecast(
    method="seasonal with trend",
    time_zone="UTC",
    days=14,
    held_back_days=3,
    missed={"net_in": 0.114},
    missed_as_now={"net_in": 0.424},
    partitions=300,
    as_now=12,
    slots=(
        SlotReason(name="mon-15", begins_ms=1, why="the most net_in, 1.8 x now's"),
        SlotReason(
            name="tue-03",
            begins_ms=2,
            why="38 % of the load in other topics than at mon-15",
            topic=TopicName("backup"),
        ),
    ),
)


PLAIN = snapshot(brokers(3), [(1,), (1,), (2,)])


def with_forecast(forecast: LoadForecast | None, plain: Snapshot = PLAIN) -> Snapshot:
    return Snapshot(plain.header.model_copy(update={"forecast": forecast}), plain.partitions)


def test_the_forecast_error_precedes_the_hours_with_their_reasons() -> None:
    assert forecast_lines(FORECAST) == [
        "forecast by seasonal with trend from 14 days; on 3 days "
        "held back its error was 11.4 % of bytes in (42.4 % if current loads were kept)",
        "12 of 300 partitions have too little history and are forecast at their current load",
        "  mon-15: the most net_in, 1.8 x now's",
        "  tue-03: 38 % of the load in other topics than at mon-15, mostly in backup",
    ]


def test_the_reason_for_no_forecast_is_reported() -> None:
    unused = FORECAST.model_copy(update={"slots": (), "unused": "1 of the 3 days"})
    assert forecast_lines(unused) == [
        "balanced for current loads only, without a forecast: 1 of the 3 days"
    ]


def test_plan_and_status_show_the_forecast_only_with_history() -> None:
    goals = Goals()
    for forecast in (FORECAST.model_copy(update={"slots": ()}), None):
        seen = with_forecast(forecast)
        result = solve(seen, goals, SolveLimits(work=0.5))
        assert result.best is not None
        assert result.best.forecast == forecast
        plan = plan_text(result.best, "a plan")
        status = status_text(seen, evaluate(seen, goals, ()), 0)
        for text in (plan, status):
            assert ("seasonal with trend" in text) == (forecast is not None)


def test_a_plan_shows_the_largest_deviation_of_each_hour() -> None:
    plain = snapshot(brokers(2), [(1,), (1,), (2,), (2,)])
    loads = np.full((4, 2, len(plain.header.resources)), 5e6)
    loads[:2, 1] = 2e7
    seen = Snapshot(
        with_forecast(FORECAST, plain).header.model_copy(update={"slots": ("mon-15", "tue-03")}),
        replace(plain.partitions, slot_loads=loads),
    )
    result = solve(seen, Goals(), SolveLimits(work=0.5))
    assert result.best is not None
    *_, before, after = plan_lines(result.best)
    assert before.endswith("; largest deviation 0.0 % -> 0.0 %")
    assert after.endswith("in backup; largest deviation 60.0 % -> 0.0 %")
    assert "@" not in plan_text(result.best, "a plan").partition("reason")[0]


def test_a_plan_without_history_keeps_its_bytes() -> None:
    result = solve(with_forecast(None), Goals(), SolveLimits(work=0.5))
    assert result.best is not None
    assert "forecast" not in result.best.model_dump(mode="json")
