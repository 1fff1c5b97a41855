"""The shape of the command line and its JSON output: names, without help texts."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from control.cli.main import app

Schema = Mapping[str, Any]


GROUP: Any = typer.main.get_command(app)


def commands() -> dict[str, dict[str, str]]:
    """The options of each command, hidden ones included: `value` or `flag`."""
    above = typer.Context(GROUP, **GROUP.context_settings)
    every = [((), GROUP), *below()]
    return {" ".join(("plimsoll", *path)): _options(command, above) for path, command in every}


def below(group: Any = GROUP, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of a group, with the names that lead to it; groups come first."""
    for name, command in getattr(group, "commands", {}).items():
        yield (*path, name), command
        yield from below(command, (*path, name))


def leaves() -> dict[tuple[str, ...], Any]:
    """The commands that can be run, by the names that lead to them."""
    return {path: command for path, command in below() if not hasattr(command, "commands")}


def _options(command: Any, above: typer.Context) -> dict[str, str]:
    result: dict[str, str] = {}
    for param in command.get_params(typer.Context(command, parent=above)):
        if param.param_type_name == "option":
            kind = "flag" if param.is_flag else "value"
            result |= dict.fromkeys([*param.opts, *param.secondary_opts], kind)
    return dict(sorted(result.items()))


def fields(schema: Schema) -> list[str]:
    """Paths of all fields and constants of a JSON schema, as `moves[].topic`."""
    return sorted(set(_fields(schema, schema.get("$defs", {}), "", ())))


def _fields(
    schema: Schema, defined: Mapping[str, Schema], path: str, above: tuple[str, ...]
) -> Iterator[str]:
    name = schema.get("$ref", "").removeprefix("#/$defs/")
    if name and name not in above:
        yield from _fields(defined[name], defined, path, (*above, name))
    for inner in schema.get("properties", {}):
        yield f"{path}.{inner}".removeprefix(".")
        below = schema["properties"][inner]
        yield from _fields(below, defined, f"{path}.{inner}", above)
    for constant in (*schema.get("enum", ()), *_constant(schema)):
        yield f"{path} = {constant}".removeprefix(".")
    for kind, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(kind), Mapping):
            yield from _fields(schema[kind], defined, path + mark, above)
    for choice in (*schema.get("anyOf", ()), *schema.get("prefixItems", ())):
        yield from _fields(choice, defined, path, above)


def _constant(schema: Schema) -> Iterator[str]:
    if "const" in schema:
        yield schema["const"]
