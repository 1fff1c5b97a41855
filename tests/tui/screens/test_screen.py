"""The screen over a fake loop: views arrive from another thread."""

import signal
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual.strip import Strip
from textual.widgets import Input, ProgressBar, Static

from control.loop.view import Mode
from model.snapshot.snapshot import Snapshot
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import (
    CONNECTING,
    FORECAST,
    balanced_after_run,
    failed,
    judged,
    log,
    moves,
    plan,
    plan_ready,
    running,
    skewed,
    solving,
)
from tests.support.tui.plan_views import loaded_plan
from tui.events import ViewArrived
from tui.screens.approve import ApproveScreen
from tui.screens.form import FormScreen
from tui.screens.reason import ReasonScreen
from tui.widgets.header_bar import HeaderBar
from tui.widgets.help_panel import HelpPanel
from tui.widgets.keyed_table import KeyedTable
from tui.widgets.log_pane import LogPane
from tui.widgets.moves_panel import MovesPanel


async def test_a_view_from_another_thread_reaches_the_screen() -> None:
    async with stage(CONNECTING) as on:
        thread = threading.Thread(target=on.loop.show, args=(plan_ready(),))
        thread.start()
        thread.join()
        await on.settle()
        assert "PLAN READY" in on.header
        assert on.table("#brokers")[0][2] == "in !+200%"
        await on.press("2")
        assert len(on.table("#moves")) == 4


async def test_from_the_first_contact_to_a_balanced_cluster() -> None:
    async with stage(CONNECTING) as on:
        await on.press("2")
        assert on.words("MovesPanel .note").startswith("No plan yet")
        await on.show(solving())
        await on.press("1")
        assert on.table("#brokers")[0][2] == "in !+200%"
        await on.show(plan_ready())
        await on.show(running())
        await on.press("3")
        bar = on.app.screen.query_one(ProgressBar)
        assert bar.percentage == pytest.approx(15.5 / 33.5)
        await on.show(balanced_after_run())
        assert "DONE" in on.words("#figures")
        await on.press("1")
        assert on.table("#brokers")[0][2] == "in +2%"


def test_the_latest_of_queued_views_is_shown() -> None:
    older, newer = ViewArrived(solving()), ViewArrived(plan_ready())
    assert older.can_replace(newer)


async def test_a_view_that_arrives_after_the_app_ended_is_ignored() -> None:
    async with stage(plan_ready()) as on:
        await on.press("q")
    on.loop.show(running())


async def test_age_grows_when_no_data_arrive() -> None:
    async with stage(plan_ready()) as on:
        assert "data 2 s old" in on.header
        on.clock_s += 60
        await on.pilot.pause(1.2)
        assert "STALE 62 s old" in on.header


async def test_a_repaint_draws_only_rows_that_differ() -> None:
    async with stage(plan_ready()) as on:
        table = on.app.screen.query_one("#brokers", KeyedTable)
        drawn: list[int] = []
        table.render_line = _noting(table.render_line, drawn)  # type: ignore[method-assign,assignment]
        await on.show(replace(plan_ready(), message="something else"))
        assert drawn == []
        columns = skewed().partitions
        loads = columns.loads.copy()
        loads[0] *= 1.5
        louder = Snapshot(skewed().header, replace(columns, loads=loads))
        await on.show(replace(plan_ready(), evaluation=judged(louder)))
        assert 1 in drawn
        assert 0 not in drawn


def _noting(render: Callable[[int], Strip], drawn: list[int]) -> Callable[[int], Strip]:
    def render_line(y: int) -> Strip:
        drawn.append(y)
        return render(y)

    return render_line


async def test_the_cursor_stays_with_its_move_when_the_table_changes() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "down", "down")
        table = on.app.screen.query_one("#moves", KeyedTable)
        assert table.key_at_cursor == "orders-2"
        await on.show(running())
        assert table.key_at_cursor == "orders-2"
        left = plan_ready().plan
        assert left is not None
        fewer = left.model_copy(update={"moves": moves()[1:], "hash": "f" * 64})
        await on.show(replace(plan_ready(), plan=fewer))
        assert table.key_at_cursor == "orders-2"


async def test_enter_on_a_move_shows_its_reason_in_full() -> None:
    async with stage(plan_ready()) as on:
        await on.press("2", "down", "enter")
        assert isinstance(on.app.screen, ReasonScreen)
        reason = str(on.app.screen.query_one("#reason").render())
        assert reason == (
            "relieves broker 1 (bytes in 200% above average); broker 3 is 100% below average"
        )
        await on.press("escape")
        assert len(on.app.screen_stack) == 1


