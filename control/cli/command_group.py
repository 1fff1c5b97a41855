"""Groups of commands: modules loaded by name, options listed by heading.

`plimsoll --help` is written from the table of commands alone. A command's module is
imported when the command runs, or when its own help or completion is asked for.
"""

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final

import typer
from typer.core import TyperCommand, TyperGroup

from control.cli.exit_codes import guarded
from control.cli.invocation import with_settings
from control.cli.options import CLUSTER, COMMON, EXECUTION, OUTPUT, Ascii, Theme

OWN: Final = "Options"
_ORDER: Final = ("Arguments", OWN, CLUSTER, EXECUTION, OUTPUT, COMMON)
"""Headings of options, in the order of the help."""

_APPEARANCE: Final = frozenset({"ascii_only", "theme"})
"""Options that every command accepts; those without a screen ignore them."""

FORMER: Final = frozenset({"--stock", "--stand-down-balancer", "--shorten-segments", "--work"})
"""Former names of options, which still work but are not listed."""

CONTEXT: Final = {"help_option_names": ["-h", "--help"]}

BRACED: Final = re.compile(r"^(?:\{(.+)\}|\[(?=\[)(.+)\])(?=$|\.\.\.)")
"""A required argument, `{NAME}`, and an optional one whose own name has brackets."""

Rows = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A command in the table: what the help needs without importing its module.

    The command is the function `control.cli.commands.NAME.NAME`, with underscores for
    dashes. A group's commands are the functions of the group's module.
    """

    name: str
    summary: str
    """Its help; the first sentence is the line in the list of commands."""
    heading: str = "Commands"
    _: KW_ONLY
    alias: str | None = None
    """A former name, which still works but is not listed."""
    commands: "tuple[CommandEntry, ...]" = ()
    """The commands of a group; empty for a command."""


class Command(TyperCommand):
    """A command whose options are listed by heading."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; options of appearance are added hidden where missing."""
        own = super().get_params(ctx)
        missing = _APPEARANCE - {p.name for p in own}
        ignored = [copy(p) for p in ctx.find_root().command.params if p.name in missing]
        for param in ignored:
            param.expose_value = False
        return [*ignored, *own]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments and options; a usage error names the value that does not fit."""
        return _parsed(self, ctx, args, super().parse_args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The words of the usage line; required arguments are bare, as in POSIX.

        Typer puts them into braces, which look like something to be typed or replaced.
        """
        found = super().collect_usage_pieces(ctx)
        return [BRACED.sub(r"\1\2", piece) for piece in found]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, heading by heading."""
        _write(formatter, _options(self, ctx))

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Completions, without names that are not listed."""
        params = map(_listed, self.get_params(ctx))
        names = {n for p in params for n in (*p.opts, *p.secondary_opts)}
        offered = super().shell_complete(ctx, incomplete)
        return [c for c in offered if c.value in names or c.value[:1] != "-"]


class CommandGroup(TyperGroup):
    """Commands of a table, each imported when it is first asked for."""

    entries: ClassVar[tuple[CommandEntry, ...]] = ()
    module: ClassVar = ""
    """That of the commands; by default each has its own."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = LazyCommands(self.entries, self.module)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for a command."""
        return _parsed(self, ctx, args, super().parse_args)

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands in the order of the table, without former names."""
        return [entry.name for entry in self.entries]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and then the commands, heading by heading."""
        _write(formatter, _options(self, ctx))
        found: dict[str, Rows] = {}
        for entry in self.entries:
            row = (entry.name, entry.summary.partition(". ")[0].rstrip("."))
            found.setdefault(entry.heading, []).append(row)
        _write(formatter, found)


class LazyCommands(Mapping[str, Any]):
    """Commands by name, former names included."""

    def __init__(self, entries: tuple[CommandEntry, ...], module: str = "") -> None:
        self._named = {n: e for e in entries for n in (e.name, e.alias) if n}
        self._module = module
        self._load = functools.cache(self._loaded)

    def __getitem__(self, name: str) -> Any:
        return self._load(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._named)

    def __len__(self) -> int:
        return len(self._named)

    def _loaded(self, name: str) -> Any:
        entry = self._named[name]
        function = entry.name.replace("-", "_")
        module = import_module(f"control.cli.commands.{self._module or function}")
        if entry.commands:
            return _group(entry)
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(
            name,
            cls=Command,
            help=entry.summary,
            hidden=name != entry.name,
            context_settings=CONTEXT,
        )(guarded(with_settings(getattr(module, function))))
        return typer.main.get_command(one)


