"""Requests for the broker under the cursor: the menu, the plan, and what is stored."""

from collections.abc import Sequence

import pytest
from textual.widgets import Button, Input, OptionList, Static

from control.loop.view import Mode
from control.tasks.broker_task import brokers_text
from model.errors import GuardrailRefused
from model.ids import BrokerId
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import CONNECTING, NAME, FakeTasks, plan, plan_ready, running
from tui.screens.broker_menu import BrokerMenu
from tui.screens.form import FormScreen
from tui.screens.many_brokers import ManyBrokersScreen
from tui.screens.question import Question
from tui.screens.task_plan import TaskPlanScreen
from tui.viewmodel.tasks.task_questions import ranges

SETTLED = 3
"""Rounds until requests that begin with the answer to another one are done."""


def tasks(on: Stage) -> FakeTasks:
    assert on.loop.tasks is not None
    return on.loop.tasks


def notifications(on: Stage) -> str:
    return " ".join(n.message for n in on.app._notifications)


async def choose(on: Stage, name: str) -> None:
    await on.press("o")
    assert isinstance(on.app.screen, BrokerMenu)
    options = on.app.screen.query_one(OptionList)
    options.highlighted = options.get_option_index(name)
    await on.press("enter")
    for _ in range(SETTLED):
        await on.settle()


async def test_a_removal_is_shown_approved_stored_and_begun() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await choose(on, "remove")
        assert isinstance(on.app.screen, TaskPlanScreen)
        words = "\n".join(str(s.render()) for s in on.app.screen.query(Static))
        assert "Approve the plan to remove broker 1?" in words
        assert "no plan empties it with fewer bytes" in words
        assert "duration: about 75.0 s" in words
        assert tasks(on).requested == []
        await on.press(*NAME, "enter")
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).requested == [("remove broker 1", plan().hash, USER)]
        (begun,) = on.loop.worked_on
        assert begun.by == USER
        assert len(on.app.screen_stack) == 1
        assert "is stored and worked on" in notifications(on)


async def test_a_task_without_moves_needs_one_answer() -> None:
    """It was refused as needless, and its marks could be neither set nor lifted here."""
    async with stage(plan_ready(), size=(120, 40)) as on:
        tasks(on).idle = "broker 1 leads nothing, so that nothing has to move"
        await choose(on, "maintenance")
        assert isinstance(on.app.screen, Question)
        words = "\n".join(str(s.render()) for s in on.app.screen.query(Static))
        assert "Execute the task: maintenance broker 1?" in words
        assert "Broker 1 leads nothing, so that nothing has to move" in words
        await on.press("escape")
        assert tasks(on).requested == []
        await choose(on, "maintenance")
        on.app.screen.query_one("#yes", Button).press()
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).requested == [("maintenance broker 1", "", USER)]
        assert len(on.loop.worked_on) == 1
        assert "is stored and worked on" in notifications(on)


async def test_a_task_that_cannot_begin_does_not_stay() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await choose(on, "demote")
        on.loop.refuses = GuardrailRefused("a run is in progress; wait until it ends")
        await on.press(*NAME, "enter")
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).cancelled == [("demote-new", USER)]
        refused = str(on.app.screen.query_one("#refused", Static).render())
        assert "Not approved: a run is in progress" in refused


async def test_a_refusal_is_shown_as_the_command_line_gives_it() -> None:
    async with stage(plan_ready()) as on:
        tasks(on).refuses = GuardrailRefused("broker 1 is the only one of rack a")
        await choose(on, "maintenance")
        assert "broker 1 is the only one of rack a" in notifications(on)
        assert len(on.app.screen_stack) == 1


async def test_exclude_and_include_need_one_answer() -> None:
    async with stage(plan_ready()) as on:
        for name, excluded in (("exclude", True), ("include", False)):
            await choose(on, name)
            assert isinstance(on.app.screen, Question)
            on.app.screen.query_one("#yes", Button).press()
            for _ in range(SETTLED):
                await on.settle()
            assert tasks(on).marked[-1] == ((1,), USER, excluded)
        await choose(on, "exclude")
        await on.press("escape")
        assert len(tasks(on).marked) == 2


async def test_several_brokers_and_racks_are_typed_and_shown() -> None:
    view = plan_ready()
    assert view.snapshot is not None
    rack = next(b.rack for b in view.snapshot.header.brokers if b.rack is not None)
    inside = [b.id for b in view.snapshot.header.brokers if b.rack == rack or b.id == 1]
    async with stage(view, size=(120, 40)) as on:
        await on.press("o", "tab", *f" --rack {rack}")
        shown = on.app.screen.query_one("#refused", Static)
        assert str(shown.render()) == brokers_text(inside)
        await on.press("enter")
        assert isinstance(on.app.screen.focused, OptionList)
        await on.press("enter")
        for _ in range(SETTLED):
            await on.settle()
        words = "\n".join(str(s.render()) for s in on.app.screen.query(Static))
        assert f"Approve the plan to remove {brokers_text(inside)}?" in words
        await on.press(*NAME, "enter")
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).requested == [(f"remove {brokers_text(inside)}", plan().hash, USER)]