async def test_a_rollback_move_promises_no_gain() -> None:
    view = running()
    assert view.run is not None
    reported = []
    for gain in (0.5, 0.0):
        back = tuple(
            replace(m, move=m.move.model_copy(update={"gain": gain})) for m in view.run.moves
        )
        async with stage(replace(view, run=replace(view.run, moves=back))) as on:
            await on.press("3", "enter")
            assert isinstance(on.app.screen, ReasonScreen)
            lines = on.app.screen.query(Static).results(Static)
            reported.append(" ".join(str(line.render()) for line in lines))
    assert ["would be higher" in message for message in reported] == [True, False]


async def test_behind_a_dialog_only_the_header_is_updated() -> None:
    async with stage(plan_ready()) as on:
        await on.press("A")
        await on.show(balanced_after_run())
        assert "BALANCED" in on.header
        assert on.table("#brokers")[0][2] == "in !+200%"
        await on.press("escape")
        assert on.table("#brokers")[0][2] == "in +2%"


async def test_the_log_follows_its_end_unless_scrolled_up() -> None:
    lines = log(*(f"line {i}" for i in range(40)))
    async with stage(replace(plan_ready(), log=lines)) as on:
        await on.press("6")
        pane = on.app.screen.query_one(LogPane)
        assert pane.scroll_y == pane.max_scroll_y > 0
        pane.scroll_to(y=3, animate=False, force=True)
        pane.release_anchor()
        await on.settle()
        await on.show(replace(plan_ready(), log=(*lines, *log("one more"))))
        assert pane.scroll_y == 3


async def test_words_with_brackets_are_not_markup() -> None:
    odd = "[red]broker[/] [1] refused"
    view = replace(failed(), message=odd, log=log(odd), cluster_name="[b]")
    async with stage(view) as on:
        assert odd in on.header


async def test_help_explains_the_focused_part_and_lists_keys() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("question_mark")
        assert "Each bar is a broker's deviation" in on.help
        assert "Replan Make a new plan from the latest loads" in on.help
        await on.press("tab")
        assert "Each bar is" not in on.help
        await on.press("question_mark")
        assert not on.app.screen.query(HelpPanel)


async def test_help_explains_greyed_keys_and_can_be_read_to_its_end() -> None:
    async with stage(plan_ready(Mode.READ_ONLY), size=(120, 24)) as on:
        await on.press("question_mark")
        assert "--allow-changes" in on.help
        panel, before = on.app.screen.query_one(HelpPanel), on.help
        await on.press("shift+tab", "end")
        assert on.app.screen.focused is panel
        assert panel.scroll_y == panel.max_scroll_y > 0
        assert on.help == before


async def test_a_terminal_too_small_shows_one_sentence() -> None:
    async with stage(plan_ready(), size=(60, 16)) as on:
        for size, fits in (((60, 16), True), ((59, 24), False), ((80, 15), False)):
            await on.pilot.resize_terminal(*size)
            await on.settle()
            assert on.app.screen.query_one("#too-small").display is not fits


async def test_nothing_is_typed_into_a_covered_field() -> None:
    async with stage(plan_ready()) as on:
        await on.press("4", "slash", "A")
        await on.pilot.resize_terminal(20, 5)
        await on.settle()
        assert on.app.screen.query_one("#too-small").region.size == (20, 5)
        await on.press("P")
        await on.pilot.resize_terminal(80, 24)
        await on.press("q")
        assert on.app.screen.query_one(Input).value == "Aq"


@pytest.mark.parametrize("size", [(59, 24), (80, 15)])
async def test_keys_do_nothing_on_a_terminal_too_small(size: tuple[int, int]) -> None:
    async with stage(plan_ready(), size=(80, 24)) as on:
        await on.press("2")
        await on.pilot.resize_terminal(*size)
        await on.press("down", "space", "d", "r", "u", "slash", "A", "3", "ctrl+p")
        assert on.app.current_mode == "plan"
        assert len(on.app.screen_stack) == 1
        assert on.loop.plans_wanted == 0
        assert on.loop.proposals.asked == []
        await on.pilot.resize_terminal(80, 24)
        await on.settle()
        assert on.app.screen.query_one("#moves", KeyedTable).cursor_row == 0
        assert not on.app.screen.query("#filter:focus")
        await on.pilot.resize_terminal(*size)
        await on.press("q")
        assert not on.app.is_running


async def test_a_narrow_screen_draws_one_resource_and_tab_the_next() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        table = on.app.screen.query_one("#brokers", KeyedTable)
        keys = [column.key for column in table.columns_shown]
        assert all("█" in on.table("#brokers")[0][keys.index(k)] for k in ("net_in", "net_out"))
        await on.pilot.resize_terminal(80, 24)
        await on.settle()
        for drawn in ("net_in", "net_out", "net_in"):
            keys = [column.key for column in table.columns_shown]
            rows = on.table("#brokers")
            assert [k for k in keys if "█" in rows[0][keys.index(k)]] == [drawn]
            await on.press("tab")


