"""The table of brokers: deviations, and the effect of the plan."""

from dataclasses import replace

import pytest

from control.loop.view import LoopView
from model.evaluate import evaluate
from model.goals.goals import Goal
from model.ids import BrokerId
from model.snapshot.snapshot import BrokerState, LogDir, Resource, Snapshot
from tests.support.tui.app_harness import stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import (
    CONNECTING,
    GOALS,
    balanced_after_run,
    balanced_cluster,
    judged,
    measuring,
    no_partitions,
    plan,
    plan_ready,
    running,
    skewed,
    solving,
)
from tui.viewmodel.brokers.brokers import LEAST_BAR, broker_table, layout_for
from tui.viewmodel.brokers.deviation_bar import PLANNED, SHADE
from tui.viewmodel.brokers.gauges import ORDER, gauges
from tui.viewmodel.brokers.headline import averages_line, balance_line
from tui.viewmodel.brokers.load_history import Trail
from tui.viewmodel.cells import Role, plain
from tui.viewmodel.sort_filter import Wish, arranged
from tui.widgets.keyed_table import KeyedTable

ALL = frozenset(ORDER)


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
    assert "!+200%" in rows["1"]["net_in"]
    assert "<-100%" in rows["2"]["net_in"]
    assert "5.00 MB/s" in rows["1"]["net_in"]


def test_within_the_band_there_is_no_marker_and_no_colour() -> None:
    rows = _rows(balanced_after_run())
    assert not any("!" in c or "<" in c for row in rows.values() for c in row.values())
    table = broker_table(balanced_after_run(), GOALS, 118)
    roles = {span.role for row in table.rows for cell in row.cells for span in cell}
    assert not roles & {Role.OVER, Role.UNDER, Role.ALARM}


def test_a_plan_is_marked_in_the_bar() -> None:
    assert PLANNED in _rows(plan_ready())["1"]["net_in"]
    before = _rows(solving())
    assert PLANNED not in before["1"]["net_in"]
    assert SHADE in before["1"]["net_in"]


def test_a_share_of_the_capacity_is_shown_where_it_is_known() -> None:
    view = _with_brokers(solving(), capacity={Resource.NET_IN: 10e6})
    assert gauges(view, GOALS)[BrokerId(1), Resource.NET_IN].scale == 10e6
    rows = _rows(view)
    assert " 50% " in rows["1"]["net_in"]
    assert rows["2"]["net_in"].count("%") == 1


@pytest.mark.parametrize("width", [58, 78, 118, 198])
def test_a_load_above_a_capacity_limit_is_an_alarm(width: int) -> None:
    view = _with_brokers(balanced_after_run(), capacity={Resource.NET_IN: 1.7e6})
    table = broker_table(replace(view, plan=None), GOALS, width)
    row = next(row for row in table.rows if row.key == "1")
    alarms = [span.text for cell in row.cells for span in cell if span.role is Role.ALARM]
    assert len(alarms) == 1


def test_the_worst_broker_comes_first() -> None:
    assert list(_rows(solving())) == ["1", "2", "3"]
    third = {BrokerId(1): 0.1, BrokerId(2): -0.3, BrokerId(3): 0.5}
    evaluation = replace(judged(skewed()), deviations={"net_in": third})
    assert list(_rows(replace(solving(), evaluation=evaluation))) == ["3", "2", "1"]


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
    assert _rows(solving())["1"]["off"].split() == ["in", "!+200%"]
    assert _rows(plan_ready(), 140)["1"]["off"].split() == ["in", "!+200%", "→", "-1%"]
    assert _rows(plan_ready(), 140)["3"]["off"].split() == ["in", "<-100%", "→", "+2%"]
    assert _rows(plan_ready(), 82)["3"]["off"].split() == ["in", "<-100%"]


def test_another_resource_that_is_worst_after_the_plan_is_named() -> None:
    first = plan().brokers[0]
    off = {**first.deviation_after, Resource.NET_OUT: 0.4}
    changed = first.model_copy(update={"deviation_after": off})
    of = plan().model_copy(update={"brokers": (changed, *plan().brokers[1:])})
    shown = _rows(plan_ready(of=of), 140)["1"]["off"].split()
    assert shown == ["in", "!+200%", "→", "out", "!+40%"]


def test_replicas_and_leaders_are_counted() -> None:
    assert _rows(plan_ready())["1"]["count"] == "8/8"
    view = replace(running(), snapshot=balanced_cluster(), evaluation=judged(balanced_cluster()))
    assert _rows(view)["1"]["count"] == "4/4"


def test_a_narrow_panel_draws_one_resource_and_the_next_on_request() -> None:
    first, second = (
        {c.key: plain(cell) for c, cell in zip(table.columns, table.rows[0].cells, strict=True)}
        for table in (broker_table(solving(), GOALS, 76, first) for first in (0, 1))
    )
    assert SHADE in first["net_in"]
    assert first["net_out"].strip() == second["net_in"].strip() == "!+200%"
    assert SHADE in second["net_out"]


