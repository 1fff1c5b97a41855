"""Pictures of the screen in each state; `--snapshot-update` draws them again."""

import re
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.image import SVGImageSnapshotExtension
from textual.widgets import Input

from control.loop.view import Mode
from model.ids import PartitionId, TopicName
from model.snapshot.replication import Replication
from model.snapshot.snapshot import BrokerState
from tests.support.tui.app_harness import Stage, stage
from tests.support.tui.large_clusters import crowded, with_states
from tests.support.tui.loop_views import (
    CONNECTING,
    NAME,
    UNREACHABLE,
    balanced_after_run,
    competing_rebalancer,
    disconnected,
    estimated,
    failed,
    measuring,
    no_partitions,
    plan_ready,
)
from tui.themes import COLOUR_BLIND, ascii_text
from tui.viewmodel.brokers.broker_map import MAP_FROM

STATES = {
    "connecting": CONNECTING,
    "unreachable": UNREACHABLE,
    "disconnected": disconnected(),
    "measuring": measuring(),
    "no_partitions": no_partitions(),
    "estimated": estimated(),
    "competing_rebalancer": competing_rebalancer(),
    "level": replace(balanced_after_run(), run=None),
    "failed": failed(),
}
SCREENS = ("overview", "plan", "topics", "log")
SIZES = ((80, 24), (120, 40), (200, 50))


@pytest.fixture
def picture(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    return snapshot.use_extension(SVGImageSnapshotExtension)


def drawn(on: Stage) -> str:
    """The picture, with a fixed prefix in place of the one derived from its content."""
    return re.sub(r"terminal-\d+-", "terminal-", on.app.export_screenshot())


async def picture_of(on: Stage) -> str:
    """The picture once it no longer changes; the footer, for example, appears later."""
    before, now = "", drawn(on)
    while now != before:
        await on.pilot.pause(0.05)
        before, now = now, drawn(on)
    return now


async def test_states_of_the_overview(picture: SnapshotAssertion) -> None:
    async with stage(CONNECTING, size=(120, 40)) as on:
        for name, view in STATES.items():
            await on.show(view)
            assert await picture_of(on) == picture(name=name)


@pytest.mark.parametrize("size", [(60, 16), *SIZES], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("brokers", [12, 60, 300])
@pytest.mark.slow
async def test_many_brokers_as_a_table_and_as_a_map(
    brokers: int, size: tuple[int, int], picture: SnapshotAssertion
) -> None:
    """Two of them dead, of which one is the last."""
    dead = {brokers // 2: BrokerState.DEAD, brokers - 1: BrokerState.DEAD}
    view = with_states(dead, crowded(brokers, 20, 10 * brokers, 1e6))
    async with stage(view, size=size) as on:
        assert await picture_of(on) == picture(name="table")
        if brokers >= MAP_FROM:
            await on.press("m", *["down"] * 3)
            assert await picture_of(on) == picture(name="map")


@pytest.mark.parametrize("theme", ["textual-dark", "textual-light"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.slow
async def test_screens(size: tuple[int, int], theme: str, picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=size, theme=theme) as on:
        for name in SCREENS:
            on.app.action_show_mode(name)
            await on.settle()
            assert await picture_of(on) == picture(name=name)


async def test_colour_blind_theme(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40), theme=COLOUR_BLIND.name) as on:
        assert await picture_of(on) == picture


async def test_without_colour(picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with stage(plan_ready(), size=(120, 40)) as on:
        assert await picture_of(on) == picture


async def test_in_ascii(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        assert ascii_text((await picture_of(on)).replace("\u00a0", " ")) == picture


async def test_stale_filtered_sorted_frozen_and_with_the_partitions_of_a_topic(
    picture: SnapshotAssertion,
) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        on.clock_s += 120
        await on.show(plan_ready())
        await on.press("s", "slash", "!", "2", "enter")
        assert await picture_of(on) == picture(name="stale_and_filtered")
        await on.press("4", "enter", "space")
        assert await picture_of(on) == picture(name="partitions_frozen")


async def test_read_only(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(Mode.READ_ONLY), size=(120, 40)) as on:
        assert await picture_of(on) == picture


async def test_approving(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(120, 40)) as on:
        await on.press("A")
        on.app.screen.query_one(Input).cursor_blink = False
        await on.press(*NAME)
        assert await picture_of(on) == picture


async def test_problems_and_the_line_for_names(picture: SnapshotAssertion) -> None:
    lost, behind = (PartitionId(TopicName("orders"), n) for n in (2, 1))
    lacking = Replication(under_replicated=1, offline=1, behind_ids=(behind,), offline_ids=(lost,))
    async with stage(replace(estimated(), replication=lacking), size=(80, 24)) as on:
        await on.press("exclamation_mark")
        assert await picture_of(on) == picture(name="problems")
        await on.press("escape", "colon")
        on.app.screen.query_one(Input).cursor_blink = False
        await on.press(*"to")
        assert await picture_of(on) == picture(name="by_name")


async def test_too_small(picture: SnapshotAssertion) -> None:
    async with stage(plan_ready(), size=(59, 15)) as on:
        assert await picture_of(on) == picture
