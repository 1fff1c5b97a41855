"""Write the generated pages and schemas of the documentation: `make reference`.

Commands come from the declarations of the command line, settings from the JSON schema
of their types, and the tables of the architecture from docstrings, so that no page can
differ from the program.
"""

import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, Final

import typer
from platformdirs import user_cache_dir, user_state_dir

from control.cli.command_group import help_row
from control.cli.main import app
from control.cli.options import COMMON
from control.cli.output_types import ANSWERS
from control.render.text import json_text
from control.service.metric_specs import METRICS
from control.service.open_api import published
from control.settings.settings import Settings
from executor.client.changing_calls import CHANGING_CALLS
from model.exchange.json_schemas import FILES, schema_of
from model.log_events import LogEvent

DOCS: Final = Path(__file__).parent
RIGHTS: Final = DOCS / "reference" / "rights.md"
NOTICE: Final = "<!-- What follows is written by `make reference`. -->"
"""Ends the part of a page that people write."""
README: Final = DOCS.parent / "README.md"
BEGIN: Final = "<!-- Begin: written by `make reference` -->\n"
END: Final = "<!-- End -->\n"
"""Around the generated part of the README."""
TESTED: Final = DOCS / "reference" / "tested-versions.json"
"""Written by `make test-versions`: by Kafka version, what its brokers can do."""
REQUIREMENTS: Final = DOCS.parent / "requirements"
PINNED: Final = {"run.txt": "plimsoll", "web.txt": "`web`", "msk.txt": "`msk`"}
"""Files of pinned versions, and which extra needs them."""
PIN: Final = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
WIDTH: Final = 120
PACKAGES: Final = ("tui", "control", "lab", "collector", "solver", "executor", "clients", "model")
"""From the top layer down."""
HELP: Final = frozenset({"help", "version", "install_completion", "show_completion"})
"""Parameters of the help's last group, beside those that name it."""

MORE: Final = {
    "[retention]": "journals.md#retention",
    "[history]": "../explanation/history.md",
    "[forecast]": "../explanation/history.md#forecast",
    "[auto_throttle]": "../how-to/throttle-plain-disks.md",
    "[capacities]": "files.md#capacity",
    "[goals]": "../explanation/planning.md",
    "[[goals.placements]]": "files.md#placement-constraints",
    "[solve]": "../explanation/solving.md#the-search-budget",
    "[limits.NAME]": "runs.md#limits-of---auto",
    "[triggers]": "../how-to/run-unattended.md#choose-what-it-acts-on",
    "[schedule]": "../how-to/run-unattended.md#choose-when-it-acts",
    "[[schedule.windows]]": "../how-to/run-unattended.md#choose-when-it-acts",
    "[[schedule.freezes]]": "../how-to/run-unattended.md#choose-when-it-acts",
    "[prometheus]": "../how-to/prometheus.md",
    "[tier]": "../how-to/tiered-storage.md",
    "[wal]": "../how-to/automq.md",
    "[stop_rules]": "runs.md#stop-rules",
    "[service]": "../how-to/run-as-a-service.md",
    "[[notify]]": "../how-to/run-as-a-service.md#notifications",
    "[screen]": "screen.md#sizes-and-colours",
    "[archive]": "journals.md#the-archive",
}
"""Where more is said about a table of the settings."""

Schema = Mapping[str, Any]


def pages() -> dict[Path, str]:
    """The text of every generated file, by its path."""
    schemas = {
        DOCS / "schemas" / f"{kind}.json": json_text(schema_of(kind, kinds))
        for kinds in (FILES, ANSWERS)
        for kind in kinds
    }
    return {
        README: _between(README.read_text("utf-8"), tested_versions()),
        **_page("reference/commands", commands()),
        **_page("reference/settings", settings()),
        **_page("reference/metrics", metrics()),
        **_page("reference/log-events", log_events()),
        **_page("reference/dependencies", dependencies()),
        **_page("architecture", packages()),
        RIGHTS: _between(RIGHTS.read_text("utf-8"), changing_calls()),
        **schemas,
        DOCS / "reference" / "openapi.json": json_text(published()),
        DOCS / "reference" / "openapi-fleet.json": json_text(published(fleet=True)),
    }


