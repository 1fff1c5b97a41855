"""Topics with their skew, and the partitions of one."""

from dataclasses import replace

import numpy as np
import pytest
from textual.events import Paste

from control.loop.view import LoopView, Mode
from model.ids import BrokerId, TopicName
from model.snapshot.replication import Replication
from model.snapshot.snapshot import RecentMove, Snapshot
from model.snapshot.topic_skew import topic_skew
from tests.support.model import clusters
from tests.support.tui.app_harness import stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import (
    AT_MS,
    CONNECTING,
    GOALS,
    balanced_after_run,
    judged,
    plan_ready,
    running,
    skewed,
    solving,
)
from tui.viewmodel.cells import Table, plain
from tui.viewmodel.sort_filter import Filter, Wish
from tui.viewmodel.topics.partitions import partition_table
from tui.viewmodel.topics.topics import ROWS_SHOWN, topic_table
from tui.widgets.keyed_table import KeyedTable

ORDERS = TopicName("orders")


def _topics(view: LoopView, width: int = 118, wish: Wish | None = None) -> Table:
    return topic_table(view, GOALS, width, wish or Wish())


def _partitions(view: LoopView, wish: Wish | None = None) -> Table:
    return partition_table(view, GOALS, ORDERS, 118, wish or Wish())


def _cells(table: Table, row: int = 0) -> dict[str, str]:
    keys = (c.key for c in table.columns)
    cells = (plain(c).strip() for c in table.rows[row].cells)
    return dict(zip(keys, cells, strict=True))


def test_a_topic_shows_its_load_and_cmaks_figures() -> None:
    result, one = _cells(_topics(solving())), topic_skew(skewed(), ORDERS)
    assert result["topic"] == "orders"
    assert result["partitions"] == "8"
    assert result["in"] == result["out"] == "5.00M"
    assert result["spread"] == f"{one.spread:.0%}" == "33%"
    assert result["each"] == "!0-8 of 2-3"
    assert result["preferred"] == "100%"


def test_cmaks_figures_are_shown_at_eighty_columns() -> None:
    keys = {c.key for c in _topics(solving(), 76).columns}
    assert {"skewed", "leaders", "spread", "brokers", "under", "preferred"} <= keys


@pytest.mark.parametrize("width", [56, 76, 96, 116, 156, 196])
def test_no_column_is_off_screen(width: int) -> None:
    columns = _topics(crowded(3, 30, 1230), width).columns
    assert sum(column.width for column in columns) == width
    assert {"skewed", "leaders", "spread", "under", "preferred"} <= {c.key for c in columns}


def test_the_share_of_under_replicated_partitions_is_shown_and_sorted_by() -> None:
    assert _cells(_topics(replace(solving(), replication=None)))["under"] == "-"
    assert _cells(_topics(solving()))["under"] == "0%"
    lacking = Replication(under_replicated=2, offline=0, behind_of=((ORDERS, 2),))
    assert _cells(_topics(replace(solving(), replication=lacking), 56))["under"] == "25%"
    many = crowded(3, 30, 1230)
    assert many.snapshot is not None
    name = many.snapshot.header.topics[7].name
    one = Replication(under_replicated=1, offline=0, behind_of=((name, 1),))
    table = _topics(replace(many, replication=one), wish=Wish(sort="under", down=True))
    assert (table.rows[0].key, _cells(table)["under"]) == (name, "2%")


def test_names_come_before_the_replicas_on_each_broker() -> None:
    short, long = _topics(solving()), _topics(crowded(3, 30, 1230))
    assert "each" in {c.key for c in short.columns}
    assert "each" not in {c.key for c in long.columns}
    assert long.columns[0].width >= 29


def test_partitions_without_a_leader_are_an_alarm() -> None:
    odd = clusters.snapshot(clusters.brokers(3), [(1, 2), (1, 2), (1, 2)], leaders=[1, 2, -1])
    view = replace(solving(), snapshot=odd)
    assert _cells(_topics(view))["note"] == "1 OFFLINE"
    assert _cells(_topics(view, 76))["partitions"] == "!3"


