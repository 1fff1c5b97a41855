"""Which cluster is used, and with which client.properties."""

import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from control import compose
from control.cli.main import app
from control.settings.settings import load
from model.errors import ConfigError


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    (tmp_path / "a.properties").write_text("bootstrap.servers=a:1\nclient.id=mine\n")
    (tmp_path / "b.properties").write_text("bootstrap.servers=b:1\n")


def test_servers_of_the_file_are_used_unless_others_are_given() -> None:
    path = Path("a.properties")
    result = compose.connection(load({"client_properties": path}))
    assert (result.bootstrap, result.client.client_id) == ("a:1", "mine")
    named = {"client_properties": path, "bootstrap_server": "c:1"}
    result = compose.connection(load(named))
    assert (result.bootstrap, result.client.client_id) == ("c:1", "mine")


def test_the_file_is_named_by_flag_environment_or_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own.toml").write_text('client_properties = "a.properties"\n')
    monkeypatch.setenv("PLIMSOLL_CONFIG", "own.toml")
    assert compose.bootstrap_of(load({})) == "a:1"
    monkeypatch.setenv("PLIMSOLL_CLIENT_PROPERTIES", "b.properties")
    assert compose.bootstrap_of(load({})) == "b:1"
    typed = {"client_properties": Path("a.properties")}
    assert compose.bootstrap_of(load(typed)) == "a:1"


def test_without_servers_the_error_names_both_ways_to_set_them() -> None:
    Path("c.properties").write_text("client.id=mine\n")
    with pytest.raises(ConfigError, match=r"--bootstrap-server HOST:PORT, .*bootstrap"):
        compose.bootstrap_of(load({"client_properties": Path("c.properties")}))


def test_unused_keys_are_named_in_one_warning(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = logging.getLogger("plimsoll")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", True)
    Path("c.properties").write_text("bootstrap.servers=a:1\ngroup.id=g\nacks=all\n")
    compose.executor(load({"client_properties": Path("c.properties")})).close()
    assert caplog.messages == ["c.properties: plimsoll does not use: group.id, acks"]


@pytest.mark.parametrize(
    "command", ["", "status", "plan", "rollback", "elect-leaders", "cleanup", "run --auto"]
)
def test_commands_that_connect_accept_the_file(command: str) -> None:
    typed = [*command.split(), "--command-config", "none.properties"]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert "cannot read none.properties: No such file" in result.stderr


def test_commands_on_files_reject_a_connection_file() -> None:
    typed = ["plan", "--snapshot", "s.json", "--command-config", "a.properties"]
    result = CliRunner().invoke(app, typed)
    assert result.exit_code == 2
    assert "--command-config is for a live cluster, but --snapshot" in result.stderr
