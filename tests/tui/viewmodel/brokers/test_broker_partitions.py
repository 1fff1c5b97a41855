"""The replicas of one broker."""

import pytest

from model.ids import BrokerId
from tests.support.tui.app_harness import stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import CONNECTING, plan_ready, solving
from tui.screens.broker_partitions import BrokerPartitionsScreen
from tui.viewmodel.brokers.broker_partitions import ROWS_SHOWN, partitions_of_broker
from tui.viewmodel.cells import plain
from tui.viewmodel.sort_filter import Filter, Wish
from tui.widgets.keyed_table import KeyedTable


def test_the_heaviest_replicas_come_first_with_role_and_replicas() -> None:
    table = partitions_of_broker(solving(), BrokerId(1), 100, Wish())
    first = [plain(cell).strip() for cell in table.rows[0].cells]
    assert first == ["orders-0", "leads", "1", "1.10M", "1.10M", "88.0 MB"]
    assert [row.key for row in table.rows[:3]] == ["orders-0", "orders-1", "orders-2"]


def test_a_broker_without_replicas_and_an_unknown_one_are_explained() -> None:
    none = partitions_of_broker(solving(), BrokerId(2), 100, Wish())
    assert (none.rows, none.why_empty) == ((), "This broker holds no replica.")
    unknown = partitions_of_broker(CONNECTING, BrokerId(1), 100, Wish())
    assert "Broker 1 is not known" in unknown.why_empty


@pytest.mark.parametrize("width", [56, 76, 116])
def test_columns_fill_the_width_and_further_replicas_are_counted(width: int) -> None:
    table = partitions_of_broker(crowded(3, 30, 6000), BrokerId(1), width, Wish())
    assert sum(column.width for column in table.columns) == width
    assert len(table.rows) == ROWS_SHOWN
    assert "more replicas" in table.note


def test_replicas_are_filtered() -> None:
    wish = Wish(filter=Filter("orders-3"))
    table = partitions_of_broker(solving(), BrokerId(1), 100, wish)
    assert [row.key for row in table.rows] == ["orders-3"]


@pytest.mark.parametrize("keys", [("enter",), ("m", "enter")])
async def test_enter_opens_the_replicas_of_the_selected_broker(keys: tuple[str, ...]) -> None:
    async with stage(crowded(60, 30, 6000), size=(60, 16)) as on:
        await on.press(*keys)
        assert isinstance(on.app.screen, BrokerPartitionsScreen)
        table = on.app.screen.query_one(KeyedTable)
        assert table.has_focus
        assert not table.show_horizontal_scrollbar
        await on.press("escape")
        assert len(on.app.screen_stack) == 1


async def test_a_filter_in_the_list_is_cleared_before_the_list_closes() -> None:
    async with stage(plan_ready()) as on:
        await on.press("enter", "slash", *"orders.3", "enter")
        table = on.app.screen.query_one(KeyedTable)
        assert [row.key for row in table.rows_shown] == ["orders-3"]
        await on.press("escape")
        assert isinstance(on.app.screen, BrokerPartitionsScreen)
        await on.press("escape")
        assert not isinstance(on.app.screen, BrokerPartitionsScreen)
