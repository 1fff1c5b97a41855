"""The keys that the screen's benchmark presses."""

import asyncio

from benchmarks.screen_keys import SCENES, ids_in, not_pressed, views


def test_every_binding_counts_in_a_scene() -> None:
    """The benchmark takes minutes, and would end without figures."""
    shown = views(60, 600)

    async def found() -> set[str]:
        return set().union(*[await ids_in(shown[scene.view], scene) for scene in SCENES])

    assert not_pressed(asyncio.run(found())) == []
