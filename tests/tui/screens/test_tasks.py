"""The screen of tasks: listed, opened, resumed and cancelled."""

from dataclasses import replace

import pytest
from textual.widgets import Button, Input, Static

from control.loop.view import LoopView, Mode
from control.tasks.task_listing import ListedTask, TaskListing
from model.errors import ConfigError, GuardrailRefused
from tests.support.tui.app_harness import USER, Stage, stage
from tests.support.tui.listed_tasks import (
    DAMAGED,
    ELSEWHERE,
    cancelled,
    done,
    every_kind,
    failed,
    moving,
    own,
    stopped,
    waiting,
    without_archive,
)
from tests.support.tui.loop_views import (
    CONNECTING,
    HASH,
    NAME,
    FakeTask,
    FakeTasks,
    plan,
    plan_ready,
    progress,
    running,
)
from tui.screens.question import Question
from tui.screens.task_plan import TaskPlanScreen
from tui.screens.tasks import READ_EVERY_MS
from tui.viewmodel.cells import plain
from tui.widgets.mode_bar import ModeBar
from tui.widgets.task_panel import TaskPanel
from tui.widgets.text_lines import Lines


def tasks(on: Stage) -> FakeTasks:
    assert on.loop.tasks is not None
    return on.loop.tasks


def notifications(on: Stage) -> str:
    return " ".join(n.message for n in on.app._notifications)


def opened(on: Stage) -> str:
    shown = on.app.screen.query_one(TaskPanel).query_one(Lines).shown or ()
    return "\n".join(map(plain, shown))


async def settled(on: Stage) -> None:
    """Wait for requests that begin with the answer to another one."""
    for _ in range(3):
        await on.settle()


async def show(on: Stage, *listed: ListedTask) -> None:
    tasks(on).listed = TaskListing(tasks=listed)
    await on.press("7")
    await settled(on)


async def test_tasks_are_listed_with_how_far_they_are() -> None:
    async with stage(plan_ready(), size=(160, 40)) as on:
        tasks(on).listed = every_kind()
        await on.press("7")
        found = {row[0]: row[1:] for row in on.table("#tasks")}
        percent = found["remove broker 4"][1].split(maxsplit=1)[1]
        assert percent == "62%"
        assert found["remove broker 4"][2:5] == ["26/40", "3.00 GB", "95 s"]
        assert found["remove broker 4"][5:] == ["18 min", ELSEWHERE]
        assert found["remove broker 2"][0] == "planned"
        assert found["demote broker 3"][0] == "stopped"
        assert found["demote broker 3"][-1] == "stopped by bob; R resumes it"
        assert found["maintenance brokers 1, 2"][-1] == "by ann: not confirmed"
        assert found[DAMAGED.name][0] == "unreadable"
        assert found["move-3-20231113T080000.json"][0] == "newer"


async def test_the_last_column_is_in_full_below_a_narrow_table() -> None:
    async with stage(plan_ready(), size=(60, 24)) as on:
        tasks(on).listed = every_kind()
        await on.press("7")
        remark = on.app.screen.query_one("#remark", Static)
        assert str(remark.render()) == DAMAGED.reason
        await on.press("down", "down")
        assert str(remark.render()) == f"worked on by {ELSEWHERE}"
        await on.press("down")
        assert str(remark.render()) == "waits for approval of its plan; R shows it"


@pytest.mark.parametrize(
    ("view", "known", "words"),
    [
        (CONNECTING, True, "waiting for the cluster to answer"),
        (plan_ready(), True, "No task on the brokers of this cluster"),
        (plan_ready(), False, "There are no tasks here"),
        (plan_ready(Mode.RECORDING), False, "A recording has no tasks"),
    ],
)
async def test_an_empty_list_says_why(view: LoopView, known: bool, words: str) -> None:
    async with stage(view) as on:
        on.loop.tasks = FakeTasks() if known else None
        await on.press("7")
        assert words in str(on.app.screen.query_one(".table-pane .note", Static).render())


async def test_keys_of_tasks_say_that_there_are_none() -> None:
    async with stage(plan_ready()) as on:
        on.loop.tasks = FakeTasks()
        await on.press("7", "enter", "R", "C")
        assert [n.message for n in on.app._notifications] == [
            "there is nothing to open",
            "there is no task to resume",
            "there is no task to cancel",
        ]


async def test_without_its_archive_the_list_says_whose_tasks_it_has() -> None:
    async with stage(plan_ready()) as on:
        tasks(on).listed = without_archive()
        await on.press("7")
        note = str(on.app.screen.query_one(".table-pane .note", Static).render())
        assert note == without_archive().warning


async def test_tasks_are_read_every_ten_seconds_and_not_with_each_picture() -> None:
    async with stage(plan_ready()) as on:
        for _ in range(3):
            await on.show(plan_ready())
        assert tasks(on).readings == 0
        await on.press("7")
        first = tasks(on).readings
        assert first >= 1
        for _ in range(5):
            await on.show(plan_ready())
        assert tasks(on).readings == first
        on.clock_s += READ_EVERY_MS / 1000
        await on.show(plan_ready())
        assert tasks(on).readings == first + 1
        # A clock that was set back must not end the readings.
        on.clock_s -= 3600
        await on.show(plan_ready())
        assert tasks(on).readings == first + 2


