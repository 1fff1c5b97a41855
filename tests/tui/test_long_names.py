"""Names too long for their column: shortened in the middle, and in full for the selected row."""

from dataclasses import replace

import pytest

from control.loop.view import LoopView
from model.ids import TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import Snapshot
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import plan_ready, running

PREFIX = "payments.transactions.europe.central.settlement.clearing.v2."
LONG = TopicName(f"{PREFIX}orders-by-merchant-and-currency-017-compacted")


def _renamed(view: LoopView) -> LoopView:
    """The same with a topic whose name has more than 100 letters."""
    assert view.snapshot is not None
    assert view.plan is not None
    header = view.snapshot.header
    topics = tuple(t.model_copy(update={"name": LONG}) for t in header.topics)
    snapshot = Snapshot(header.model_copy(update={"topics": topics}), view.snapshot.partitions)

    def moved(move: Move) -> Move:
        return move.model_copy(update={"topic": LONG})

    plan = view.plan.model_copy(update={"moves": tuple(map(moved, view.plan.moves))})
    run = view.run and replace(
        view.run, moves=tuple(replace(m, move=moved(m.move)) for m in view.run.moves)
    )
    return replace(view, snapshot=snapshot, plan=plan, run=run)


def _drawn(on: Stage) -> list[str]:
    strips = on.app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).strip(" │╭╮╰╯─") for strip in strips]


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
@pytest.mark.parametrize(
    ("keys", "name"),
    [
        (("2",), f"{LONG}-0"),
        (("2", "enter"), f"{LONG}-0"),
        (("4",), LONG),
        (("1", "enter"), f"{LONG}-0"),
    ],
)
async def test_the_selected_name_is_shown_in_full(
    size: tuple[int, int], keys: tuple[str, ...], name: str
) -> None:
    assert len(LONG) > 100
    async with stage(_renamed(plan_ready()), size=size) as on:
        await on.press(*keys)
        assert name in "".join(_drawn(on))


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_a_shortened_partition_keeps_its_number(size: tuple[int, int]) -> None:
    async with stage(_renamed(plan_ready()), size=size) as on:
        await on.press("2")
        ends = [row[0].rpartition("-")[2] for row in on.table("#plan-moves, #moves")]
        assert ends == ["0", "1", "2", "4"]
        await on.press("down", "down")
        assert f"{LONG}-2" in "".join(_drawn(on))


async def test_where_there_is_little_room_the_row_comes_before_its_full_name() -> None:
    async with stage(_renamed(running()), size=(60, 16), running=True) as on:
        await on.press("3")
        lines = _drawn(on)
        assert any("-1 1 → 3" in line and "moving" in line for line in lines)
        await on.press("enter")
        assert f"{LONG}-1" in "".join(_drawn(on))


async def test_short_names_take_no_line() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2")
        full = on.app.screen.query(".full")
        assert full
        assert not any(line.display for line in full)
