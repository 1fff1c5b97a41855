"""The screen of a fleet: what comes first, what is opened, and what it does in trouble."""

import threading
from typing import cast

import pytest
from textual.app import ComposeResult

from control.cli.fleet_source import ClusterDetail
from control.cli.output_types import FleetAnswer
from control.service.member_state import MemberState
from model.errors import ConfigError, ServiceUnreachable
from tests.support.hostile_names import HOSTILE, unprintable
from tests.support.tui.fleets import (
    FakeFleet,
    FleetStage,
    balanced,
    every_kind,
    fleet,
    fleet_stage,
    member,
    worst,
)
from tui.fleet_app import FleetApp
from tui.screens.fleet import FleetScreen
from tui.viewmodel.cells import plain
from tui.viewmodel.fleet import Attention, FleetMoment, attention, fleet_header, fleet_table
from tui.viewmodel.sort_filter import Wish
from tui.widgets.keyed_table import KeyedTable

ORDER = ["fails", "hangs", "lost", "dies", "asks", "moves", "starts"]
GONE = ServiceUnreachable("the plimsoll service of fleet has been killed; start it again")


def names(on: FleetStage) -> list[str]:
    return [row[0] for row in on.table]


async def test_the_cluster_that_needs_attention_most_comes_first() -> None:
    async with fleet_stage(every_kind(), size=(160, 40)) as on:
        assert names(on)[: len(ORDER) - 1] == ORDER[:-1]
        rows = {row[0]: row[1:] for row in on.table}
        assert rows["asks"][:2] == ["plan waits, paused", "broker 3 bytes in -58%"]
        assert rows["moves"] == [
            *("running", "broker 12 bytes in +62%", "1 s", "6/9, 43 s left"),
            "approve: plan 12a9730abc38",
        ]
        assert rows["lost"][0] == "not ready"
        assert rows["lost"][2] == "5 min"
        assert rows["dies"][1] == "broker 2 dead"
        assert rows["backup"][0] == "standing by"
        assert rows["pauses"][0] == "paused"
        header = on.words("#header")
        assert "10 clusters" in header
        assert "ATTENTION  5 of 10 clusters; first: fails, failed: fails.toml is not" in header


async def test_a_tick_while_the_app_is_being_closed_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first widgets are gone by then, and the screen is not."""
    close, ticks = FleetApp._close_all, []

    async def closing(app: FleetApp) -> None:
        await app.screen.query_one("#header").remove()
        app.tick()
        ticks.append(app.is_running)
        await close(app)

    monkeypatch.setattr(FleetApp, "_close_all", closing)
    async with fleet_stage(every_kind(), size=(160, 40)):
        pass
    assert ticks == [False]


async def test_a_tick_before_the_screen_is_composed_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a slow machine the first tick comes before the widgets."""
    compose, ticks = FleetScreen.compose, []

    def ticked(screen: FleetScreen) -> ComposeResult:
        cast("FleetApp", screen.app).tick()
        ticks.append(screen.is_mounted)
        yield from compose(screen)

    monkeypatch.setattr(FleetScreen, "compose", ticked)
    async with fleet_stage(balanced()) as on:
        assert names(on)
    assert ticks == [False]


@pytest.mark.parametrize("width", [55, 75, 115, 200])
def test_everything_fits_and_no_figure_is_cut(width: int) -> None:
    moment = FleetMoment(name="fleet.toml", answer=every_kind(), age_s=0.0)
    table = fleet_table(moment, width, Wish())
    assert sum(column.width for column in table.columns) <= width
    for row in table.rows:
        for column, shown in zip(table.columns, row.cells, strict=True):
            assert len(plain(shown)) <= column.width
    (moves,) = (" ".join(map(plain, row.cells)) for row in table.rows if row.key == "moves")
    assert all(words in moves for words in ("12 ", "in +62%", "6/9"))
    assert all(len(plain(line)) <= width for line in fleet_header(moment, width))


async def test_a_changed_fleet_is_shown_and_the_cursor_stays_on_its_cluster() -> None:
    async with fleet_stage(balanced()) as on:
        assert names(on) == ["west", "east"]
        await on.press("down")
        on.fleet.answer = fleet(
            member("east"),
            member("west", service=MemberState.FAILED, message="boom"),
            member("north", worst_broker=worst(0.5, outside=True)),
        )
        await on.later(1.0)
        assert names(on) == ["west", "north", "east"]
        assert on.screen.query_one(KeyedTable).key_at_cursor == "east"
        await on.press("slash", *"nor", "enter")
        assert names(on) == ["north"]


