"""The brokers now and after the plan: what fits, and what gives way."""

import pytest

from model.plan.plan import Plan
from tests.support.tui.loop_views import plan
from tui.viewmodel.brokers.broker_diff import broker_table
from tui.viewmodel.brokers.deviation_bar import PLANNED
from tui.viewmodel.cells import fitted, plain


def _rows(of: Plan, width: int) -> dict[str, str]:
    return {
        row.key: "".join(plain(cell) for cell in row.cells) for row in broker_table(of, width).rows
    }


def test_bars_are_drawn_where_there_is_room() -> None:
    keys = len(plan().levels)
    wide = _rows(plan(), 90)
    assert all(row.count(PLANNED) == keys for row in wide.values())
    assert "!+200% → -1%" in wide["1"]
    # The figures alone take all of it.
    assert not any(PLANNED in row for row in _rows(plan(), 40).values())


def test_where_one_bar_fits_it_shows_the_dimension_that_is_worst() -> None:
    other = {"deviation_before": {"net_in": 0.1, "net_out": -1.0}}
    first, *rest = plan().brokers
    of = plan().model_copy(update={"brokers": (first, rest[0].model_copy(update=other), *rest[1:])})
    rows = _rows(of, 50)
    assert all(row.count(PLANNED) == 1 for row in rows.values())
    # By bytes out: to the left of the average, by half of the axis.
    assert rows["2"].rstrip().endswith("◆░")


@pytest.mark.parametrize("replicas", [0, 101_100])
def test_no_row_is_wider_than_the_panel(replicas: int) -> None:
    """A table that has to be scrolled hides more than a shorter bar does."""
    counts = {"replicas_before": replicas, "replicas_after": replicas}
    many = tuple(b.model_copy(update=counts) for b in plan().brokers)
    of = plan().model_copy(update={"brokers": many})
    least = sum(column.width for column in broker_table(of, 0).columns)
    for width in range(least, 220):
        table = broker_table(of, width)
        assert sum(column.width for column in fitted(table.columns, table.rows)) <= width


def test_loads_give_way_to_bars() -> None:
    """A bar shows at a glance what the loads beside it would have to be read for."""
    for width in range(60, 220):
        keys = {column.key for column in broker_table(plan(), width).columns}
        drawn = any(PLANNED in row for row in _rows(plan(), width).values())
        assert drawn or "net_in load" not in keys
    assert "net_in load" in keys


def test_bars_of_one_plan_share_an_axis() -> None:
    """Otherwise equal lengths would mean different deviations."""
    columns = broker_table(plan(), 120).columns
    ends = {c.label.split()[-1] for c in columns if c.key in plan().levels}
    assert ends == {"+200%"}
