"""Tables wider than their part of the terminal."""

import re
from collections.abc import Sequence

import pytest

from tests.support.tui.app_harness import stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import plan_ready, running
from tui.viewmodel.cells import Column, Row, cell, figure_at, fitted, plain
from tui.widgets.keyed_table import KeyedTable, unless_cut
from tui.widgets.table_pane import TablePane

DIGIT = re.compile(r"[\d.,]")


@pytest.mark.parametrize(
    ("left", "right", "seen"),
    [
        (0, 8, "   0.146"),
        (-20, 8, "   0.146"),
        (0, 7, "   …"),
        (0, 5, "   …"),
        (3, 20, "   0.146"),
        (4, 20, "       …"),
    ],
)
def test_a_figure_at_the_edge_of_a_table_is_shown_whole_or_not_at_all(
    left: int, right: int, seen: str
) -> None:
    assert plain(unless_cut(cell("   0.146"), 8, left, right)) == seen


def test_words_before_a_truncated_figure_are_kept() -> None:
    reason = cell("relieves broker 1 (net_in 200 % over its level)")
    assert plain(unless_cut(reason, 60, 0, 27)) == "relieves broker 1 (net_in …"


def test_words_at_the_edge_of_a_table_are_truncated() -> None:
    assert unless_cut(cell("relieves"), 20, 0, 4) == cell("relieves")


@pytest.mark.parametrize("right", range(1, 5))
def test_a_range_is_shown_whole_or_not_at_all(right: int) -> None:
    assert plain(unless_cut(cell("7-11"), 6, 0, right)) in ("…", "7-11")


async def test_a_scrollbar_covers_no_part_of_a_figure() -> None:
    async with stage(crowded(3, 30, 1230), size=(60, 16)) as on:
        await on.press("4")
        table = on.app.screen.query_one("#topics", KeyedTable)
        for width in range(60, 74):
            await on.pilot.resize_terminal(width, 16)
            await on.settle()
            _assert_figures_whole(table)


def _assert_figures_whole(table: KeyedTable) -> None:
    seen = table.scrollable_content_region
    assert table.show_vertical_scrollbar
    for y, row in enumerate(table.rows_shown[: seen.height - 1], 1):
        line = table.render_line(y).text[: seen.width]
        cells = zip(table.columns_shown, row.cells, strict=True)
        whole = " " + "".join(plain(c).ljust(of.width) for of, c in cells)
        cut = figure_at(whole, seen.width)
        assert cut is None or line.rstrip().endswith("…"), line


async def test_the_last_row_is_not_under_a_scrollbar() -> None:
    async with stage(crowded(3, 30, 1230), size=(60, 16)) as on:
        await on.press("4", "end")
        table = on.app.screen.query_one("#topics", KeyedTable)
        table.styles.overflow_x = "scroll"
        await on.settle()
        assert table.show_horizontal_scrollbar
        await on.press("home", "end")
        last = table.cursor_row + 1 - table.scroll_offset.y
        assert last < table.scrollable_content_region.height


@pytest.mark.parametrize("key", ["1", "2", "3", "4"])
async def test_no_table_splits_a_figure_at_any_width(key: str) -> None:
    view = running() if key == "3" else plan_ready()
    async with stage(view, size=(60, 30), running=key == "3") as on:
        await on.press(key)
        for table in on.app.screen.query(KeyedTable):
            for width in range(20, table.virtual_size.width):
                _assert_whole(table, width)


def _assert_whole(table: KeyedTable, width: int) -> None:
    for row in table.rows_shown:
        cells = zip(table.columns_shown, row.cells, strict=True)
        whole = "".join(plain(c)[: of.width].ljust(of.width) for of, c in cells)
        shown = table.line(row.cells, 0, width).text[:width]
        cut = DIGIT.fullmatch(shown[-1]) and DIGIT.fullmatch(whole[width])
        assert not cut, (width, shown)


async def test_a_table_that_is_shown_already_is_not_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        measured: list[object] = []

        def counted(columns: Sequence[Column], rows: Sequence[Row]) -> tuple[Column, ...]:
            measured.append(rows)
            return fitted(columns, rows)

        monkeypatch.setattr("tui.widgets.keyed_table.fitted", counted)
        table = on.app.screen.query_one("#moves", KeyedTable)
        pane = table.parent
        assert isinstance(pane, TablePane)
        pane.renew()
        pane.renew()
        assert measured == []
