"""The shape of the command line and its JSON output: names, without help texts."""

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from control.cli.main import app

Schema = Mapping[str, Any]


def commands() -> dict[str, dict[str, str]]:
    """The options of each command, hidden ones included: `value` or `flag`."""
    root: Any = typer.main.get_command(app)
    above = typer.Context(root, **root.context_settings)
    return {n: _options(command, above) for n, command in _commands(root, "plimsoll")}


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    yield name, command
    for own in getattr(command, "commands", ()):
        yield from _commands(command.commands[own], f"{name} {own}")


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
