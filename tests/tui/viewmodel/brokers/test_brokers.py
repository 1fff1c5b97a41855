"""The table of brokers: deviations, and the effect of the plan."""

from dataclasses import replace

import pytest

from control.loop.view import LoopView
from model.evaluate import evaluate
from model.goals.goals import Goal
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, Resource, Snapshot
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import (
    CONNECTING,
    GOALS,
    balanced_after_run,
    balanced_cluster,
    estimated,
    judged,
    measuring,
    no_partitions,
    plan_ready,
    running,
    skewed,
    solving,
)
from tui.viewmodel.brokers.bars import ADDED, AVERAGE_MARK, BAND_MARK, BOTH_MARK, REMOVED
from tui.viewmodel.brokers.brokers import BESIDE, broker_table, layout_for
from tui.viewmodel.brokers.gauges import gauges
from tui.viewmodel.brokers.headline import averages_line, headline, scale_text
from tui.viewmodel.cells import plain
from tui.widgets.keyed_table import KeyedTable

BAR = layout_for(118, 2).bar


def _rows(view: LoopView, width: int = 118) -> dict[str, dict[str, str]]:
    table = broker_table(view, GOALS, width)
    keys = [c.key for c in table.columns]
    return {
        row.key: dict(zip(keys, (plain(c) for c in row.cells), strict=True)) for row in table.rows
    }


def _with_brokers(view: LoopView, **update: object) -> LoopView:
    """The same view with a changed first broker."""
    first, *others = skewed().header.brokers
    brokers = (first.model_copy(update=update), *others)
    header = skewed().header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, skewed().partitions)
    return replace(view, brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot))


def test_deviations_outside_the_band_have_a_marker() -> None:
    rows = _rows(solving())
    assert "!5.00M" in rows["1"]["net_in"]
    assert "<    0" in rows["2"]["net_in"]


def test_within_the_band_there_is_no_marker() -> None:
    rows = _rows(balanced_after_run())
    assert not any("!" in c or "<" in c for row in rows.values() for c in row.values())


