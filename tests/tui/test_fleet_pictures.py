"""Pictures of the screen of a fleet; `--snapshot-update` draws them again."""

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from model.errors import ServiceUnreachable
from tests.support.tui.fleets import FleetStage, balanced, every_kind, fleet_stage
from tests.tui.test_pictures import picture
from tui.themes import COLOUR_BLIND, ascii_text

__all__ = ["picture"]

SIZES = [(60, 16), (80, 24), (120, 40)]


def drawn(on: FleetStage) -> str:
    return re.sub(r"terminal-\d+-", "terminal-", on.app.export_screenshot())


async def picture_of(on: FleetStage) -> str:
    """The picture once it no longer changes; the footer, for example, appears later."""
    before, now = "", drawn(on)
    while now != before:
        await on.pilot.pause(0.05)
        before, now = now, drawn(on)
    return now


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_fleet(size: tuple[int, int], picture: SnapshotAssertion) -> None:
    async with fleet_stage(every_kind(), size=size) as on:
        assert await picture_of(on) == picture(name="clusters")
        await on.press("down", "down", "down", "down", "enter")
        assert await picture_of(on) == picture(name="opened")


@pytest.mark.parametrize("theme", ["textual-light", COLOUR_BLIND.name])
async def test_fleet_in_other_themes(theme: str, picture: SnapshotAssertion) -> None:
    async with fleet_stage(every_kind(), size=(120, 40), theme=theme) as on:
        assert await picture_of(on) == picture


async def test_fleet_without_colour_and_in_ascii(
    picture: SnapshotAssertion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with fleet_stage(every_kind()) as on:
        found = await picture_of(on)
        assert found == picture(name="without_colour")
        assert ascii_text(found.replace("\u00a0", " ")) == picture(name="ascii")


async def test_a_balanced_fleet_and_one_whose_service_is_gone(picture: SnapshotAssertion) -> None:
    async with fleet_stage(balanced()) as on:
        assert await picture_of(on) == picture(name="balanced")
        on.fleet.fault = ServiceUnreachable("the plimsoll service of fleet has been killed")
        await on.later(90.0)
        assert await picture_of(on) == picture(name="gone")