async def test_enter_opens_a_task_with_its_phases_and_plans() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await show(on, ListedTask(task=failed()), ListedTask(task=done()))
        await on.press("enter")
        text = opened(on)
        assert "failed, for 7 min 00 s" in text
        assert "broker 5 does not serve any more; R tries again" in text
        assert "2023-11-14 21:53:20Z  requested  by ann" in text
        assert f"{HASH[:12]}  40 moves, 8.00 GB (no plan needs less than 8.00 GB); app" in text
        bar = str(on.app.screen.query_one(ModeBar).render())
        assert bar.rstrip().endswith("Tasks > replace broker 1 with 5")
        await on.press("escape")
        assert not on.app.screen.query_one(TaskPanel).display
        await on.press("down", "enter")
        assert "its run ended" in " ".join(opened(on).split())


async def test_a_task_that_this_plimsoll_works_on_follows_its_run() -> None:
    run = progress()
    view = replace(running(), run=replace(run, left_s=42.0))
    async with stage(view, size=(160, 40), running=True) as on:
        tasks(on).listed = own(moving(run.plan_hash))
        await on.press("7")
        (row,) = on.table("#tasks")
        assert row[3] == f"1/{len(run.moves)}"
        assert row[5] == "42 s"
        assert row[-1] == "this plimsoll"


async def test_a_damaged_file_is_opened_with_what_to_do() -> None:
    async with stage(plan_ready()) as on:
        tasks(on).listed = TaskListing(unreadable=(DAMAGED,))
        await on.press("7", "enter")
        assert "Restore it, or move it" in opened(on)
        await on.press("C", "R")
        assert len(on.app.screen_stack) == 1


async def test_a_task_is_cancelled_after_a_question_that_says_what_happens() -> None:
    async with stage(plan_ready()) as on:
        await show(on, ListedTask(task=moving(), worker=ELSEWHERE))
        await on.press("C")
        assert isinstance(on.app.screen, Question)
        words = " ".join(str(s.render()) for s in on.app.screen.query(Static))
        assert "Its run stops after the moves in flight. What has moved stays" in words
        assert "Broker 4 takes new replicas again." in words
        await on.press("escape")
        assert tasks(on).cancelled == []
        await on.press("C")
        on.app.screen.query_one("#yes", Button).press()
        await settled(on)
        assert tasks(on).cancelled == [(moving().task_id, USER)]
        assert f"cancel task {moving().task_id}" in on.loop.actions
        assert tasks(on).readings >= 2


async def test_why_a_task_cannot_be_cancelled_or_resumed_is_shown() -> None:
    async with stage(plan_ready()) as on:
        await show(on, ListedTask(task=cancelled()))
        await on.press("C")
        assert "the task is cancelled; nothing is left to cancel" in notifications(on)
        await on.press("R")
        assert "nothing is left to resume" in notifications(on)
        await show(on, ListedTask(task=moving(), worker=ELSEWHERE))
        await on.press("1", "7", "R")
        assert f"{ELSEWHERE} works on this task" in notifications(on)
        assert len(on.app.screen_stack) == 1


async def test_a_stopped_task_is_resumed_after_a_question() -> None:
    async with stage(plan_ready()) as on:
        await show(on, ListedTask(task=stopped()))
        await on.press("R")
        await settled(on)
        assert isinstance(on.app.screen, Question)
        on.app.screen.query_one("#yes", Button).press()
        await settled(on)
        assert on.loop.worked_on == [FakeTask(stopped().task_id, USER, "")]
        tasks(on).refuses = GuardrailRefused("a run is in progress; wait until it ends")
        await on.press("R")
        await settled(on)
        on.app.screen.query_one("#yes", Button).press()
        await settled(on)
        assert "a run is in progress" in notifications(on)


async def test_a_plan_that_waits_is_approved_by_its_hash_and_the_name_of_the_cluster() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        tasks(on).plan = plan()
        await show(on, ListedTask(task=waiting()))
        await on.press("R")
        await settled(on)
        assert isinstance(on.app.screen, TaskPlanScreen)
        words = "\n".join(str(s.render()) for s in on.app.screen.query(Static))
        assert "duration: about 75.0 s" in words
        assert "executed without a further question" in words.replace("\n", " ")
        await on.press(*"deno", "enter")
        assert on.loop.worked_on == []
        on.app.screen.query_one(Input).value = ""
        await on.press(*NAME, "enter")
        await settled(on)
        assert on.loop.worked_on == [FakeTask(waiting().task_id, USER, plan().hash)]
        assert len(on.app.screen_stack) == 1


async def test_a_refused_approval_keeps_the_dialog_with_the_reason() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        tasks(on).plan = plan()
        tasks(on).refuses = ConfigError("the task is cancelled; nothing is left to resume")
        await show(on, ListedTask(task=waiting()))
        await on.press("R")
        await settled(on)
        await on.press(*NAME, "enter")
        await settled(on)
        refused = str(on.app.screen.query_one("#refused", Static).render())
        assert "Not approved: the task is cancelled" in refused


async def test_read_only_neither_resumes_nor_cancels() -> None:
    async with stage(plan_ready(Mode.READ_ONLY)) as on:
        await show(on, ListedTask(task=stopped()))
        await on.press("R", "C")
        await settled(on)
        assert len(on.app.screen_stack) == 1
        assert not on.app.screen.active_bindings["C"].enabled
        assert "read-only" in notifications(on)
