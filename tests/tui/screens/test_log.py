"""The log: filtered by level and word, and stable while it is read."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from control.loop.view import LogLine, LoopView
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.loop_views import AT_MS, CONNECTING, log, plan_ready
from tui.viewmodel.log import LEVELS, kept_lines, lines_since, next_level
from tui.viewmodel.sort_filter import Filter
from tui.widgets.log_pane import LogPane

LINES = tuple(
    LogLine(at_ms=AT_MS, level=level, text=text)
    for level, text in (
        ("info", "measuring"),
        ("warning", "cannot connect"),
        ("info", "connected"),
        ("error", "failed: no right"),
    )
)


def _of(*lines: LogLine) -> LoopView:
    return replace(plan_ready(), log=lines)


def _shown(on: Stage) -> list[str]:
    return [line.text for line in on.app.screen.query_one(LogPane).shown]


def test_a_log_level_includes_those_above_it() -> None:
    counts = [len(kept_lines(LINES, level, Filter())) for level in LEVELS]
    assert counts == [4, 2, 1]
    assert [next_level(level) for level in LEVELS] == ["warning", "error", "info"]


def test_a_filter_matches_level_and_text() -> None:
    assert [line.text for line in kept_lines(LINES, "info", Filter("connect"))] == [
        "cannot connect",
        "connected",
    ]
    assert len(kept_lines(LINES, "info", Filter("!^info"))) == 2


@given(st.integers(0, 6), st.integers(0, 6))
def test_lines_after_the_last_one_seen_are_new(seen: int, new: int) -> None:
    lines = log(*(f"line {i}" for i in range(seen + new))) if seen + new else ()
    last = lines[seen - 1] if seen else None
    assert lines_since(lines, last) == new


async def test_log_levels_and_filters_are_chosen_by_key() -> None:
    async with stage(_of(*LINES)) as on:
        await on.press("6", "l")
        assert _shown(on) == ["cannot connect", "failed: no right"]
        await on.press("l")
        assert _shown(on) == ["failed: no right"]
        await on.press("l", "slash", *"connect", "enter")
        assert _shown(on) == ["cannot connect", "connected"]
        await on.press("escape")
        assert len(_shown(on)) == 4
        assert on.app.current_mode == "log"
        await on.press("escape")
        assert on.app.current_mode == "overview"


async def test_a_scrolled_log_shows_the_number_of_new_lines() -> None:
    lines = log(*(f"line {i}" for i in range(60)))
    async with stage(_of(*lines)) as on:
        await on.press("6")
        pane = on.app.screen.query_one(LogPane)
        assert pane.at_end
        assert not on.app.screen.query_one(".note").display
        await on.press("pageup")
        at = pane.scroll_y
        assert at < pane.max_scroll_y
        await on.show(_of(*lines, *log("one"), *log("two")))
        assert pane.scroll_y == at
        assert on.words("LogScreen .note") == "2 new lines below; press `end` to see them"
        await on.press("end")
        await on.settle()
        assert pane.at_end
        assert not on.app.screen.query_one(".note").display
        await on.show(_of(*lines, *log("one"), *log("two"), *log("three")))
        assert pane.at_end


async def test_an_empty_log_is_explained() -> None:
    async with stage(CONNECTING) as on:
        await on.press("6")
        assert "No decisions yet" in on.words("LogScreen .note")
        await on.show(_of(*LINES))
        await on.press("slash", *"zoe")
        assert "escape clears it" in on.words("LogScreen .note")
