"""Options before and after a command's name, and the help that lists them."""

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from control.cli import invocation
from control.cli.command_group import FORMER
from control.cli.main import app
from model.plan.plan import read_plan
from model.snapshot.file import write_snapshot
from tests.support import cli_offline
from tests.support.cli_shapes import GROUP, leaves
from tests.support.control.loop_parts import MB, cluster
from tests.support.paths import ROOT

CHANGING = {
    *("apply", "rollback", "cleanup", "elect-leaders", "elect", "run", "service"),
    *("remove", "add", "replace", "demote", "undemote", "maintenance", "resume"),
    *("set-replicas", "heal", "repair", "exclude", "include", "cancel"),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    cli_offline.enter(monkeypatch, tmp_path)
    write_snapshot(tmp_path / "s.json", cluster([2] * 4, [MB] * 4))
    (tmp_path / "own.toml").write_text("[solve]\nwork = 1.5\n")
    (tmp_path / "other.toml").write_text("[solve]\nwork = 2.5\n")
    return tmp_path


def work(*arguments: str) -> float:
    """The search budget that a plan was made with."""
    options = ("--snapshot", "s.json", "--out", "p.json")
    run = CliRunner().invoke(app, [*arguments, *options])
    assert run.exit_code == 0, run.stderr
    return read_plan(Path("p.json")).limits.work


def test_an_option_before_the_command_is_passed_to_it(here: Path) -> None:
    assert work("plan") == 20
    assert work("plan", "--config", "own.toml") == 1.5
    assert work("--config", "own.toml", "plan") == 1.5
    assert work("--config", "own.toml", "plan", "--config", "other.toml") == 2.5


@pytest.mark.parametrize(
    ("command", "usage"),
    [
        (("login",), "login [OPTIONS] NAME"),
        (("broker", "replace"), "broker replace [OPTIONS] OLD NEW"),
        (("disk", "remove"), "disk remove [OPTIONS] BROKER PATH..."),
        (("explain",), "explain [OPTIONS] PLAN [MOVE]"),
        (("serve",), "serve [OPTIONS] [-- ARGUMENTS]..."),
    ],
)
def test_the_usage_line_has_arguments_as_they_are_typed(
    command: tuple[str, ...], usage: str
) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"]).output
    assert usage in shown
    assert "{" not in shown.partition("\n\n")[0]


@pytest.mark.parametrize(
    ("before", "message"),
    [
        (("--profile", "x"), "no configuration file for profile 'x'"),
        (("--capacity", "nowhere.json"), "cannot read nowhere.json"),
        (("-b", "h:1"), "--snapshot and --bootstrap-server each name a cluster"),
        (("--command-config", "c"), "--command-config is for a live cluster"),
        (("--log-file", "no/log"), "cannot write the log file no/log"),
    ],
)
def test_no_option_before_the_command_is_ignored(
    here: Path, before: tuple[str, ...], message: str
) -> None:
    run = CliRunner().invoke(app, [*before, "plan", "--snapshot", "s.json"])
    assert run.exit_code == 2
    assert message in run.stderr


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("--allow-changes", "plan", "--snapshot", "s.json"), "--allow-changes"),
        (("--play", "f.jsonl", "status"), "--play"),
        (("-b", "h:1", "replay", "state"), "--bootstrap-server"),
        (("--config", "own.toml", "schema", "plan"), "--config"),
    ],
)
def test_an_option_that_the_command_does_not_have_is_refused(
    here: Path, arguments: tuple[str, ...], flag: str
) -> None:
    run = CliRunner().invoke(app, list(arguments))
    assert run.exit_code == 2
    assert f"has no option {flag}; omit it" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("looks", [["--ascii"], ["--theme", "nord"]])
@pytest.mark.parametrize("name", ["plan", "demo", "serve"])
def test_display_options_are_accepted_before_and_after_the_command(
    here: Path, monkeypatch: pytest.MonkeyPatch, name: str, looks: list[str], place: int
) -> None:
    seen: list[str] = []
    real = invocation.load_settings

    @functools.wraps(real)
    def loading(**options: Any) -> Any:
        screen = real(**options).screen
        seen.append("--ascii" if screen.ascii else f"--theme {screen.theme}")
        raise typer.Exit(0)

    def serving(arguments: list[str]) -> None:
        seen.append(" ".join(arguments))
        raise typer.Exit(0)

    monkeypatch.setattr(invocation, "load_settings", loading)
    monkeypatch.setattr("control.cli.commands.serve._refuse", serving)
    arguments = [name]
    arguments[place:place] = looks
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 0, run.stderr
    assert seen == [" ".join(looks)]


@pytest.mark.parametrize("path", leaves(), ids=" ".join)
def test_display_options_are_accepted_wherever_they_appear(path: tuple[str, ...]) -> None:
    for place in range(len(path) + 1):
        looks = ("--ascii", "--theme", "nord")
        arguments = [*path[:place], *looks, *path[place:], "--help"]
        run = CliRunner().invoke(app, arguments)
        assert run.exit_code == 0, run.stderr


def test_display_options_given_to_a_group_reach_its_command(here: Path) -> None:
    looks = ["--ascii", "config", "--theme", "nord", "show", "-o", "json"]
    run = CliRunner().invoke(app, looks)
    result = {s["name"]: s["value"] for s in json.loads(run.stdout)["settings"]}
    assert (result["screen.ascii"], result["screen.theme"]) == (True, "nord")


