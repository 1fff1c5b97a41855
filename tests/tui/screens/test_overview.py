"""The overview: brokers sorted, filtered, frozen; one of them in detail."""

import re
from dataclasses import replace

from textual.widgets import Input

from control.loop.view import LoopView
from model.ids import BrokerId
from model.snapshot.snapshot import Snapshot
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.large_clusters import crowded
from tests.support.tui.loop_views import (
    AT_MS,
    HASH,
    NEWER_HASH,
    balanced_after_run,
    balanced_cluster,
    judged,
    plan,
    plan_ready,
    skewed,
    solving,
)
from tui.screens.approve import ApproveScreen
from tui.widgets.broker_detail import BrokerDetail
from tui.widgets.broker_panel import BrokerPanel
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.mode_bar import ModeBar


def _later(snapshot: Snapshot, seconds: int) -> LoopView:
    """The loop some time after, with loads of a newer snapshot."""
    header = snapshot.header.model_copy(update={"taken_at_ms": AT_MS + 1000 * seconds})
    newer = Snapshot(header, snapshot.partitions)
    return replace(solving(), snapshot=newer, evaluation=judged(newer))


def _ids(on: Stage) -> list[str]:
    return [row[0] for row in on.table("#brokers")]


def _detail(on: Stage) -> str:
    return str(on.app.screen.query_one(BrokerDetail).render())


def _svg(picture: str) -> str:
    return re.sub(r"terminal-\d+-", "", picture)


def _title(on: Stage) -> str:
    return on.app.screen.query_one(BrokerDetail).border_title or ""


def _at(on: Stage) -> str | None:
    return on.app.screen.query_one("#brokers", KeyedTable).key_at_cursor


async def test_the_broker_under_the_cursor_is_shown_with_its_heaviest_replicas() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        assert _title(on).startswith("Broker 1")
        heaviest = _detail(on).splitlines()[3]
        assert heaviest.split() == ["orders-0", "leads", "1.10M", "1.10M"]
        await on.press("down")
        assert _title(on).startswith("Broker 2")
        assert "heaviest of 0 replicas" in _detail(on)


async def test_the_history_of_a_broker_grows_with_every_snapshot() -> None:
    async with stage(solving(), size=(120, 40)) as on:
        for seconds, snapshot in enumerate((balanced_cluster(), skewed(), balanced_cluster()), 1):
            await on.show(_later(snapshot, seconds))
        assert _detail(on).splitlines()[1].rstrip().endswith("█▄█▄")
        detail = on.app.screen.query_one(BrokerDetail)
        assert detail.border_subtitle == "last 3.00 s"


async def test_a_view_of_the_same_snapshot_adds_no_sample() -> None:
    async with stage(solving()) as on:
        for _ in range(3):
            await on.show(plan_ready())
        assert len(on.app.moment.trail.samples) == 1


async def test_a_clock_that_jumps_back_keeps_the_history_in_order() -> None:
    async with stage(solving(), size=(120, 40)) as on:
        await on.show(_later(balanced_cluster(), -3600))
        assert _detail(on).splitlines()[1].rstrip().endswith("█▄")
        assert on.app.moment.trail.span_s == 0
        on.clock_s -= 7200
        await on.show(_later(balanced_cluster(), -3599))
        assert "data 0 s old" in on.header


async def test_a_broker_that_comes_and_goes_leaves_a_gap_and_keeps_the_cursor() -> None:
    async with stage(solving(), size=(120, 40)) as on:
        await on.press("down", "down")
        header = skewed().header.model_copy(
            update={"brokers": skewed().header.brokers[:1] + skewed().header.brokers[2:]}
        )
        without = Snapshot(header, skewed().partitions)
        for seconds in range(1, 7):
            view = _later(without if seconds % 2 else skewed(), seconds)
            assert view.snapshot is not None
            await on.show(replace(view, brokers=view.snapshot.header.brokers))
            assert _at(on) == "3"
            assert _ids(on) == (["1", "3"] if seconds % 2 else ["1", "2", "3"])
        history = on.app.moment.trail.of(BrokerId(2), "net_in")
        assert [value is None for value in history] == [False, *[True, False] * 3]


async def test_s_sorts_by_the_next_column_and_capital_s_reverses_the_order() -> None:
    async with stage(solving()) as on:
        await on.press("s")
        assert _ids(on) == ["3", "2", "1"]
        await on.press("S")
        assert _ids(on) == ["1", "2", "3"]


async def test_a_click_on_a_header_sorts_and_the_cursor_stays_with_its_broker() -> None:
    async with stage(solving()) as on:
        assert _at(on) == "1"
        await on.pilot.click("#brokers", offset=(1, 0))
        await on.settle()
        assert _ids(on) == ["3", "2", "1"]
        assert _at(on) == "1"