def _parsed(
    command: Any, ctx: Any, args: list[str], parse: Callable[[Any, list[str]], list[str]]
) -> list[str]:
    """What `parse` leaves of the arguments of a command or group.

    Raises BadParameter for a value that does not fit, which it names, and for an empty path, which
    would be read as the current folder. Errors of Typer's types are pydantic's, and name none.
    """
    may_be_empty = "." not in args and any(word == "" or word.endswith("=") for word in args)
    try:
        rest = parse(ctx, args)
    except typer.BadParameter as exc:
        errors = getattr(exc.__cause__, "errors", None)
        if errors is not None:
            exc.message = _value_words(errors()[0])
        raise
    if may_be_empty:
        for param in command.get_params(ctx):
            if ctx.params.get(param.name) == Path():
                raise typer.BadParameter("the path is empty", ctx=ctx, param=param)
    return rest


def _value_words(error: dict[str, Any]) -> str:
    value, limits = error["input"], error.get("ctx", {})
    if str(value).strip().lower().lstrip("+-") == "nan":
        # It is within no limits.
        return f"{value!r} is not a number"
    match error["type"]:
        case "int_parsing" | "int_type" | "int_from_float":
            return f"{value!r} is not a whole number"
        case "int_parsing_size":
            return f"{value} is too large"
        case "float_parsing" | "float_type" | "finite_number":
            return f"{value!r} is not a number"
        case "greater_than_equal":
            return f"{value} is less than {limits['ge']}"
        case "less_than_equal":
            return f"{value} is more than {limits['le']}"
        case _:
            return str(error["msg"]).removeprefix("Value error, ")


def _group(entry: CommandEntry) -> Any:
    names = {"entries": entry.commands, "module": entry.name}
    app = typer.Typer(
        cls=type("Group", (CommandGroup,), names),
        name=entry.name,
        add_completion=False,
        rich_markup_mode=None,
        no_args_is_help=True,
        help=entry.summary,
        context_settings=CONTEXT,
    )
    app.callback()(pass_appearance)
    return typer.main.get_command(app)


def _options(command: Any, ctx: Any) -> dict[str, Rows]:
    found: dict[str, Rows] = {heading: [] for heading in _ORDER}
    for param in command.get_params(ctx):
        row = help_row(param, ctx)
        if row is not None:
            found[_heading(param)].append(row)
    return found


def help_row(param: Any, ctx: Any) -> tuple[str, str] | None:
    """Names of a parameter and its help; None where it is hidden."""
    row: tuple[str, str] | None = _listed(param).get_help_record(ctx)
    return row


def _listed(param: Any) -> Any:
    """A parameter with the names that are listed; its other names work, too.

    Former names are not listed, nor is `--no-X`, which only states the default.
    """
    listed = copy(param)
    listed.opts = [name for name in param.opts if name not in FORMER]
    if any(name.startswith("--no-") for name in param.secondary_opts):
        listed.secondary_opts, listed.show_default = [], False
    return listed


def _heading(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    own = {"help", "version", "install_completion", "show_completion"}
    heading: str | None = getattr(param, "rich_help_panel", None)
    return heading or (COMMON if param.name in own else OWN)


def _write(formatter: Any, sections: Mapping[str, Rows]) -> None:
    for heading, rows in sections.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


# ---- options before the command's name


def pass_options(context: typer.Context) -> None:
    """Pass the options before a command's name on to the command.

    An option after the name takes precedence.

    Raises typer.BadParameter where the command has no such option.
    """
    above: Any = context.command
    name = context.invoked_subcommand or ""
    command = above.commands[name]
    typed = dict(_typed(context))
    inner = getattr(command, "commands", {})
    known = {p.name for each in (command, *inner.values()) for p in each.params}
    for param in typed:
        if param not in known and param not in _APPEARANCE:
            flag = next(p.opts[0] for p in above.params if p.name == param)
            raise typer.BadParameter(f"{name} has no option {flag}; omit it")
    # The commands of a group find the values in their own contexts.
    context.default_map = {name: dict.fromkeys(inner, typed) or typed}


def pass_appearance(context: typer.Context, ascii_only: Ascii = False, theme: Theme = None) -> None:
    """Pass a group's options of appearance on to its command."""
    del ascii_only, theme  # The context knows which were given.
    name = context.invoked_subcommand or ""
    above = dict(context.default_map or {})
    given = {**above.get(name, {}), **dict(_typed(context))}
    context.default_map = {**above, name: given}


def _typed(context: typer.Context) -> Iterator[tuple[str, Any]]:
    for name, value in context.params.items():
        source = context.get_parameter_source(name)
        # --read-only asks for what a command without the option does anyway.
        asked = name != "allow_changes" or value
        if source is not None and source.name == "COMMANDLINE" and asked:
            yield name, value
