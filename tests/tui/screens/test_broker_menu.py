"""Requests for the broker under the cursor: the menu, the plan, and what is stored."""

from textual.widgets import Button, OptionList, Static

from control.loop.view import Mode
from model.errors import GuardrailRefused
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.loop_views import CONNECTING, NAME, FakeTasks, plan, plan_ready, running
from tui.screens.broker_menu import BrokerMenu
from tui.screens.question import Question
from tui.screens.task_plan import TaskPlanScreen

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
            assert tasks(on).marked[-1] == (1, USER, excluded)
        await choose(on, "exclude")
        await on.press("escape")
        assert len(tasks(on).marked) == 2


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