def main() -> None:
    """Write every generated file whose text has changed."""
    for path, text in pages().items():
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {path.relative_to(DOCS.parent)}\n")


def _page(name: str, generated: str) -> dict[Path, str]:
    path = DOCS / f"{name}.md"
    head, notice, _ = path.read_text("utf-8").partition(NOTICE)
    return {path: f"{head}{notice}\n\n{generated}\n"}


def _between(page: str, generated: str) -> str:
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{generated}\n{END}{tail}"


# ---- rights


def changing_calls() -> str:
    """A table of the requests that change a cluster, and the rights that they need."""
    rows = ["| request | right | to |", "|---|---|---|"]
    by_right: dict[tuple[str, str], list[str]] = {}
    for call in CHANGING_CALLS.values():
        key = call.request, f"{call.right} on {call.resource}"
        by_right.setdefault(key, []).append(call.purpose)
    for (request, right), purposes in by_right.items():
        rows.append(f"| {request} | {right} | {'; '.join(purposes)} |")
    return "\n".join(rows)


# ---- dependencies


def dependencies() -> str:
    """A table of the pinned packages and their licences, by what needs them."""
    rows = ["| package | licence | needed by |", "|---|---|---|"]
    seen: dict[str, str] = {}
    for file, needed_by in PINNED.items():
        for name in PIN.findall((REQUIREMENTS / file).read_text("utf-8")):
            seen.setdefault(name, needed_by)
    rows += [f"| {name} | {_licence(name)} | {by} |" for name, by in sorted(seen.items())]
    return "\n".join(rows)


def _licence(package: str) -> str:
    """The licence as the package states it: SPDX expression, classifiers or first line."""
    stated = metadata(package)
    expression, line = (
        next(iter(stated.get_all(name) or ()), "").partition("\n")[0]
        for name in ("License-Expression", "License")
    )
    classifiers = stated.get_all("Classifier") or ()
    named = "; ".join(c.split(" :: ")[-1] for c in classifiers if c.startswith("License :: "))
    return expression or named or line or "not stated"


# ---- versions


def tested_versions() -> str:
    """A table of the Kafka versions that the main path and tasks were tested on."""
    found: Mapping[str, Mapping[str, bool]] = json.loads(TESTED.read_text("utf-8"))
    heads = ("Kafka", "plan, apply, roll back", "tasks", "a move in the tier copies")
    rows = [f"| {' | '.join(heads)} | cordoned brokers |", "|---|---|---|---|---|"]
    by_answer: dict[tuple[bool, bool, bool], list[str]] = {}
    for version, can in found.items():
        answer = (can["skips_tiered"], can["cordons"], can.get("tasks", False))
        by_answer.setdefault(answer, []).append(version)
    for (skips, cordons, done), versions in by_answer.items():
        tasks = "yes" if done else "not tested"
        copied = "what is not in the tier yet" if skips else "all that is on the leader's disk"
        cordoned = "get no new replicas" if cordons else "need Kafka 4.3"
        rows.append(f"| {', '.join(versions)} | yes | {tasks} | {copied} | {cordoned} |")
    return "\n".join(rows)


# ---- commands


def commands() -> str:
    """Markdown about every command, in the order of the command line."""
    program = _context(typer.main.get_command(app), "plimsoll", None)
    _, common = _options(program)
    parts = [_code(program.command.get_help(program)), "## Common options"]
    parts += ["\n".join(common), *map(_command, _commands(program))]
    return "\n\n".join(parts)


def _context(command: Any, name: str, above: Any) -> Any:
    return command.context_class(
        command,
        info_name=name,
        parent=above,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )


def _commands(above: Any) -> Iterator[Any]:
    """Contexts of all commands that can be run, those of groups in their place."""
    for name in above.command.list_commands(above):
        command = above.command.get_command(above, name)
        if command.hidden:
            continue
        context = _context(command, name, above)
        if hasattr(command, "list_commands"):
            yield from _commands(context)
        else:
            yield context