def test_an_evenly_spread_topic_has_no_marker() -> None:
    assert _cells(_topics(balanced_after_run()))["each"] == "!2-4 of 2-3"
    columns = skewed().partitions
    homes = np.arange(1, 9) % 3 + 1
    even = Snapshot(skewed().header, replace(columns, replica_broker=homes, leader=homes))
    view = replace(solving(), snapshot=even, evaluation=judged(even))
    assert _cells(_topics(view))["each"] == "2-3 of 2-3"


def test_excluded_topics_and_partitions_in_cooldown_are_shown() -> None:
    header = skewed().header
    moved = RecentMove(topic=ORDERS, partition=3, left=(BrokerId(2),), at_ms=AT_MS - 60_000)
    long_ago = moved.model_copy(update={"partition": 4, "at_ms": AT_MS - 10**8})
    update = {"recent_moves": (moved, long_ago)}
    rested = Snapshot(header.model_copy(update=update), skewed().partitions)
    view = replace(solving(), snapshot=rested)
    assert _cells(_topics(view))["note"] == "1 in cooldown"
    assert _cells(_partitions(view), 3)["note"] == "cooldown 22:22:20Z"
    assert _cells(_partitions(view), 4)["note"] == ""
    excluding = GOALS.model_copy(
        update={"excluded_topics": GOALS.excluded_topics.model_copy(update={"exact": ("orders",)})}
    )
    assert _cells(topic_table(view, excluding, 118, Wish()))["note"] == ("excluded, 1 in cooldown")


def test_an_empty_topic_table_is_explained() -> None:
    assert "loads are still being measured" in _topics(CONNECTING).why_empty


def test_a_missing_or_non_preferred_leader_is_shown() -> None:
    odd = clusters.snapshot(clusters.brokers(3), [(1, 2), (1, 2), (1, 2)], leaders=[1, 2, -1])
    view = replace(solving(), snapshot=odd)
    table = partition_table(view, GOALS, clusters.TOPIC, 118, Wish())
    reported = [_cells(table, row)["leader"] for row in range(3)]
    assert reported == ["1", "2, not 1", "NONE"]


@pytest.mark.parametrize("width", [78, 98, 118, 198])
def test_cells_fit_their_columns_and_columns_the_width(width: int) -> None:
    view = crowded(3, 700, 2000)
    tables = (
        _topics(view, width, Wish(sort="each")),
        partition_table(view, GOALS, skewed().header.topics[0].name, width, Wish()),
    )
    for table in tables:
        assert sum(c.width for c in table.columns) == width
        for row in table.rows:
            for column, shown in zip(table.columns, row.cells, strict=True):
                assert len(plain(shown)) <= column.width


def test_of_many_topics_the_first_show_and_the_others_are_counted() -> None:
    table = _topics(crowded(3, 700, 2000))
    assert len(table.rows) == ROWS_SHOWN
    assert table.note.startswith("the first 500 of 700 topics; filter or sort")


def test_a_filter_finds_topics_that_are_not_displayed() -> None:
    table = _topics(crowded(3, 700, 2000), wish=Wish(filter=Filter("topic-00069")))
    assert len(table.rows) == 10
    assert table.note == "10 of 700 topics"
    none = _topics(crowded(3, 700, 2000), wish=Wish(filter=Filter("zoe")))
    assert "Nothing matches" in none.why_empty


def test_sorting_applies_to_all_topics_not_only_displayed_ones() -> None:
    view = crowded(3, 700, 2000)
    assert view.snapshot is not None
    columns = view.snapshot.partitions
    sums = np.bincount(columns.topic, columns.loads[:, 0])
    table = _topics(view, wish=Wish(sort="in"))
    names = [t.name for t in view.snapshot.header.topics]
    assert table.rows[0].key == names[int(np.argmax(sums))]
    turned = _topics(view, wish=Wish(sort="in", down=False))
    assert turned.rows[0].key == names[int(np.argmin(sums))]


