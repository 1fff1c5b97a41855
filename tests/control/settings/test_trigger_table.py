"""`[triggers]`: responses, Confluent's modes, and messages about wrong values."""

from pathlib import Path

import pytest

from control.settings.settings import Settings, load
from control.settings.trigger_table import Response, Trigger, TriggerTable
from model.errors import ConfigError


def triggers(folder: Path, text: str) -> TriggerTable:
    path = folder / "mine.toml"
    path.write_text(f"[triggers]\n{text}\n")
    return load({}, config=path).triggers


def test_rules_and_slow_brokers_are_asked_about_and_everything_else_acts() -> None:
    found = {t: Settings().triggers.response(t) for t in Trigger}
    assert found.pop(Trigger.RULE_VIOLATED) is Response.ASK
    assert found.pop(Trigger.SLOW_BROKER) is Response.ASK
    assert set(found.values()) == {Response.ACT}


def test_confluents_mode_for_empty_brokers_ignores_uneven_load(tmp_path: Path) -> None:
    table = triggers(tmp_path, 'mode = "empty-broker"')
    assert table.response(Trigger.UNEVEN_LOAD) is Response.OFF
    assert table.response(Trigger.EMPTY_BROKER) is Response.ACT
    table = triggers(tmp_path, 'mode = "empty-broker"\nuneven_load = "ask"')
    assert table.response(Trigger.UNEVEN_LOAD) is Response.ASK


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('uneven_load = "actt"', "Input should be 'act', 'ask' or 'off'; did you mean 'act'"),
        ("uneven_load = false", "triggers.uneven_load"),
        ('mode = "any"', "Input should be 'any-uneven-load' or 'empty-broker'"),
        ('unevenload = "act"', "unknown key 'triggers.unevenload'; did you mean 'uneven_load'"),
    ],
)
def test_wrong_values_are_named_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as found:
        triggers(tmp_path, text)
    assert message in str(found.value)
    assert "line 2" in str(found.value)