async def test_a_filter_shows_and_counts_matches_and_escape_clears_it() -> None:
    async with stage(solving()) as on:
        await on.press("slash", "!", "^", "1")
        assert _ids(on) == ["2", "3"]
        assert on.words("BrokerPanel .note") == "2 of 3 rows"
        await on.press("enter", "down")
        assert _at(on) == "3"
        await on.press("escape")
        assert _ids(on) == ["1", "2", "3"]
        assert not on.app.screen.query_one(Input).display


async def test_a_filter_without_matches_is_explained_and_escape_clears_it() -> None:
    async with stage(solving()) as on:
        await on.press("slash", *"zoe")
        assert _ids(on) == []
        assert "Nothing matches the filter 'zoe'" in on.words("BrokerPanel .note")
        await on.press("enter", "escape")
        assert _ids(on) == ["1", "2", "3"]


async def test_escape_goes_back_only_when_there_is_no_filter_to_clear() -> None:
    async with stage(solving()) as on:
        await on.press("6", "1", "slash", *"2", "enter", "escape")
        assert _ids(on) == ["1", "2", "3"]
        await on.press("escape")
        assert on.app.current_mode == "overview"


async def test_a_frozen_screen_keeps_its_tables_while_the_header_follows() -> None:
    async with stage(plan_ready()) as on:
        await on.press("space")
        await on.show(balanced_after_run())
        assert "BALANCED" in on.header
        assert on.table("#brokers")[0][2] == "in !+200%"
        assert "FROZEN at 22:13:20Z" in on.words("#modes")
        await on.press("s")
        assert _ids(on) == ["3", "2", "1"]
        await on.press("space")
        assert on.table("#brokers")[0][2] == "in +2%"
        assert "FROZEN" not in on.words("#modes")
        done = ["freeze the overview screen", "unfreeze the overview screen"]
        assert on.loop.actions == done


async def test_a_frozen_screen_is_marked_first_on_narrow_terminals_as_well() -> None:
    async with stage(plan_ready(), size=(60, 16)) as on:
        seen = []
        for key in ("home", "space", "space"):
            await on.press(key)
            bar = on.app.screen.query_one(ModeBar)
            seen.append(on.words("#modes")[:21] if bar.display else "")
        assert seen == ["", " FROZEN at 22:13:20Z ", ""]


async def test_the_freeze_key_is_labelled_with_its_next_action() -> None:
    async with stage(plan_ready()) as on:
        for message in ("Follow", "Freeze"):
            await on.press("space")
            bound = on.app.screen.active_bindings["space"].binding
            assert bound.description == message


async def test_a_frozen_screen_approves_the_plan_it_shows() -> None:
    async with stage(plan_ready()) as on:
        await on.press("space")
        await on.show(plan_ready(of=plan(NEWER_HASH)))
        await on.press("A")
        assert isinstance(on.app.screen, ApproveScreen)
        message = str(on.app.screen.query(".title").first().render())
        assert HASH[:12] in message
        assert "has replaced" in str(on.app.screen.query_one("#refused").render())


async def test_three_hundred_brokers_are_sorted_filtered_and_walked_through() -> None:
    async with stage(crowded(300, 50, 20_000), size=(120, 40)) as on:
        assert len(_ids(on)) == 300
        await on.press("end")
        assert _at(on) == "299"
        assert _title(on).startswith("Broker 299")
        await on.press("s", "slash", *"^17", "enter")
        assert len(_ids(on)) == 11
        await on.press("escape", "end")
        assert _at(on) == "0"


async def test_a_terminal_that_shrinks_and_grows_again_shows_the_same_as_before() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("down")
        before = on.app.export_screenshot()
        for size in ((20, 5), (1, 1), (79, 24), (120, 40)):
            await on.pilot.resize_terminal(*size)
            await on.press("4", "6", "1")
        assert on.app.screen.query_one("#body").display
        assert _at(on) == "2"
        assert _svg(on.app.export_screenshot()) == _svg(before)


async def test_the_resource_of_the_worst_broker_is_drawn_first() -> None:
    view = plan_ready()
    assert view.evaluation is not None
    less = {
        key: {broker: off * (1.0 if key == "net_out" else 0.5) for broker, off in by.items()}
        for key, by in view.evaluation.deviations.items()
    }
    worst_out = replace(view, evaluation=replace(view.evaluation, deviations=less))
    async with stage(worst_out, size=(80, 24)) as on:
        panel = on.app.screen.query_one(BrokerPanel)
        assert "bytes out (2 of 2)" in str(panel.border_title)
        await on.press("tab")
        assert "bytes in (1 of 2)" in str(panel.border_title)
        await on.show(replace(worst_out, at_ms=worst_out.at_ms + 1000))
        assert "bytes in (1 of 2)" in str(panel.border_title)