def _command(context: Any) -> str:
    own, common = _options(context)
    names = ", ".join(name for row in common for name in re.findall("--[a-z-]+", row)[:1])
    parts = [
        f"## {context.command_path}",
        _filled(_escaped(context.command.help or "")),
        _code(context.command.get_usage(context)),
        "\n".join(own),
        _filled(f"[Common options](#common-options): {names}."),
    ]
    return "\n\n".join(filter(None, parts))


def _options(context: Any) -> tuple[list[str], list[str]]:
    """Lines about a command's own parameters, and about those nearly all share."""
    own: list[str] = []
    common: list[str] = []
    for param in context.command.get_params(context):
        shared = getattr(param, "rich_help_panel", None) == COMMON or param.name in HELP
        row = help_row(param, context)
        if row is not None:
            line = _bullet(f"`{row[0]}`: {_escaped(row[1])}")
            (common if shared else own).append(line)
    return own, common


# ---- settings


def settings() -> str:
    """Markdown about every setting, one section per table."""
    schema = schema_of("settings", {"settings": Settings})
    return "\n\n".join(_section(*table, schema) for table in _tables(schema))


def _section(heading: str, table: Schema, schema: Schema) -> str:
    rows = [
        _bullet(_setting(name, field, schema))
        for name, field in table["properties"].items()
        if _inner(name, field, schema) is None
    ]
    words = _filled(_escaped(table.get("description", ""))) if heading else ""
    title = f"## `{heading}`" if heading else "## Top level"
    page = MORE.get(heading, "")
    more = f"See [{page.rpartition('/')[2].partition('#')[0]}]({page})." if page else ""
    return "\n\n".join(filter(None, [title, words, more, "\n".join(rows)]))


def _tables(
    schema: Schema, table: Schema | None = None, above: str = ""
) -> Iterator[tuple[str, Schema]]:
    """Every table with its heading in TOML, outer ones first."""
    table = table or schema
    yield above, table
    for name, field in table["properties"].items():
        inner = _inner(name, field, schema)
        if inner is not None:
            suffix, model = inner
            own = field.get("description", model.get("description", ""))
            # What follows the first paragraph is for programmers.
            told = {**model, "description": own.split("\n\n")[0]}
            trail = ".".join(filter(None, [above.strip("[]"), name + suffix.strip("[]")]))
            brackets = "[[{}]]" if suffix == "[]" else "[{}]"
            yield from _tables(schema, told, brackets.format(trail))


def _inner(name: str, field: Schema, schema: Schema) -> tuple[str, Schema] | None:
    """The table behind a setting, after what its heading adds; `[]` for a list."""
    key = "KIND" if "$ref" in field.get("propertyNames", {}) else "NAME"
    for choice in (field, *field.get("anyOf", ())):
        places = {
            "": choice,
            "[]": choice.get("items"),
            ".ID" if name == "brokers" else f".{key}": choice.get("additionalProperties"),
        }
        for suffix, place in places.items():
            model = _resolved(place, schema) if isinstance(place, dict) else {}
            if "properties" in model:
                return suffix, model
    return None


def _resolved(field: Schema, schema: Schema) -> Schema:
    name = field.get("$ref", "").removeprefix("#/$defs/")
    found: Schema = schema["$defs"][name] if name else field
    return found


def _setting(name: str, field: Schema, schema: Schema) -> str:
    words = _escaped(field.get("description", ""))
    kind = _kind(field, schema)
    default = f"Default: {_default(field['default'])}." if "default" in field else ""
    parts = [f"`{name}`:", words, f"*{kind[0].upper()}{kind[1:]}.*", default]
    return " ".join(filter(None, parts))


