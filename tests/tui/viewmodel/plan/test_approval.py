"""The text of the question whether to execute a plan."""

from textual.widgets import Static

from model.ids import BrokerId
from model.plan.plan import LeadersOnly
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import moves, plan, plan_ready
from tui.screens.dialog import labelled
from tui.viewmodel.plan.approval import NAMED, touched


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
        assert "20 leader changes alone, 0 bytes: 75.0 % of the imbalance" in shown
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