async def test_a_plan_is_estimated_once_for_header_and_approval() -> None:
    async with stage(solving(), size=(120, 40)) as on:
        assert on.loop.previews == 0
        await on.show(plan_ready())
        assert "about 75.0 s" in on.header
        await on.show(plan_ready())
        assert on.loop.previews == 1
        on.loop.forecast = replace(FORECAST, seconds=90.0)
        await on.press("A")
        assert "about 90.0 s" in str(on.asking.query_one("#takes").render())
        await on.press("escape")
        await on.show(plan_ready())
        assert "about 90.0 s" in on.header


async def test_the_approval_opens_with_the_duration_that_the_header_shows() -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        assert "about 75.0 s" in on.header
        asked = ApproveScreen(plan(), on.app.moment, lambda _hash: None, lambda _plan: FORECAST)
        texts = [str(widget.content) for widget in asked.first() if isinstance(widget, Static)]
        assert any("duration: about 75.0 s" in text for text in texts)


async def test_a_tick_renews_the_screen_only_where_no_view_has_come() -> None:
    async with stage(plan_ready()) as on:
        # Nothing is awaited meanwhile, so that the app's own clock cannot tick.
        on.app.on_view_arrived(ViewArrived(plan_ready()))
        moment = on.app.moment
        on.app._tick()
        assert on.app.moment is moment
        on.app._tick()
        assert on.app.moment is not moment


async def test_a_vanished_terminal_ends_the_screen() -> None:
    async with stage(plan_ready()) as on:
        on.terminal_gone = True
        on.app._tick()
        await on.settle()
        assert not on.app.is_running
        assert on.app.ended_by is signal.SIGHUP


async def test_another_theme_repaints_what_is_shown() -> None:
    async with stage(plan_ready()) as on:
        table = on.app.screen.query_one("#brokers", KeyedTable)
        before = table.render_line(1)
        on.app.theme = "textual-light"
        await on.settle()
        assert table.render_line(1) != before


async def test_without_colour_the_words_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(plan_ready()) as on:
        assert on.app.no_color
        assert on.table("#brokers")[0][2] == "in !+200%"


async def test_a_burst_of_views_ends_with_the_last_one() -> None:
    async with stage(CONNECTING) as on:
        for view in [solving(), plan_ready()] * 50 + [balanced_after_run()]:
            on.loop.show(view)
        await on.settle()
        assert "BALANCED" in on.header


async def test_screens_are_built_before_they_are_visited() -> None:
    async with stage(plan_ready(), size=(120, 40), ahead_s=0.01) as on:
        await _built(on)
        built = on.app._screen_stacks["topics"][0]
        assert built.query_one("#topics", KeyedTable).key_at_cursor
        assert on.app.current_mode == "overview"
        assert on.app.screen.focused is on.app.screen.query_one("#brokers")
        await on.press("4")
        assert on.app.screen is built
        assert on.table("#topics")
        await on.press("2")
        assert "PLAN READY" in on.header


async def _built(on: Stage) -> None:
    """Wait until all screens are built."""
    for _ in range(600):
        stacks = on.app._screen_stacks
        if set(stacks) == set(on.app.MODES):
            tables = [s.query_one(KeyedTable) for m in ("plan", "topics") for s in stacks[m]]
            if all(table.key_at_cursor for table in tables):
                return
        await on.pilot.pause(0.05)


async def test_a_plan_on_a_screen_never_opened_has_not_been_viewed() -> None:
    async with stage(plan_ready(), size=(120, 40), ahead_s=0.01) as on:
        await _built(on)
        await on.show(plan_ready(of=loaded_plan()))
        await on.press("2")
        panel = on.app.screen.query_one(MovesPanel)
        assert loaded_plan().hash[:12] in str(panel.border_title)
        assert str(panel.border_subtitle or "") == ""
        await on.show(plan_ready())
        assert "since the plan seen before" in str(panel.border_subtitle)


async def test_a_theme_chosen_before_a_first_visit_is_that_of_the_screen() -> None:
    async with stage(plan_ready(), size=(120, 40), ahead_s=0.01) as on:
        await _built(on)
        on.app.theme = "textual-light"
        await on.settle()
        await on.press("6")
        colours = {w.styles.background for w in on.app.screen.query(HeaderBar)}
        await on.press("1")
        assert colours == {w.styles.background for w in on.app.screen.query(HeaderBar)}
        assert on.app.screen.styles.background.brightness > 0.5


async def test_a_form_checks_a_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("2", "w")
        form = on.app.screen
        assert isinstance(form, FormScreen)
        checked: list[object] = []
        monkeypatch.setattr(form, "_check", checked.append)
        await on.press("7")
        field = form.focused
        assert isinstance(field, Input)
        field.post_message(Input.Changed(field, field.value))
        await on.settle()
        assert len(checked) == 1
