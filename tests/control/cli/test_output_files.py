"""Output files: checked before the search, and never replacing other content."""

import json
import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

from control.cli.main import app
from control.cli.output_files import check_folder
from model.errors import ConfigError
from model.snapshot.file import write_snapshot
from tests.support import cli_offline
from tests.support.control.loop_parts import MB, cluster

FOLDER = "--reassignment-json"
WRITING = {
    "--out": ("plan",),
    FOLDER: ("plan",),
    "--svg": ("frontier",),
    "frontier --out": ("frontier",),
    "what-if --out": ("what-if", "--add-broker", "1"),
    "assign --out": ("assign", "new", "-p", "2", "-r", "1"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cli_offline.enter(monkeypatch, tmp_path)
    write_snapshot(tmp_path / "s.json", cluster([2] * 4, [MB] * 4))
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "mine.json").write_text('{"kind": "note"}\n')
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.fixture
def unsolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a search begins."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the search began before the file was checked")

    # Modules that import these functions must be loaded before they are replaced.
    for module in ("solver.studies.trace_frontier", "solver.studies.min_brokers"):
        import_module(module)
    for call in (
        "solve.solve",
        "studies.trace_frontier.trace_plans",
        "new_topic.assign_topic.assign_replicas",
    ):
        monkeypatch.setattr(f"solver.{call}", never)


def run(option: str, target: str) -> tuple[int, str]:
    flag = option.split()[-1]
    arguments = [*WRITING[option], "--snapshot", "s.json", flag, target]
    ran = CliRunner().invoke(app, arguments)
    return ran.exit_code, ran.stderr


@pytest.mark.parametrize("option", [o for o in WRITING if o != FOLDER])
@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere/p.json", "there is no folder nowhere"),
        ("notes.txt/p.json", "notes.txt is not a folder"),
        ("folder", "it is a folder; name a file"),
        ("/dev/null", "it is not a regular file"),
        ("notes.txt", "notes.txt exists and is not a"),
        ("mine.json", "mine.json exists and is not a"),
        ("s.json", "s.json exists and is not a"),
    ],
)
def test_an_unwritable_file_is_rejected_before_the_solve(
    here: Path, unsolved: None, option: str, target: str, message: str
) -> None:
    before = {p: p.read_bytes() for p in here.glob("*.*")}
    code, output = run(option, target)
    assert code == 2
    assert message in output
    assert len(output.splitlines()) == 1
    assert {p: p.read_bytes() for p in here.glob("*.*")} == before


@pytest.mark.parametrize("target", ["notes.txt", "notes.txt/sub", "/dev/null"])
def test_a_path_that_is_not_a_folder_is_rejected_before_the_solve(
    here: Path, unsolved: None, target: str
) -> None:
    code, output = run(FOLDER, target)
    assert code == 2
    assert "is not a folder" in output


@pytest.mark.parametrize("option", WRITING)
def test_output_of_an_earlier_command_is_overwritten(here: Path, option: str) -> None:
    (here / "empty").touch()
    folder = option == FOLDER
    for _ in range(2):
        code, output = run(option, "deep/er" if folder else "empty")
        assert code == 0, output
    assert (here / "deep/er").is_dir() if folder else (here / "empty").stat().st_size


def test_a_folder_without_rights_is_refused(
    here: Path, unsolved: None, without_rights: Callable[[Path], None]
) -> None:
    without_rights(here / "folder")
    for option in WRITING:
        code, output = run(option, "folder/p.json")
        assert code == 2
        assert "folder is not writable" in output


@pytest.fixture
def without_rights(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Remove the rights to a folder, for root too."""

    def take(folder: Path) -> None:
        real = os.access
        monkeypatch.setattr("os.access", lambda p, mode: Path(p) != folder and real(p, mode))

    return take


def test_an_absent_or_new_folder_is_accepted(here: Path) -> None:
    check_folder(None)
    check_folder(here / "a" / "b")
    assert not (here / "a").exists()
    with pytest.raises(ConfigError, match=r"notes\.txt is not a folder"):
        check_folder(here / "notes.txt" / "b")


LONG = "x" * 300


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "--snapshot", "s.json", "--out", LONG),
        ("plan", "--snapshot", "s.json", "--reassignment-json", LONG),
        ("frontier", "--snapshot", "s.json", "--svg", LONG),
        ("replay", LONG),
        ("record", "-b", "127.0.0.1:1", "--out", LONG),
    ],
)
def test_an_impossible_file_name_is_rejected(here: Path, arguments: tuple[str, ...]) -> None:
    run = CliRunner().invoke(app, arguments)
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == f"plimsoll: cannot use {LONG}: File name too long\n"


def test_logs_are_appended_only_to_logs(here: Path) -> None:
    plan = ("plan", "--snapshot", "s.json", "--log-file")
    for name in ("s.json", "mine.json", "notes.txt"):
        before = Path(name).read_bytes()
        run = CliRunner().invoke(app, [*plan, name])
        assert run.exit_code == 2
        assert f"{name} exists and is not a plimsoll log" in run.stderr
        assert Path(name).read_bytes() == before
    Path("new.log").touch()
    for name in ("new.log", "new.log", "/dev/null"):
        assert CliRunner().invoke(app, [*plan, name]).exit_code == 0
    # Without a file, the last one is closed.
    assert CliRunner().invoke(app, plan[:-1]).exit_code == 0
    lines = Path("new.log").read_text().splitlines()
    assert len({json.loads(line)["timestamp"] for line in lines}) == len(lines) >= 2