def test_a_hundred_thousand_partitions_of_one_topic_are_filtered_and_sorted() -> None:
    view = crowded(300, 1, 100_000)
    assert view.snapshot is not None
    topic = view.snapshot.header.topics[0].name
    wish = Wish(filter=Filter("^99.* leader 17 "), sort="in")
    table = partition_table(view, GOALS, topic, 118, wish)
    leaders = {_cells(table, i)["leader"] for i in range(len(table.rows))}
    assert leaders == {"17"}
    assert all(row.key.startswith("99") for row in table.rows)
    unfiltered = partition_table(view, GOALS, topic, 118, Wish())
    assert unfiltered.note.startswith("the first 500 of 100,000 partitions")


async def test_enter_opens_the_partitions_and_escape_closes_them() -> None:
    async with stage(plan_ready()) as on:
        await on.press("4", "enter")
        assert len(on.table("#partitions")) == 8
        await on.press("down", "down", "s", "escape")
        assert on.app.current_mode == "topics"
        assert on.app.focused is on.app.screen.query_one("#topics")
        assert not on.app.screen.query_one("PartitionPanel").display


async def test_a_click_puts_the_cursor_on_a_topic_and_another_one_opens_it() -> None:
    async with stage(crowded(3, 700, 2000)) as on:
        await on.press("4")
        table = on.app.screen.query_one("#topics", KeyedTable)
        await on.pilot.click("#topics", offset=(3, 2))
        await on.settle()
        assert table.cursor_row == 1
        assert not on.app.screen.query_one("PartitionPanel").display
        await on.pilot.click("#topics", offset=(3, 2))
        await on.settle()
        assert len(on.table("#partitions")) == 3


async def test_the_wheel_scrolls_rows_under_a_header_that_stays() -> None:
    async with stage(crowded(3, 700, 2000), size=(120, 40)) as on:
        await on.press("4")
        table = on.app.screen.query_one("#topics", KeyedTable)
        head, first = table.render_line(0).text, table.render_line(1).text
        table.scroll_to(y=5, animate=False)
        await on.settle()
        assert table.render_line(0).text == head
        assert table.render_line(1).text != first
        assert table.cursor_row == 0
        await on.press("end")
        assert table.render_line(table.size.height - 1).text.startswith("▌topic-000")
        assert (table.key_at_cursor or "").startswith("topic-000499")


async def test_a_topic_deleted_meanwhile_is_reported() -> None:
    async with stage(crowded(3, 700, 2000)) as on:
        await on.press("4", "enter")
        await on.show(plan_ready())
        assert "no longer exists" in on.words("PartitionPanel .note")


async def test_pasted_garbage_in_a_filter_is_harmless() -> None:
    async with stage(plan_ready()) as on:
        await on.press("4", "slash")
        for garbage in ("(" * 500, "[" + "é" * 60, "a{9}{9}", "\x1b[31m*\n\x00"):
            on.app.post_message(Paste(garbage))
            await on.settle()
        assert "regular expression" in on.words("TopicPanel .note")
        assert len(on.table("#topics")) == 1
        await on.press("escape")
        assert len(on.table("#topics")) == 1


async def test_a_plan_for_the_selected_topic_is_requested_and_shown() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        await on.press("4", "t")
        assert [asks.topics for asks in on.loop.proposals.asked] == [(ORDERS,)]
        assert on.app.current_mode == "plan"


async def test_during_a_run_no_plan_for_a_topic_is_requested() -> None:
    async with stage(running(), running=True) as on:
        await on.press("4", "t")
        assert on.loop.proposals.asked == []
        assert on.app.current_mode == "topics"
        assert "a run is in progress" in on.app.screen.active_bindings["t"].tooltip
