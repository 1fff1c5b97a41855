"""The text of the question whether to execute a plan."""

import threading
from dataclasses import replace

import pytest
from textual.widgets import Input, Static

from executor.schedule.estimate import Forecast
from executor.schedule.simulate import Peak
from model.ids import BrokerId
from model.plan.plan import LeadersOnly, Plan
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import FORECAST, NAME, moves, plan, plan_ready
from tests.support.tui.plan_views import leaving_faults
from tui.screens.approve import WAITS, ApproveScreen
from tui.screens.dialog import labelled
from tui.screens.waiting_plan import WaitingPlanScreen
from tui.viewmodel.plan.approval import NAMED, takes, touched


def test_only_some_brokers_are_named_and_the_others_counted() -> None:
    many = tuple(
        moves()[0].model_copy(
            update={
                "replicas_before": (BrokerId(2 * number),),
                "replicas_after": (BrokerId(2 * number + 1),),
            }
        )
        for number in range(NAMED)
    )
    items = touched(plan().model_copy(update={"moves": many})).split("; ")
    assert items[:2] == ["1: 1 incoming", "2: 1 outgoing"]
    assert items[NAMED:] == [f"and {NAMED} more brokers"]


def test_the_broker_that_deviates_most_is_named_first() -> None:
    worst = plan().brokers[2].model_copy(update={"deviation_before": {"net_in": 9.0}})
    brokers = (*plan().brokers[:2], worst)
    words = touched(plan().model_copy(update={"brokers": brokers}))
    assert words == "3: 2 incoming; 1: 4 outgoing; 2: 2 incoming"


def test_a_few_brokers_are_all_named() -> None:
    assert touched(plan()) == "1: 4 outgoing; 2: 2 incoming; 3: 2 incoming"


def test_the_brokers_whose_disks_come_closest_to_full_are_named() -> None:
    grown = {BrokerId(b): Peak(more_bytes=50_000_000_000 + b) for b in range(1, 20)}
    free = {**dict.fromkeys(grown, 10_000_000_000_000), BrokerId(19): 51_000_000_000}
    full = {BrokerId(b): 50_000_000_100 for b in (2, 4, 6, 8)}
    of = replace(FORECAST, peaks=grown, free_bytes=free, unfit=("a", "b", "c", "d", "e"))
    found = takes(of)
    assert "peak disk use: ! broker 19 +50.0 GB of 51.0 GB free, broker 18" in found
    assert "and 16 more brokers" in found
    assert found.splitlines()[-4:] == [
        *(f"not all moves fit: {words}" for words in "abc"),
        "not all moves fit: and 2 more moves",
    ]
    several = takes(replace(of, free_bytes={**free, **full}))
    assert several.count("! broker") == 5
    assert "and 14 more brokers" in several


async def test_a_plan_is_approved_only_once_it_is_checked() -> None:
    may_end, approved = threading.Event(), list[str]()

    def slow(_plan: Plan) -> Forecast:
        may_end.wait(60.0)
        return FORECAST

    async with stage(plan_ready(), size=(120, 40)) as on:
        asked = ApproveScreen(plan(), on.app.moment, approved.append, slow)
        on.app.push_screen(asked)
        while not isinstance(on.app.focused, Input):
            await on.pilot.pause(0.01)
        for key in (*NAME, "enter"):
            await on.pilot.press(key)
        assert approved == []
        assert [n.message for n in on.app._notifications] == [WAITS]
        may_end.set()
        while not asked.armed:
            await on.pilot.pause(0.01)
        await on.press("enter")
        assert approved == [plan().hash]


async def test_the_effect_of_leader_changes_alone_fits_a_small_screen() -> None:
    """With everything below it, down to the buttons."""
    alone = LeadersOnly(leader_changes=20, objective=plan().objective_before / 4)
    of = plan().model_copy(update={"leaders_only": alone})
    async with stage(plan_ready(of=of), size=(80, 24)) as on:
        await on.press("A")
        shown = "\n".join(
            "".join(segment.text for segment in line)
            for line in on.app.screen._compositor.render_strips()
        )
        assert "20 leader changes alone, 0 bytes: 75% of the imbalance" in shown
        assert "Type the cluster's name" in shown
        assert "Approve and run" in shown


async def test_the_approval_says_how_the_run_is_stopped_and_undone() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("A")
        text = next(
            found
            for of in on.app.screen.query(Static)
            if "afterwards" in (found := str(of.content))
        )
        assert "afterwards: [X] stops the run, [B] rolls it back once it has ended" in text


def test_labels_are_what_is_before_the_colon_of_a_line() -> None:
    shown = labelled("duration: about 6 s: or more\n9 moves\nlargest deviation: in 6%")
    bold = [shown.plain[span.start : span.end] for span in shown.spans]
    assert bold == ["duration:", "largest deviation:"]


LEFT = (
    "broker 1 stays over its limit of bytes in",
    "broker 3 stays over its limit of bytes in",
    "rack violations not repaired: 1 partition (orders-7)",
    "outside the tolerance: broker 2 is +50% in bytes in",
    "the rack of broker 2 is unknown, so the rack rule",
)


def _leaving_all() -> Plan:
    """Over limits, on one rack, outside the tolerance, and made without a rack."""
    made = leaving_faults().plan
    assert made is not None
    off = made.brokers[1].model_copy(update={"deviation_after": {"net_in": 0.5}})
    brokers = (made.brokers[0], off, *made.brokers[2:])
    return made.model_copy(update={"brokers": brokers, "tolerance_unmet": "by the budget"})


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (120, 40)])
async def test_nothing_is_approved_before_all_that_the_plan_leaves_wrong_was_shown(
    size: tuple[int, int],
) -> None:
    async with stage(plan_ready(of=_leaving_all()), size=size) as on:
        await on.press("A", *NAME)
        seen = _shown(on)
        for _ in range(40):
            if on.can_confirm():
                break
            await on.press("enter")
            assert on.loop.approved == []
            await on.press("pagedown")
            seen += _shown(on)
        assert on.can_confirm()
        for words in LEFT:
            assert words in seen


def _shown(on: Stage) -> str:
    """The lines of the dialog joined, without frame and scrollbar, and each blank once."""
    lines = ("".join(s.text for s in line) for line in on.app.screen._compositor.render_strips())
    return " ".join(" ".join(lines).encode("ascii", "ignore").decode().split())


async def test_a_plan_of_another_process_is_shown_with_what_it_leaves_wrong() -> None:
    async with stage(plan_ready(), size=(120, 60)) as on:
        moment = on.app.moment
        made = _leaving_all()
        screen = WaitingPlanScreen(made, "asks", moment, print, on.loop.preview)
        on.app.push_screen(screen)
        await on.settle()
        for words in LEFT:
            assert words in _shown(on)
