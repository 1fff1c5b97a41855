"""From a count to its list, from a list to one thing, and by name to any of them."""

from dataclasses import replace

import pytest
from textual.widgets import Static

from control.loop.view import LoopView
from model.ids import PartitionId, TopicName
from model.snapshot.replication import Replication
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import plan_ready, running
from tests.support.tui.past_runs import older, past
from tui.screens.broker_partitions import BrokerPartitionsScreen
from tui.screens.command_line import CommandLine
from tui.screens.problems import ProblemsScreen
from tui.screens.reason import ReasonScreen
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.mode_bar import ModeBar


def _lacking() -> LoopView:
    lost = PartitionId(TopicName("orders"), 2)
    found = Replication(under_replicated=0, offline=1, offline_ids=(lost,))
    return replace(plan_ready(), replication=found)


def _path(on: Stage) -> str:
    """What the line of screens says after their names."""
    bar = on.app.screen.query_one(ModeBar)
    return str(bar.content).partition("7 Tasks")[2].strip()


async def test_enter_on_the_header_lists_what_it_counts_and_then_opens_the_topic() -> None:
    async with stage(_lacking(), size=(120, 40)) as on:
        on.app.screen.query_one("#header").focus()
        await on.press("enter")
        assert isinstance(on.app.screen, ProblemsScreen)
        await on.press("enter")
        await on.settle()
        assert on.app.current_mode == "topics"
        assert on.app.screen.focused is on.app.screen.query_one("#partitions")


async def test_a_planned_move_opens_from_its_topic_and_from_its_broker() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("4", "enter", "enter")
        assert isinstance(on.app.screen, ReasonScreen)
        await on.press("escape", "1", "enter")
        assert isinstance(on.app.screen, BrokerPartitionsScreen)
        await on.press("enter")
        assert isinstance(on.app.screen, ReasonScreen)


async def test_a_partition_that_is_not_moved_says_so() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("4", "enter", "end", "enter")
        assert not isinstance(on.app.screen, ReasonScreen)
        assert [n.message for n in on.app._notifications] == ["orders-7 is not moved by the plan"]


async def test_a_broker_of_the_plan_opens_its_replicas() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2")
        on.app.screen.query_one("#after", KeyedTable).focus()
        await on.press("enter")
        assert isinstance(on.app.screen, BrokerPartitionsScreen)


@pytest.mark.parametrize(
    ("typed", "mode"),
    [("topics", "topics"), ("hist", "history"), ("log", "log"), ("moves", "plan")],
)
async def test_a_screen_is_opened_by_its_name(typed: str, mode: str) -> None:
    async with stage(plan_ready()) as on:
        await on.press("colon", *typed, "enter")
        await on.settle()
        assert on.app.current_mode == mode


async def test_tab_completes_a_name_and_an_unknown_one_is_explained() -> None:
    async with stage(plan_ready()) as on:
        await on.press("colon", *"xyz", "enter")
        assert isinstance(on.app.screen, CommandLine)
        words = str(on.app.screen.query_one("#names", Static).content)
        assert words.startswith("there is no 'xyz'")
        await on.press(*["backspace"] * 3, *"topic", "space", "o", "tab", "enter")
        await on.settle()
        assert on.app.current_mode == "topics"
        assert _path(on) == "> partitions"


async def test_a_broker_is_opened_by_its_id_and_escape_closes_the_line() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("colon", "escape")
        assert not isinstance(on.app.screen, CommandLine)
        await on.press("4", "colon", *"broker", "space", "2", "enter")
        await on.settle()
        assert isinstance(on.app.screen, BrokerPartitionsScreen)


async def test_each_screen_shows_the_path_to_what_is_open() -> None:
    async with stage(running(), size=(120, 40), running=True) as on:
        assert _path(on) == "Overview > broker 1"
        await on.press("2")
        assert _path(on) == "Plan > moves"
        await on.press("3")
        assert _path(on) == "Run > moves"
        await on.press("4", "enter")
        assert _path(on) == "Topics > orders > partitions"
        await on.press("escape")
        assert _path(on) == ""
        await on.press("6", "l")
        assert _path(on) == "Log > warning and above"


async def test_help_begins_with_the_keys_of_the_screen() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2", "question_mark")
        lines = [line.strip() for line in on.help.splitlines()]
        here, general = lines.index("on this screen"), lines.index("everywhere")
        assert here == 0
        assert any(line.startswith("d Remove") for line in lines[here:general])
        assert any("q Quit" in line for line in lines[general:])
        assert lines.index("Plan") > here


async def test_no_table_is_wider_than_the_smallest_terminal() -> None:
    async with stage(running(), size=(60, 16), running=True) as on:
        on.loop.previous_runs.listed = (past(), older())
        seen = []
        for keys in (("1",), ("2",), ("3",), ("4",), ("4", "enter"), ("5",), ("1", "enter")):
            await on.press(*keys)
            await on.settle()
            for table in on.app.screen.query(KeyedTable):
                if table.size.width:
                    seen.append(table.id)
                    assert table.virtual_size.width <= table.size.width, table.id
        assert {"brokers", "moves", "topics", "partitions", "runs", "held"} <= set(seen)
