"""Keys redefined by the configuration."""

import pytest

from model.errors import ConfigError
from tests.support.paths import ROOT
from tests.support.tui.app_harness import stage
from tests.support.tui.loop_views import plan_ready
from tui.keymap import checked_keys, known_bindings
from tui.screens.approve import ApproveScreen
from tui.widgets.mode_bar import ModeBar


async def test_a_redefined_key_works_and_is_shown() -> None:
    keys = {"screen.topics": "t", "plan.approve": "ctrl+y", "table.sort": "o"}
    async with stage(plan_ready(), keys=keys) as on:
        assert "t Topics" in str(on.app.screen.query_one(ModeBar).render())
        await on.press("4")
        assert on.app.current_mode == "overview"
        await on.press("o")
        assert [row[0] for row in on.table("#brokers")] == ["3", "2", "1"]
        await on.press("A")
        assert not isinstance(on.app.screen, ApproveScreen)
        await on.press("ctrl+y")
        assert isinstance(on.app.screen, ApproveScreen)


def test_an_unknown_id_is_named_with_the_one_that_may_be_meant() -> None:
    with pytest.raises(ConfigError, match=r"'plan.aprove'; did you mean 'plan.appr"):
        checked_keys({"plan.aprove": "Y"})


@pytest.mark.parametrize("key", ["", "ctrl+", "foo", "x,bar", "hyper+zap"])
def test_an_unknown_key_is_named_with_how_to_write_one(key: str) -> None:
    with pytest.raises(ConfigError, match="is not a key; write x"):
        checked_keys({"table.sort": key})


@pytest.mark.parametrize("key", ["x", "X", "ctrl+x", "f5", "question_mark", "a,b", "~"])
def test_keys_of_every_kind_are_taken(key: str) -> None:
    assert checked_keys({"table.sort": key}) == {"table.sort": key}


def test_actions_that_change_the_cluster_need_deliberate_keys() -> None:
    with pytest.raises(ConfigError, match="typed by accident; use 'Y' or 'ctrl\\+y'"):
        checked_keys({"plan.approve": "y"})


def test_two_actions_on_one_key_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"run.stop and plan.solve are both 'Z'"):
        checked_keys({"run.stop": "Z", "plan.solve": "x,Z"})
    with pytest.raises(ConfigError, match=r"are both 'question_mark'"):
        checked_keys({"plan.solve": "?"})


def test_visible_bindings_have_a_tooltip() -> None:
    for binding in known_bindings().values():
        closes = "escape" in binding.key
        assert not binding.show or (binding.description and (binding.tooltip or closes))


def test_every_binding_with_a_tooltip_is_in_the_documentation_by_its_id() -> None:
    text = (ROOT / "docs" / "reference" / "screen.md").read_text("utf-8")
    ids = {name for name, b in known_bindings().items() if b.tooltip}
    assert {name for name in ids if f"`{name}`" not in text} == set()