@pytest.mark.parametrize("name", ["plan", "status", "config", "journal"])
def test_an_unknown_theme_is_refused_with_the_closest(here: Path, name: str) -> None:
    run = CliRunner().invoke(app, [name, "--theme", "drakula"])
    assert run.exit_code == 2
    message = "unknown theme 'drakula'; did you mean 'dracula'? The themes are textual-"
    assert message in run.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("simulate --days x", "'--days': 'x' is not a whole number"),
        ("simulate --days 1.5", "'--days': '1.5' is not a whole number"),
        ("simulate --days 0", "'--days': 0 is less than 1"),
        ("simulate --days 400", "'--days': 400 is more than 366"),
        ("simulate --growth x", "'--growth': 'x' is not a number"),
        ("plan --effort x", "'--effort': 'x' is not one of 'quick', 'good', 'best'."),
        ("topic set-replicas orders x", "'REPLICAS': 'x' is not a whole number"),
        ("broker remove x", "'ID': 'x' is not a broker id"),
    ],
)
def test_a_value_that_does_not_fit_is_named(arguments: str, words: str) -> None:
    run = CliRunner().invoke(app, arguments.split())
    assert run.exit_code == 2
    assert f"Error: Invalid value for {words}" in run.output


def test_an_unknown_theme_in_a_file_is_refused_with_its_line(here: Path) -> None:
    (here / "own.toml").write_text('[screen]\ntheme = "nonsense"\n')
    arguments = ["plan", "--snapshot", "s.json", "--config", "own.toml"]
    run = CliRunner().invoke(app, arguments)
    assert run.exit_code == 2
    assert "line 2: screen.theme: unknown theme 'nonsense'; the themes are" in run.stderr


def test_read_only_is_accepted_before_a_command_that_never_changes_anything() -> None:
    assert CliRunner().invoke(app, ["--read-only", "schema", "plan"]).exit_code == 0


def test_only_commands_that_change_a_cluster_have_the_option_to() -> None:
    offered = {
        path[-1]
        for path, command in leaves().items()
        for param in command.params
        if "--allow-changes" in param.opts
    }
    assert offered == CHANGING


def test_every_option_has_a_help_sentence() -> None:
    for name, command in [((), GROUP), *leaves().items()]:
        for param in command.params:
            if param.param_type_name == "option" and not param.hidden:
                sentence = (param.help or "").partition("  [")[0]
                assert sentence[:1].isupper(), (name, param.name)
                assert sentence.endswith("."), (name, param.name)
                assert set(param.opts) - FORMER, (name, param.name)


def test_help_lists_commands_and_options_in_groups() -> None:
    text = CliRunner().invoke(app, ["--help"]).stdout
    heads = [line for line in text.splitlines() if line.endswith(":")]
    assert heads[-4:] == ["Observe:", "Plan:", "Change the cluster:", "More:"]
    assert "..." not in text.partition("Observe:")[2]
    plan = CliRunner().invoke(app, ["plan", "--help"]).stdout
    heads = [line for line in plan.splitlines() if line.endswith(":")]
    common = "Settings, logging and appearance:"
    assert heads == ["Options:", "Cluster:", "Output:", common]
    assert plan.index("--goals") < plan.index("--snapshot") < plan.index("--out")


FORMER_COMMANDS = {"place": "assign", "elect": "elect-leaders", "synthesise": "generate"}


@pytest.mark.parametrize("former", FORMER_COMMANDS)
def test_a_former_name_of_a_command_is_a_hidden_alias(former: str) -> None:
    old, new = GROUP.commands[former], GROUP.commands[FORMER_COMMANDS[former]]
    assert [p.opts for p in old.params] == [p.opts for p in new.params]
    assert (old.hidden, new.hidden) == (True, False)
    assert CliRunner().invoke(app, [former, "--help"]).exit_code == 0
    assert f"\n  {former} " not in CliRunner().invoke(app, ["--help"]).stdout


@pytest.mark.parametrize(
    ("command", "former", "present"),
    [
        ("plan", "--stock", "--reassignment-json"),
        ("verify", "--work", "--search-budget"),
        *(
            (name, *options)
            for name in ("apply", "rollback", "run")
            for options in (
                ("--stand-down-balancer", "--suspend-balancer"),
                ("--shorten-segments", "--lower-segment-bytes"),
            )
        ),
    ],
)
def test_a_former_name_of_an_option_is_a_hidden_alias(
    command: str, former: str, present: str
) -> None:
    opts = [p.opts for p in GROUP.commands[command].params if former in p.opts]
    assert opts == [[present, former]]
    words = CliRunner().invoke(app, [command, "--help"]).stdout.split()
    assert present in words
    assert former not in words


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("apply", "dry-run"),
        ("rollback", "dry-run"),
        ("elect-leaders", "dry-run"),
        ("status", "watch"),
        ("plan", "detailed-exitcode"),
    ],
)
def test_the_negation_of_a_flag_is_accepted_but_not_listed(command: str, flag: str) -> None:
    (param,) = (p for p in GROUP.commands[command].params if f"--{flag}" in p.opts)
    assert param.secondary_opts == [f"--no-{flag}"]
    text = CliRunner().invoke(app, [command, "--help"]).stdout
    assert f"  --{flag} " in text
    assert f"no-{flag}" not in text


def test_an_unknown_command_is_refused() -> None:
    run = CliRunner().invoke(app, ["plans"])
    assert run.exit_code == 2
    assert "No such command 'plans'" in run.stderr


MODULES = [p.stem for p in (ROOT / "control/cli/commands").glob("[!_]*.py")]


@pytest.mark.parametrize("module", MODULES)
def test_a_command_loads_nothing_heavy_for_its_help(module: str) -> None:
    heavy = {"textual", "pyspark", "ortools", "kafka", "numpy", "pydantic", "rich"}
    code = f"import control.cli.commands.{module}, sys; print(*({heavy!r} & {{*sys.modules}}))"
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, check=True, text=True
    )
    assert run.stdout.split() == []