@pytest.mark.parametrize("width", [56, 76, 96, 116, 140, 156, 196])
@pytest.mark.parametrize("loads", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("share", [True, False])
def test_every_layout_fits_and_leaves_no_blank(width: int, loads: int, share: bool) -> None:
    table_width = width
    layout = layout_for(table_width, ORDER[:loads], balanced=ALL, share=share)
    each = layout.beside + layout.bar + 1
    used = layout.id + layout.rack + layout.worst + 13 * layout.history + 9 * layout.counts
    used += each * len(layout.drawn) + 7 * len(layout.others)
    assert table_width - len(layout.drawn) < used <= table_width
    assert layout.bar >= LEAST_BAR
    assert len(layout.drawn) == 1 if width < 98 else len(layout.drawn) > min(1, loads - 1)


def test_at_120_columns_two_resources_have_load_share_and_bar() -> None:
    layout = layout_for(116, ORDER[:3], balanced=frozenset(ORDER[:2]), beside=(4, 7, 3), share=True)
    assert layout.load
    assert layout.share
    assert layout.counts
    assert len(layout.drawn) == 2


@pytest.mark.parametrize("width", [56, 76, 116, 156, 196])
def test_every_cell_fits_its_column(width: int) -> None:
    table = broker_table(plan_ready(), GOALS, width)
    for row in table.rows:
        assert len(row.values) == len(table.columns)
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width
    assert sum(column.width for column in table.columns) <= width


def test_a_wide_table_has_a_sparkline_of_each_broker() -> None:
    trail = Trail()
    for at, snapshot in enumerate((skewed(), balanced_cluster(), skewed())):
        trail = trail.with_sample(at, judged(snapshot))
    table = broker_table(solving(), GOALS, 160, 0, trail.recent)
    at = [c.key for c in table.columns].index("history")
    assert [plain(row.cells[at]).strip() for row in table.rows] == ["█▃█", "▁▃▁", "▁▃▁"]


def test_a_long_history_is_thinned_out_evenly() -> None:
    trail = Trail()
    for at in range(100):
        trail = trail.with_sample(at, judged(skewed()))
    assert len(trail.recent.samples) == 12


def test_the_state_of_a_broker_that_is_not_alive_is_shown() -> None:
    view = _with_brokers(solving(), state=BrokerState.DEAD)
    assert _rows(view)["1"]["state"] == "DEAD"
    assert "state" not in _rows(solving())["1"]
    view = _with_brokers(solving(), state=BrokerState.DRAINING)
    assert _rows(view)["1"]["state"] == "draining"


def test_brokers_show_before_their_loads_are_known() -> None:
    assert _rows(measuring())["1"]["net_in"].strip() == "-"


def test_an_empty_table_is_explained() -> None:
    table = broker_table(CONNECTING, GOALS, 118)
    assert table.rows == ()
    assert "waiting for the cluster to answer" in table.why_empty


def test_the_balance_is_a_sentence() -> None:
    assert plain(balance_line(solving(), GOALS, 120)) == (
        " IMBALANCED  worst: broker 1, bytes in +200%   3 of 3 brokers outside the tolerance band"
    )
    assert plain(balance_line(balanced_after_run(), GOALS, 120)) == (
        " BALANCED   every broker is within its tolerance band; worst: broker 3, bytes in +2%"
    )


@pytest.mark.parametrize("width", range(50, 130))
def test_the_worst_broker_is_never_truncated(width: int) -> None:
    line = plain(balance_line(solving(), GOALS, width))
    assert "worst: broker 1, bytes in +200%" in line
    assert len(line) <= width
    line = plain(balance_line(balanced_after_run(), GOALS, width))
    assert "worst: broker 3, bytes in +2%" in line or width < 55
    assert len(line) <= width


def test_a_resource_below_its_floor_is_not_balanced() -> None:
    balance = tuple(Goal(resource=r, floor=1e12) for r in (Resource.NET_IN, Resource.NET_OUT))
    quiet = GOALS.model_copy(update={"balance": balance})
    view = replace(solving(), evaluation=evaluate(skewed(), quiet, ()))
    assert "too little load" in plain(balance_line(view, quiet, 120))
    assert "in below its floor, not balanced" in averages_line(view, quiet)
    row = broker_table(view, quiet, 78).rows[0]
    assert not any("!" in plain(c) for c in row.cells)


def test_a_cluster_without_partitions_is_explained() -> None:
    assert "no partitions yet" in plain(balance_line(no_partitions(), GOALS, 120))


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
        assert "worst" in table.render_line(0).text
        assert "in !+200%" in table.render_line(1).text


def test_brokers_in_trouble_come_before_those_that_deviate_most() -> None:
    view = crowded(60, 50, 3000)
    disk = LogDir(path="/data/2", cordoned=True, failed=True)
    updates: dict[int, dict[str, object]] = {
        42: {"state": BrokerState.DEAD},
        7: {"state": BrokerState.SLOW},
        30: {"log_dirs": (LogDir(path="/data/1"), disk)},
    }
    brokers = tuple(b.model_copy(update=updates.get(b.id, {})) for b in view.brokers)
    assert view.snapshot is not None
    header = view.snapshot.header.model_copy(update={"brokers": brokers})
    snapshot = Snapshot(header, view.snapshot.partitions)
    view = replace(view, brokers=brokers, snapshot=snapshot, evaluation=judged(snapshot))
    for width in (58, 78, 118, 198):
        rows = _rows(view, width)
        assert [*rows][:3] == ["42", "30", "7"]
        columns = broker_table(view, GOALS, width).columns
        assert sum(c.width for c in columns) <= width
        assert next(c.width for c in columns if c.key == "state") > len("DISK FAILED")
        assert [row["state"] for row in rows.values()][:4] == [
            *("DEAD", "DISK FAILED", "SLOW", "alive")
        ]
    table = arranged(broker_table(view, GOALS, 118), Wish().sorted_by("off"))
    assert table.rows[0].key == "42"