def test_the_average_is_in_the_middle_of_a_bar_without_capacity() -> None:
    drawn = _rows(solving())["2"]["net_in"][:BAR]
    assert drawn[BAR // 2] in AVERAGE_MARK + BOTH_MARK


def test_the_band_is_marked_on_both_sides_of_the_average() -> None:
    drawn = _rows(solving(), 198)["2"]["net_in"].strip()
    assert drawn.replace(" ", "").startswith(BAND_MARK + AVERAGE_MARK + BAND_MARK)


def test_a_plan_is_drawn_into_the_bar_as_removed_and_added_load() -> None:
    rows = _rows(plan_ready())
    assert REMOVED in rows["1"]["net_in"]
    assert ADDED not in rows["1"]["net_in"]
    assert ADDED in rows["2"]["net_in"]
    before = _rows(solving())
    assert not any(ghost in before["1"]["net_in"] for ghost in REMOVED + ADDED)


def test_a_bar_is_relative_to_a_known_capacity() -> None:
    view = _with_brokers(solving(), capacity={Resource.NET_IN: 10e6})
    result = gauges(view, GOALS)[BrokerId(1), Resource.NET_IN]
    assert result.scale == 10e6
    drawn = _rows(view)["1"]["net_in"][:BAR].rstrip()
    assert len(drawn) == -(-BAR // 2)


def test_a_load_above_a_capacity_limit_is_named() -> None:
    view = _with_brokers(balanced_after_run(), capacity={Resource.NET_IN: 1.7e6})
    view = replace(view, plan=None)
    assert "!" in _rows(view)["1"]["net_in"]
    assert "OVER LIMIT broker 1 in" in plain(headline(view, GOALS, 120))


def test_measured_resources_are_shown_even_if_they_are_not_goals() -> None:
    one_goal = GOALS.model_copy(update={"balance": GOALS.balance[:1]})
    keys = [c.key for c in broker_table(solving(), one_goal, 118).columns]
    assert {"net_in", "net_out"} <= set(keys)
    assert "cpu" not in keys


def test_averages_are_proportional_to_known_capacities() -> None:
    brokers = tuple(
        b.model_copy(update={"capacity": {Resource.NET_IN: 1e7 * b.id}})
        for b in skewed().header.brokers
    )
    header = skewed().header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, skewed().partitions)
    view = replace(solving(), snapshot=snapshot, evaluation=judged(snapshot))
    result = gauges(view, GOALS)
    levels = [result[BrokerId(i), Resource.NET_IN].average for i in (1, 2, 3)]
    assert levels == pytest.approx([5e6 / 6, 5e6 / 3, 5e6 / 2])


def test_the_largest_deviation_is_shown_now_and_after_the_plan() -> None:
    assert _rows(solving())["1"]["off"].split() == ["in", "+200%"]
    assert _rows(plan_ready())["1"]["off"].split() == ["in", "+200%", "▼", "-1%"]
    assert _rows(plan_ready())["3"]["off"].split() == ["in", "-100%", "▲", "+2%"]
    assert _rows(plan_ready(), 82)["3"]["off"].split() == ["in", "-100%"]


def test_replicas_and_leaders_show_now_and_after_the_plan() -> None:
    assert _rows(plan_ready())["1"]["count"] == "8/8 → 4/4"
    assert _rows(solving())["1"]["count"] == "8/8"


def test_completed_moves_do_not_count_twice() -> None:
    view = replace(running(), snapshot=balanced_cluster(), evaluation=judged(balanced_cluster()))
    assert _rows(view)["1"]["count"] == "4/4"


def test_a_narrow_panel_has_number_and_marker_without_bar() -> None:
    cells = _rows(solving(), 78)["1"]
    assert cells["net_in"].strip() == "!5.00M"


@pytest.mark.parametrize("width", [58, 78, 80, 82, 98, 118, 140, 198])
@pytest.mark.parametrize("loads", [2, 3, 4, 5])
def test_every_layout_fits_with_the_deviation_and_bars_if_possible(width: int, loads: int) -> None:
    layout = layout_for(width, loads)
    used = layout.beside + loads * (layout.bar + BESIDE)
    assert used <= max(width, 82)
    assert layout.off
    assert (layout.bar > 0) == ((width > 78 and loads < 4) or width >= 98)


@pytest.mark.parametrize("width", [78, 82, 118, 198])
def test_every_cell_fits_its_column(width: int) -> None:
    table = broker_table(plan_ready(), GOALS, width)
    for row in table.rows:
        assert len(row.values) == len(table.columns)
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width


def test_the_state_of_a_broker_that_is_not_alive_is_shown() -> None:
    view = _with_brokers(solving(), state=BrokerState.DEAD)
    assert _rows(view)["1"]["state"] == "DEAD"
    view = _with_brokers(solving(), state=BrokerState.DRAINING)
    assert _rows(view)["1"]["state"] == "draining"


def test_brokers_show_before_their_loads_are_known() -> None:
    assert _rows(measuring())["1"]["net_in"].strip() == "-"


def test_an_empty_table_is_explained() -> None:
    table = broker_table(CONNECTING, GOALS, 118)
    assert table.rows == ()
    assert "waiting for the cluster to answer" in table.why_empty


def test_the_headline_names_brokers_and_resources_above_the_band() -> None:
    assert plain(headline(solving(), GOALS, 120)) == (
        "OVER broker 1 in +200 %, out +200 %   under 2 -100 %; 3 -100 %"
    )


def test_the_headline_of_a_balanced_cluster() -> None:
    message = plain(headline(balanced_after_run(), GOALS, 120))
    assert message == "every broker is within its tolerance band"


def test_a_resource_below_its_floor_is_not_balanced() -> None:
    balance = tuple(Goal(resource=r, floor=1e12) for r in (Resource.NET_IN, Resource.NET_OUT))
    quiet = GOALS.model_copy(update={"balance": balance})
    view = replace(solving(), evaluation=evaluate(skewed(), quiet, ()))
    assert "too little load" in plain(headline(view, quiet, 120))
    assert "in below its floor, not balanced" in averages_line(view, quiet)
    row = broker_table(view, quiet, 78).rows[0]
    assert not any("!" in plain(c) for c in row.cells)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (estimated(), ", full bar: capacity"),
        (solving(), ", full bar: twice the average (capacity unknown)"),
        (CONNECTING, ""),
    ],
)
def test_the_meaning_of_a_full_bar_is_shown(view: LoopView, message: str) -> None:
    assert scale_text(view, GOALS) == message


def test_a_capacity_of_a_resource_without_bars_is_not_a_full_bar() -> None:
    view = solving()
    disks = _with_brokers(view, capacity={Resource.DISK: 1e12})
    assert scale_text(disks, GOALS) == scale_text(view, GOALS)


def test_if_some_capacities_are_known_both_scales_are_named() -> None:
    view = _with_brokers(solving(), capacity={Resource.NET_IN: 1e7})
    message = ", full bar: capacity, or twice the average if unknown"
    assert scale_text(view, GOALS) == message


def test_a_cluster_without_partitions_is_explained() -> None:
    assert "no partitions yet" in plain(headline(no_partitions(), GOALS, 120))


def test_racks_with_long_names_remain_distinguishable() -> None:
    view = solving()
    brokers = tuple(
        broker.model_copy(update={"rack": f"rack-{broker.id}"}) for broker in view.brokers
    )
    racks = [
        plain(row.cells[1]) for row in broker_table(replace(view, brokers=brokers), GOALS, 78).rows
    ]
    assert len({*racks}) == len(brokers)


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40), (160, 50), (200, 60)], ids=str)
async def test_the_largest_deviation_is_visible_at_every_size(size: tuple[int, int]) -> None:
    async with stage(plan_ready(), size=size) as on:
        table = on.app.screen.query_one("#brokers", KeyedTable)
        assert "deviation" in table.render_line(0).text
        assert "in +200%" in table.render_line(1).text


@pytest.mark.parametrize("width", range(20, 130))
def test_the_headline_names_as_many_brokers_as_fit(width: int) -> None:
    message = plain(headline(solving(), GOALS, width))
    whole = "OVER broker 1 in +200 %, out +200 %   under 2 -100 %; 3 -100 %"
    one = "OVER broker 1 in +200 %, out +200 %   under 2 -100 %; and 1 more"
    none = "OVER 1 broker   under 2 brokers"
    assert message == next((w for w in (whole, one) if len(w) <= width), none)