def _kind(field: Schema, schema: Schema) -> str:
    field = _resolved(field, schema)
    if "anyOf" in field:
        choices = [c for c in field["anyOf"] if c.get("type") != "null"]
        kinds = list(dict.fromkeys(_kind(c, schema) for c in choices))
        if kinds[0].startswith("number") and kinds[1:2] == ["text"]:
            return "number with unit"
        return " or ".join(kinds).replace(" or one of ", ", ")
    if "enum" in field:
        return "one of " + ", ".join(f"`{value}`" for value in field["enum"])
    if "const" in field:
        return f"`{field['const']}`"
    if field.get("type") == "array":
        return f"list of {_kind(field['items'], schema)}"
    if field.get("type") == "object":
        return f"table of {_kind(field['additionalProperties'], schema)}"
    return _scalar(field)


def _scalar(field: Schema) -> str:
    types = {"integer": "whole number", "number": "number", "boolean": "true or false"}
    formats = {"path": "path", "date-time": "date and time"}
    kind = formats.get(field.get("format", "")) or types.get(field["type"], "text")
    bounds = {
        "minimum": "at least",
        "exclusiveMinimum": "above",
        "maximum": "at most",
        "exclusiveMaximum": "below",
    }
    # Limits of a billion and more only keep arithmetic safe.
    given = [b for b in bounds if b in field and field[b] < 1e9]
    told = " and ".join(f"{bounds[b]} {_toml(field[b])}" for b in given)
    return f"{kind}, {told}" if told else kind


def _default(value: Any) -> str:
    folders = {user_state_dir("plimsoll"): "state", user_cache_dir("plimsoll"): "cache"}
    if isinstance(value, str) and value in folders:
        return f"`plimsoll` in the user's {folders[value]} folder"
    return "none" if value is None else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{k} = {_toml(v)}" for k, v in value.items()) + "}"
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'" if "\\" in value else f'"{value}"'
    return f"{value:.10g}"


# ---- metrics


def metrics() -> str:
    """A table of the metrics of the service."""
    rows = ["| name | type | labels | meaning |", "|---|---|---|---|"]
    for spec in METRICS:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        rows.append(f"| `{spec.name}` | {spec.kind} | {labels} | {_escaped(spec.help)} |")
    return "\n".join(rows)


# ---- events of the log


def log_events() -> str:
    """A table of the names of events in JSON logs."""
    rows = ["| event | when |", "|---|---|"]
    rows += [f"| `{event.value}` | {_escaped(event.when)} |" for event in LogEvent]
    return "\n".join(rows)


# ---- architecture


def packages() -> str:
    """Markdown about every package: a table of its parts and what they are for."""
    return "\n\n".join(map(_package, PACKAGES))


def _package(name: str) -> str:
    root = DOCS.parent / name
    parts = sorted({p.parent for p in root.glob("*/__init__.py")})
    parts += sorted(p for p in root.glob("*.py") if p.stem != "__init__")
    rows = [f"| `{_path(part)}` | {_purpose(part)} |" for part in parts]
    table = "\n".join(["| part | purpose |", "|---|---|", *rows])
    return "\n\n".join([f"### {name}", _filled(_purpose(root)), table])


def _path(part: Path) -> str:
    return part.name + ("/" if part.is_dir() else "")


def _purpose(part: Path) -> str:
    """The first sentence of a module's or package's docstring."""
    source = part / "__init__.py" if part.is_dir() else part
    words = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return _escaped(words.split("\n\n")[0]).replace("|", "\\|")


# ---- Markdown


def _bullet(text: str) -> str:
    return _filled(text, "- ", "  ")


def _filled(text: str, first: str = "", others: str = "") -> str:
    # No break inside a code span.
    spans = re.sub("`[^`]*`", lambda span: span.group().replace(" ", "\0"), text)
    filled = textwrap.fill(
        spans,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return filled.replace("\0", " ")


def _escaped(text: str) -> str:
    """One line in which Markdown means nothing outside of code spans."""
    parts = re.split("(`[^`]*`)", " ".join(text.split()))
    return "".join(p if p[:1] == "`" else re.sub(r"([*<_])", r"\\\1", p) for p in parts)


def _code(text: str) -> str:
    return f"```text\n{text.strip()}\n```"


if __name__ == "__main__":
    main()
