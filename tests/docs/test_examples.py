"""Commands, options, variables and settings in the documentation exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from control.cli.main import app
from control.settings.environment import NOT_SETTINGS
from control.settings.fleet_file import read_fleet
from control.settings.settings import Settings, load
from model.errors import ConfigError
from model.exchange.goals_file import read_goals
from tests.support.markdown import ROOT, blocks, code_spans, name, pages

PROGRAM: Any = typer.main.get_command(app)
USAGE_ERROR: Any = typer.BadParameter.__base__
PAGES = [p for p in pages() if p.parent.name not in ("decisions", "benchmarks")]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
HELP = {"-h", "--help", "--version", "--install-completion", "--show-completion"}
FOREIGN = {"--describe", "--packages", "--jars"}
"""Options of Kafka's tools and of spark-submit."""


def shell_lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Commands of a page's shell blocks, split into words, with their lines."""
    for block in blocks(text):
        if block.language == "":
            joined = block.text.replace("\\\n", " ")
            for line in joined.splitlines():
                yield block.line, shlex.split(line, comments=True)


def parse(words: list[str]) -> None:
    """Parse a command line as the program does, without running it."""
    context, command = PROGRAM.make_context("plimsoll", list(words)), PROGRAM
    while hasattr(command, "resolve_command"):
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_can_be_typed(page: Path) -> None:
    for line, words in shell_lines(page.read_text("utf-8")):
        where = f"{name(page)}, block at line {line}: {shlex.join(words)}"
        if words[:1] == ["make"] and len(words) > 1:
            assert words[1] in TARGETS, where
        elif words and Path(words[0]).name == "plimsoll":
            try:
                parse(words[1:])
            except USAGE_ERROR as exc:
                pytest.fail(f"{where}: {exc.format_message()}")


def test_pages_have_commands_options_and_variables() -> None:
    """Otherwise the tests of each page would check nothing."""
    texts = [page.read_text("utf-8") for page in PAGES]
    typed = [words[:1] for text in texts for _, words in shell_lines(text)]
    spans = [span for text in texts for _, span in code_spans(text)]
    assert typed.count(["plimsoll"]) > 40
    assert sum(span.startswith("plimsoll ") for span in spans) > 20
    assert sum(span.startswith("--") for span in spans) > 100
    assert sum("PLIMSOLL_" in text for text in texts) > 2


def options(command: Any) -> set[str]:
    own = {o for p in command.params for o in (*p.opts, *p.secondary_opts)}
    inner = getattr(command, "commands", {}).values()
    return own.union(*map(options, inner)) | HELP | FOREIGN


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_inline_commands_and_options_exist(page: Path) -> None:
    for line, span in code_spans(page.read_text("utf-8")):
        words = span.split()
        if words[0] == "make" and len(words) > 1:
            assert words[1] in TARGETS, f"{name(page)}:{line}: `{span}`"
        if words[0] != "plimsoll" and not words[0].startswith("--"):
            continue
        command = PROGRAM
        for word in words[1:]:
            command = getattr(command, "commands", {}).get(word, command)
        if words[0] == "plimsoll" and len(words) > 1 and words[1][0] not in "-`":
            assert command is not PROGRAM, f"{name(page)}:{line}: `{span}`"
        typed = {w.partition("=")[0] for w in words if w.startswith("--") and w != "--"}
        unknown = typed - options(command)
        assert not unknown, f"{name(page)}:{line}: `{span}` has no {min(unknown)}"


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_variables_are_settings(page: Path) -> None:
    for variable in re.findall(r"\bPLIMSOLL_[A-Z_]+[A-Z]", page.read_text("utf-8")):
        if not NOT_SETTINGS.fullmatch(variable):
            setting = variable.removeprefix("PLIMSOLL_").partition("__")[0].lower()
            assert setting in Settings.model_fields, f"{name(page)}: {variable}"


TOML = [
    pytest.param(block.text, id=f"{name(page)}:{block.line}")
    for page in PAGES
    for block in blocks(page.read_text("utf-8"))
    if block.language == "toml"
]


@pytest.mark.parametrize("text", TOML)
def test_settings_and_goals_can_be_used(text: str, tmp_path: Path) -> None:
    file = tmp_path / "example.toml"
    file.write_text(text, "utf-8")
    if "[clusters." in text:
        read_fleet(file)
        return
    try:
        load({}, config=file)
    except ConfigError as exc:
        try:
            read_goals(file)
        except ConfigError:
            pytest.fail(str(exc))
