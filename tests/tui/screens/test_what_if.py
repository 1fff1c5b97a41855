"""During a what-if, nothing on the screen looks like the real plan."""

from dataclasses import replace

import pytest
from textual.widgets import Input

from control.loop.view import LoopView
from control.planning.plan_view import PlanningView, WhatIfView
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import disconnected, plan_ready, running
from tests.support.tui.plan_views import SO_FAR, what_if


def _supposed() -> WhatIfView:
    result = what_if().proposed.supposed
    assert result is not None
    return result


def _with(supposed: WhatIfView, view: LoopView | None = None) -> LoopView:
    return replace(view or plan_ready(), proposed=PlanningView(supposed=supposed))


@pytest.mark.parametrize("mode", ["overview", "plan", "run", "topics", "log"])
async def test_every_header_describes_only_the_what_if(mode: str) -> None:
    async with stage(what_if(), size=(120, 40)) as on:
        on.app.action_show_mode(mode)
        await on.settle()
        assert " WHAT-IF  broker 3 removed, on the plan screen only;" in on.header
        assert plan_ready().message not in on.header


@pytest.mark.parametrize(
    ("view", "message"),
    [(running(), "RUNNING 46%"), (disconnected(), "CANNOT CONNECT")],
    ids=["a run", "a cluster that is away"],
)
async def test_urgent_states_are_shown_below_the_what_if(view: LoopView, message: str) -> None:
    async with stage(_with(_supposed(), view), running=message[0] == "R") as on:
        assert on.header.index("WHAT-IF") < on.header.index(message)


async def test_no_bar_shows_the_real_plan_beside_a_what_if() -> None:
    async with stage(replace(plan_ready(), plan=None), size=(200, 50)) as on:
        without = on.table("#brokers")
        await on.show(plan_ready())
        assert on.table("#brokers") != without
        await on.show(what_if())
        assert on.table("#brokers") == without
        assert "Brokers of the real cluster" in _title(on, "BrokerPanel")


async def test_during_a_what_if_no_real_plan_is_requested() -> None:
    async with stage(what_if(), size=(120, 40)) as on:
        await on.press("2", "r")
        assert on.loop.plans_wanted == 0
        assert "escape" in on.app.screen.active_bindings["r"].tooltip
        titles = {c.title for c in on.app.get_system_commands(on.app.screen)}
        assert not titles & {"Approve", "Replan"}


async def test_b_ends_the_solve_of_a_what_if() -> None:
    async with stage(what_if(), size=(120, 40)) as on:
        await on.press("2", "b")
        assert on.loop.proposals.stopped == 0
        await on.show(_with(replace(_supposed(), answer=None, solving=SO_FAR)))
        await on.press("b")
        assert on.loop.proposals.stopped == 1


async def test_partitions_that_a_what_if_loses_are_counted() -> None:
    answer = _supposed().answer
    assert answer is not None
    lossy = replace(_supposed(), answer=answer.model_copy(update={"lost": 2}))
    async with stage(_with(lossy), size=(120, 40)) as on:
        await on.press("2")
        figures = on.app.screen.query_one("#figures").render()
        assert "2 partitions would lose all replicas" in str(figures)


async def test_the_folder_of_a_what_if_is_not_called_as_that_of_a_plan() -> None:
    async with stage(what_if()) as on:
        await on.press("2", "e")
        assert on.app.screen.query_one(Input).value.startswith("what-if-")


def _title(on: Stage, of: str) -> str:
    return str(on.app.screen_stack[0].query_one(of).border_title)
