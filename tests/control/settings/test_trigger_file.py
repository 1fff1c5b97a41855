"""Triggers that change while the loop runs."""

import os
from pathlib import Path

from control.settings.settings import trigger_file
from control.settings.trigger_file import changed
from control.settings.trigger_table import Response, TriggerTable


def written(path: Path, text: str, at_s: int) -> None:
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def test_a_changed_file_is_read_once(tmp_path: Path) -> None:
    path, warnings = tmp_path / "mine.toml", list[str]()
    written(path, "[triggers]\nuneven_load = 'ask'\n", 100)
    file = trigger_file(path, None)
    assert file is not None
    assert file.poll(warnings.append) is None
    written(path, "[triggers]\nuneven_load = 'off'\n", 200)
    found = file.poll(warnings.append)
    assert found == TriggerTable(uneven_load=Response.OFF)
    assert file.poll(warnings.append) is None
    assert warnings == []


def test_a_file_that_cannot_be_used_is_reported_once_and_changes_nothing(tmp_path: Path) -> None:
    path, warnings = tmp_path / "mine.toml", list[str]()
    written(path, "", 100)
    file = trigger_file(path, None)
    assert file is not None
    for at_s, text in ((200, "[triggers]\nuneven_load = 'of'\n"), (300, "[trig")):
        written(path, text, at_s)
        assert file.poll(warnings.append) is None
        assert file.poll(warnings.append) is None
    assert len(warnings) == 2
    assert "triggers.uneven_load" in warnings[0]
    assert all("the triggers stay as they are" in warning for warning in warnings)
    path.unlink()
    assert file.poll(warnings.append) is None
    written(path, "[triggers]\nuneven_load = 'act'\n", 400)
    assert file.poll(warnings.append) == TriggerTable(uneven_load=Response.ACT)


def test_a_profile_has_triggers_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    written(path, "[profiles.prod]\nname = 'p'\n", 100)
    file = trigger_file(path, "prod")
    assert file is not None
    written(path, "[profiles.prod.triggers]\ndead_broker = 'off'\n", 200)
    assert file.poll(lambda _warning: None) == TriggerTable(dead_broker=Response.OFF)


def test_changes_are_named() -> None:
    after = TriggerTable(mode="empty-broker", dead_broker=Response.ASK)
    assert list(changed(TriggerTable(), after)) == [
        "dead_broker is ask, it was act",
        "uneven_load is off, it was act",
    ]
