"""Commands whose help is grouped, and which take options before a command's name."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

OWN: Final = "Options"
CLUSTER: Final = "Cluster"
EXECUTION: Final = "Execution"
OUTPUT: Final = "Output"
COMMON: Final = "Settings, logging and appearance"
_ORDER: Final = ("Arguments", OWN, CLUSTER, EXECUTION, OUTPUT, COMMON)
"""Headings of options, in the order of the help."""

_COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Observe": ("status", "info", "record", "replay"),
    "Plan": ("plan", "verify", "explain", "frontier", "what-if", "place"),
    "Change the cluster": ("run", "apply", "rollback", "elect", "cleanup"),
}
_OTHER: Final = "More"
"""Heading of the commands that stand in no other group."""

_LOOKS: Final = frozenset({"ascii_only", "theme"})
"""Options that a command without a screen may ignore."""

Rows = list[tuple[str, str]]


class Command(TyperCommand):
    """A command whose options stand in groups."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; a command that draws nothing takes and ignores the looks."""
        own = super().get_params(ctx)
        missing = _LOOKS - {p.name for p in own}
        ignored = [copy(p) for p in ctx.find_root().command.params if p.name in missing]
        for param in ignored:
            param.expose_value = False
        return [*ignored, *own]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, group by group."""
        _write(formatter, _options(self, ctx))


class Commands(TyperGroup):
    """Commands that stand in groups, and so do the options of all of them."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options and then the commands, group by group."""
        _write(formatter, _options(self, ctx))
        _write(formatter, self._by_group(ctx))

    def _by_group(self, ctx: Any) -> dict[str, Rows]:
        found: dict[str, Rows] = {group: [] for group in (*_COMMANDS, _OTHER)}
        group_of = {name: group for group, names in _COMMANDS.items() for name in names}
        if ctx.parent is not None:
            found, group_of = {"Commands": []}, {}
        other = list(found)[-1]
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                summary = command.get_short_help_str(200)
                found[group_of.get(name, other)].append((name, summary))
        for group, rows in found.items():
            names = _COMMANDS.get(group, ())
            rows.sort(key=lambda row: names.index(row[0]) if row[0] in names else 0)
        return found


def _options(command: Any, ctx: Any) -> dict[str, Rows]:
    found: dict[str, Rows] = {heading: [] for heading in _ORDER}
    for param in command.get_params(ctx):
        row = param.get_help_record(ctx)
        if row is not None:
            found[_heading(param)].append(row)
    return found


def _heading(param: Any) -> str:
    if param.param_type_name == "argument":
        return "Arguments"
    own = {"help", "version", "install_completion", "show_completion"}
    heading: str | None = getattr(param, "rich_help_panel", None)
    return heading or (COMMON if param.name in own else OWN)


def _write(formatter: Any, groups: Mapping[str, Rows]) -> None:
    for heading, rows in groups.items():
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)


# ---- options before the command's name


def pass_options(context: typer.Context) -> None:
    """Give the command that follows the options that were typed before its name.

    An option typed after the name takes precedence.

    Raises
    ------
    typer.BadParameter
        The command has no such option.
    """
    group: Any = context.command
    name = context.invoked_subcommand or ""
    command = group.get_command(context, name)
    typed = dict(_typed(context))
    known = {p.name: p for p in _params(command)}
    for param in typed:
        if param not in known and param not in _LOOKS:
            flag = next(p.opts[0] for p in group.params if p.name == param)
            raise typer.BadParameter(f"{name} has no option {flag}; leave it out")
    # Whatever the depth of a group, its commands find the values.
    inner = dict.fromkeys(getattr(command, "commands", {}), typed)
    context.default_map = {name: inner or typed}


def pass_appearance(context: typer.Context) -> None:
    """Give a group's command the looks that were typed before the command's name."""
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


def _params(command: Any) -> Iterable[Any]:
    subs = getattr(command, "commands", {}).values()
    return [*command.params, *(p for sub in subs for p in sub.params)]
