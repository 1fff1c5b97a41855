"""`plimsoll config show`: each setting with its value and where it comes from."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from control.settings.settings import Settings
from tests.support import cli_offline

FILE = """\
name = "orders"
timeout_s = "1m"
[goals]
move_price = 2
excluded_topics = ["audit"]
[spark]
"spark.executor.memory" = "2g"
"spark.ssl.keyPassword" = "hush-1"
[archive]
bucket = "ops"
secret_key = "hush-2"
[profiles.night]
timeout_s = 5
[profiles.night.prometheus]
preset = "jmx"
url = "http://p:9090"
broker_label = "pod"
token = "hush-3"
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cli_offline.enter(monkeypatch, tmp_path)
    monkeypatch.delenv("PLIMSOLL_TIMEOUT_S")
    Path("own.toml").write_text(FILE)


def shown(*arguments: str) -> dict[str, tuple[Any, str, str]]:
    options = ("config", "show", "--config", "own.toml", "-o", "json")
    run = CliRunner().invoke(app, [*arguments, *options])
    assert run.exit_code == 0, run.stderr
    document = json.loads(run.stdout)
    assert document["file"] == "own.toml"
    rows = document["settings"]
    return {row["name"]: (row["value"], row["source"], row["place"]) for row in rows}


def test_each_value_has_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_SOLVE__WORK", "3")
    monkeypatch.setenv("PLIMSOLL_STOP_RULES", '{"calm_s": "7s"}')
    result = shown("--theme", "nord", "-b", "h:1")
    assert result["bootstrap_server"] == ("h:1", "flag", "--bootstrap-server")
    assert result["screen.theme"] == ("nord", "flag", "--theme")
    assert result["screen.ascii"] == (False, "default", "")
    assert result["solve.work"] == (3, "environment", "PLIMSOLL_SOLVE__WORK")
    assert result["solve.seed"] == (0, "default", "")
    assert result["stop_rules.calm_s"] == (7, "environment", "PLIMSOLL_STOP_RULES")
    assert result["stop_rules.disk"] == ("pause", "default", "")
    assert result["name"] == ("orders", "file", "own.toml, line 1")
    assert result["timeout_s"] == (60, "file", "own.toml, line 2")
    assert result["goals.move_price"] == (2, "file", "own.toml, line 4")
    regex = result["goals.excluded_topics.regex"]
    assert regex == (["audit"], "file", "own.toml, line 5")
    assert result["goals.capacity_limit"][1] == "default"
    memory = result["spark.spark.executor.memory"]
    assert memory == ("2g", "file", "own.toml, line 7")


def test_a_profile_is_named_with_its_own_lines() -> None:
    result = shown("--profile", "night")
    assert result["timeout_s"] == (5, "profile", "own.toml, line 13")
    assert result["prometheus.preset"] == ("jmx", "profile", "own.toml, line 15")
    assert result["name"] == ("orders", "file", "own.toml, line 1")


@pytest.mark.parametrize("form", ["json", "table"])
def test_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("PLIMSOLL_TIER", '{"bucket": "b", "secret_key": "hush-4"}')
    options = ("--config", "own.toml", "--profile", "night", "-o", form)
    run = CliRunner().invoke(app, ["config", "show", *options])
    assert run.exit_code == 0, run.stderr
    assert "hush" not in run.stdout + run.stderr
    assert run.stdout.count("****") == 4


def test_every_setting_is_there_and_without_a_file_all_are_defaults(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PLIMSOLL_STATE_DIR", "PLIMSOLL_CACHE_DIR"):
        monkeypatch.delenv(name)
    run = CliRunner().invoke(app, ["config", "show", "-o", "json"])
    document = json.loads(run.stdout)
    assert (document["file"], document["profile"]) == (None, None)
    names = {row["name"].partition(".")[0] for row in document["settings"]}
    assert names == Settings.model_fields.keys()
    assert {row["source"] for row in document["settings"]} == {"default"}


def test_an_old_name_in_the_file_is_a_source_too() -> None:
    Path("own.toml").write_text("[goals.budgets]\nmoves = 4\n")
    result = shown()["goals.budgets.replica_moves"]
    assert result == (4, "file", "own.toml, line 2")


@pytest.mark.parametrize("form", ["json", "table"])
def test_an_unlimited_wait_is_shown_as_off(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setenv("PLIMSOLL_DEAD_BROKER_AFTER", "off")
    assert shown()["dead_broker_after"][0] == "off"
    run = CliRunner().invoke(app, ["config", "show", "-o", form])
    assert run.exit_code == 0, run.stderr
    assert "off" in run.stdout