async def test_words_that_name_no_broker_choose_nothing() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        # Also a letter that closes the menu elsewhere.
        await on.press("o", "tab", " ", "q")
        assert isinstance(on.app.screen, BrokerMenu)
        assert "'q' is not a broker id" in str(on.app.screen.query_one("#refused", Static).render())
        await on.press("enter", "enter")
        assert isinstance(on.app.screen, BrokerMenu)
        assert "'q' is not a broker id" in notifications(on)
        await on.press("tab", "backspace", "9", "9", "enter", "enter")
        assert "there is no broker 99" in notifications(on)
        assert tasks(on).requested == []


async def test_replace_asks_for_the_new_broker() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await choose(on, "replace")
        assert isinstance(on.app.screen, FormScreen)
        for typed, fault in (
            ("", "no broker is named"),
            ("1", "name another broker than 1"),
            ("99", "there is no broker 99"),
            ("2 3", "give the id of the broker that replaces 1"),
            ("x", "'x' is not a broker id"),
        ):
            on.app.screen.query_one(Input).value = typed
            await on.press("enter")
            await on.settle()
            assert fault in str(on.app.screen.query_one("#refused", Static).render())
        on.app.screen.query_one(Input).value = "2"
        await on.press("enter")
        for _ in range(SETTLED):
            await on.settle()
        assert isinstance(on.app.screen, TaskPlanScreen)
        await on.press(*NAME, "enter")
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).requested == [("replace broker 1 with 2", plan().hash, USER)]


async def test_replace_of_several_or_none_plans_nothing() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("o", "tab", " ", "2", "enter")
        options = on.app.screen.query_one(OptionList)
        options.highlighted = options.get_option_index("replace")
        await on.press("enter")
        assert "replace takes one broker at a time" in notifications(on)
        await choose(on, "replace")
        await on.press("escape")
        for _ in range(SETTLED):
            await on.settle()
        assert len(on.app.screen_stack) == 1


async def test_the_end_of_a_cordon_is_reported() -> None:
    async with stage(plan_ready()) as on:
        tasks(on).said = "broker 1 is no longer cordoned"
        await choose(on, "include")
        on.app.screen.query_one("#yes", Button).press()
        for _ in range(SETTLED):
            await on.settle()
        assert "done: include broker 1; broker 1 is no longer cordoned" in notifications(on)


async def test_a_question_names_every_broker() -> None:
    view = crowded(40, 2, 200)
    assert view.snapshot is not None
    ids = [b.id for b in view.snapshot.header.brokers]
    async with stage(view, size=(60, 16)) as on:
        await on.press("o")
        on.app.screen.query_one("#named", Input).value = " ".join(map(str, ids))
        options = on.app.screen.query_one(OptionList)
        options.highlighted = options.get_option_index("exclude")
        await on.press("enter")
        for _ in range(SETTLED):
            await on.settle()
        words = " ".join(str(s.render()) for s in on.app.screen.query(Static))
        assert f"brokers: {ids[0]}-{ids[-1]}" in words
        title = on.app.screen.query_one(".title")
        assert title.size.height == 2, "a long title is wrapped, not cut"
        # So many need the cluster's name.
        assert isinstance(on.app.screen, ManyBrokersScreen)
        await on.press("enter")
        assert tasks(on).marked == []
        await on.press("pagedown", "pagedown", *view.cluster_name, "enter")
        for _ in range(SETTLED):
            await on.settle()
        assert tasks(on).marked == [(tuple(ids), USER, True)]
        assert len(on.app.screen_stack) == 1


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ((), ""),
        ((7,), "7"),
        ((0, 1), "0-1"),
        ((1, 2, 3, 5, 7, 8), "1-3, 5, 7-8"),
        (range(1, 301), "1-300"),
        ((2, 4, 6), "2, 4, 6"),
    ],
)
def test_ids_are_all_named_in_little_space(ids: Sequence[int], text: str) -> None:
    assert ranges([BrokerId(b) for b in ids]) == text


async def test_without_changes_a_run_or_loads_nothing_is_requested() -> None:
    for view, is_running in (
        (plan_ready(Mode.READ_ONLY), False),
        (plan_ready(Mode.RECORDING), False),
        (running(), True),
        (CONNECTING, False),
    ):
        async with stage(view, running=is_running) as on:
            await on.press("o")
            assert len(on.app.screen_stack) == 1