async def test_a_service_that_does_not_answer_is_named_and_ages_grow() -> None:
    async with fleet_stage(balanced()) as on:
        on.fleet.fault = GONE
        await on.later(90.0)
        assert "NO ANSWER  for 90 s: the plimsoll service of fleet has been killed" in on.words(
            "#header"
        )
        assert on.screen.has_class("-stale")
        assert on.table[0][3] == "91 s"
        on.fleet.fault = None
        await on.later(1.0)
        assert "BALANCED" in on.words("#header")
        assert not on.screen.has_class("-stale")
        assert on.table[0][3] == "1 s"


async def test_a_cluster_is_opened_with_what_its_service_says_and_closed() -> None:
    async with fleet_stage(every_kind(), size=(120, 40)) as on:
        await on.press(*["down"] * ORDER.index("asks"), "enter")
        assert on.fleet.opened == ["asks"]
        text = on.words("ClusterPanel Lines")
        for words in (
            *("plan waits, paused", "38 moves, limit 20", "Europe/Berlin"),
            *("50.2 MB/s (+34 %)", "reconsidered when a person answers"),
            "plimsoll ctl approve b1c2d3e4f5a6 --fleet fleet.toml --cluster asks",
        ):
            assert words in text
        await on.later(5.0)
        assert on.fleet.opened == ["asks", "asks"]
        on.fleet.fault = GONE
        await on.later(5.0)
        assert "has been killed; start it again" in on.words("ClusterPanel Lines")
        on.fleet.fault, on.fleet.answer = None, balanced()
        await on.later(1.0)
        assert "no such cluster any more" in on.words("ClusterPanel Lines")
        await on.press("escape")
        assert not on.screen.query_one("ClusterPanel").display
        await on.later(10.0)
        assert len(on.fleet.opened) == 3
        assert names(on) == ["west", "east"]


async def test_one_can_leave_while_the_service_hangs() -> None:
    hangs = threading.Event()

    async with fleet_stage(balanced()) as on:

        def table() -> FleetAnswer:
            hangs.wait()
            return balanced()

        vars(on.fleet)["table"] = table
        on.clock_s += 60.0
        on.app.tick()
        on.clock_s += 60.0
        on.app.tick()
        await on.pilot.pause(0)
        assert on.table[0][3] == "2 min"
        await on.pilot.press("q")
        await on.pilot.pause(0)
        assert on.app.return_code == 0
    hangs.set()


async def test_the_end_of_the_terminal_ends_the_app() -> None:
    async with fleet_stage(balanced()) as on:
        on.terminal_gone = True
        on.app.tick()
        assert on.app.ended_by is not None


def test_an_unknown_key_is_refused() -> None:
    fake = FakeFleet(balanced(), keys={"app.leave": "Q"})
    with pytest.raises(ConfigError, match=r"unknown id 'app.leave'"):
        FleetApp(fake, fake, balanced(), name="fleet.toml")


async def test_a_redefined_key_works() -> None:
    async with fleet_stage(balanced(), keys={"app.quit": "Q"}) as on:
        await on.press("q")
        assert on.app.return_code is None
        await on.pilot.press("Q")
        assert on.app.return_code == 0


@pytest.mark.parametrize("name", HOSTILE.values(), ids=HOSTILE)
async def test_texts_of_others_cannot_control_the_terminal(name: str) -> None:
    answer = fleet(member("east", service=MemberState.FAILED, message=name, reason=name))
    async with fleet_stage(answer) as on:
        on.fleet.detailed = ClusterDetail(status=f"{name}\n", brokers=name, decisions=name)
        await on.press("enter")
        assert not unprintable(on.app.export_screenshot())
        await on.pilot.resize_terminal(20, 5)
        await on.settle()
        assert names(on) == ["east"]


def test_every_reason_for_attention_occurs() -> None:
    found = {attention(row) for row in every_kind().clusters}
    assert found | {attention(member("ends", service=MemberState.STOPPING))} == {*Attention}
