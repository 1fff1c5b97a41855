"""The table of brokers: over, under, and what the plan would change."""

from dataclasses import replace

import pytest

from control.view import LoopView
from model.evaluate import evaluate
from model.goals import Goal
from model.ids import BrokerId
from model.snapshot import BrokerState, Resource, Snapshot
from tests.tui.views import (
    CONNECTING,
    GOALS,
    judged,
    level_after_run,
    levelled,
    measuring,
    plan_ready,
    running,
    skewed,
    solving,
)
from tui.viewmodel.brokers import (
    LAYOUTS,
    broker_table,
    headline,
    layout_for,
    levels_line,
)
from tui.viewmodel.cells import plain
from tui.viewmodel.gauges import gauges

WIDE, NARROW = layout_for(118), layout_for(78)


def _rows(view: LoopView, width: int = 118) -> dict[str, dict[str, str]]:
    table = broker_table(view, GOALS, layout_for(width))
    keys = [c.key for c in table.columns]
    return {
        row.key: dict(zip(keys, (plain(c) for c in row.cells), strict=True))
        for row in table.rows
    }


def _with_brokers(view: LoopView, **update: object) -> LoopView:
    """The same view over brokers of which the first is changed."""
    first, *others = skewed().header.brokers
    brokers = (first.model_copy(update=update), *others)
    header = skewed().header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, skewed().partitions)
    return replace(
        view, brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot)
    )


def test_over_and_under_the_band_have_a_marker_beside_the_number() -> None:
    rows = _rows(solving())
    assert "!5.00 MB/s" in rows["1"]["net_in-load"]
    assert "<    0 B/s" in rows["2"]["net_in-load"]


def test_within_the_band_there_is_no_marker() -> None:
    rows = _rows(level_after_run())
    assert not any("!" in c or "<" in c for row in rows.values() for c in row.values())


def test_the_level_is_in_the_middle_of_a_bar_without_capacity() -> None:
    drawn = _rows(solving())["2"]["net_in-load"][: WIDE.bar]
    assert drawn.index("│") == WIDE.bar // 2


def test_a_bar_is_relative_to_the_capacity_where_it_is_known() -> None:
    view = _with_brokers(solving(), capacity={Resource.NET_IN: 10e6})
    found = gauges(view, GOALS)[BrokerId(1), Resource.NET_IN]
    assert found.scale == 10e6
    drawn = _rows(view)["1"]["net_in-load"][: WIDE.bar]
    assert drawn.replace("│", "█").count("█") == WIDE.bar // 2


def test_levels_follow_the_capacities_where_all_are_known() -> None:
    brokers = tuple(
        b.model_copy(update={"capacity": {Resource.NET_IN: 1e7 * b.id}})
        for b in skewed().header.brokers
    )
    header = skewed().header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, skewed().partitions)
    view = replace(solving(), snapshot=snapshot, evaluation=judged(snapshot))
    found = gauges(view, GOALS)
    levels = [found[BrokerId(i), Resource.NET_IN].level for i in (1, 2, 3)]
    assert levels == pytest.approx([5e6 / 6, 5e6 / 3, 5e6 / 2])


def test_a_plan_adds_an_arrow_and_the_deviation_after_it() -> None:
    assert _rows(solving())["1"]["net_in-off"].split() == ["+200%"]
    assert _rows(plan_ready())["1"]["net_in-off"].split() == ["+200%", "▼", "-1%"]
    assert _rows(plan_ready())["3"]["net_in-off"].split() == ["-100%", "▲", "+2%"]


def test_replicas_and_leaders_show_now_and_after_the_plan() -> None:
    assert _rows(plan_ready())["1"]["count"] == "8/8 → 4/4"
    assert _rows(solving())["1"]["count"] == "8/8"


def test_moves_that_are_done_already_do_not_count_twice() -> None:
    view = replace(running(), snapshot=levelled(), evaluation=judged(levelled()))
    assert _rows(view)["1"]["count"] == "4/4"


def test_a_narrow_panel_has_number_and_marker_without_bar() -> None:
    cells = _rows(solving(), 78)["1"]
    assert cells["net_in-load"].strip() == "!5.00 MB/s"


@pytest.mark.parametrize(("least", "layout"), LAYOUTS)
def test_every_layout_fits_its_panel_and_every_cell_its_column(
    least: int, layout: object
) -> None:
    table = broker_table(plan_ready(), GOALS, layout_for(least))
    assert layout_for(least) == layout
    assert sum(c.width for c in table.columns) <= max(least, 78)
    for row in table.rows:
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width


def test_a_broker_that_is_not_alive_says_so_in_a_word() -> None:
    view = _with_brokers(solving(), state=BrokerState.DEAD)
    assert _rows(view)["1"]["state"] == "DEAD"
    view = _with_brokers(solving(), state=BrokerState.DRAINING)
    assert _rows(view)["1"]["state"] == "draining"


def test_brokers_show_before_their_loads_are_known() -> None:
    assert _rows(measuring())["1"]["net_in-load"].strip() == "-"


def test_an_empty_table_says_what_would_fill_it() -> None:
    table = broker_table(CONNECTING, GOALS, WIDE)
    assert table.rows == ()
    assert "the cluster has to answer first" in table.why_empty


def test_the_headline_names_who_is_over_what() -> None:
    assert plain(headline(solving(), GOALS)) == (
        "OVER broker 1 in +200 %, out +200 %   under 2 -100 %; 3 -100 %"
    )


def test_the_headline_of_a_level_cluster() -> None:
    words = plain(headline(level_after_run(), GOALS))
    assert words == "every broker is within its band"


def test_a_resource_under_its_floor_is_not_judged() -> None:
    balance = tuple(
        Goal(resource=r, floor=1e12) for r in (Resource.NET_IN, Resource.NET_OUT)
    )
    quiet = GOALS.model_copy(update={"balance": balance})
    view = replace(solving(), evaluation=evaluate(skewed(), quiet, ()))
    assert "too little load" in plain(headline(view, quiet))
    assert "in under its floor, not balanced" in levels_line(view)
    row = broker_table(view, quiet, NARROW).rows[0]
    assert not any("!" in plain(c) for c in row.cells)
