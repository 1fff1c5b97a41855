"""Export of a plan: as files, and as commands of Kafka's own tools."""

import os
import shlex
from pathlib import Path

from control.cli.output import json_of
from model.errors import ConfigError
from model.exchange.reassignment import election, reassignment, write_reassignment_json
from model.files import write_document
from model.paths import path_of
from model.plan.plan import Plan, write_plan
from model.private import shared_folder
from model.snapshot.what_if import WhatIf


def folder_of(text: str) -> Path:
    """The folder named by a text; `~` is the user's home folder.

    Raises ConfigError where the text is not a valid path.
    """
    try:
        return path_of(text)
    except ValueError as exc:
        raise ConfigError(str(exc)) from exc


def write_files(folder: Path, plan: Plan) -> None:
    """Write the plan and its rollback, each also as Kafka reassignment JSON.

    Raises ConfigError where the folder already has a plan, or cannot be created or written.
    """
    _refuse_taken(folder / "plan.json")
    write_reassignment_json(folder, plan)
    write_plan(folder / "plan.json", plan)


def write_answer(folder: Path, answer: WhatIf) -> None:
    """Write the answer to a what-if question. Raises ConfigError as `write_files`."""
    path = folder / "what-if.json"
    _refuse_taken(path)
    try:
        shared_folder(folder)
    except OSError as exc:
        raise ConfigError(f"cannot create the folder {folder}: {exc.strerror}") from exc
    write_document(path, answer.model_dump(mode="json"))


def _refuse_taken(path: Path) -> None:
    # Not `Path.exists`, which raises for a name that is too long.
    if os.path.exists(path):
        raise ConfigError(f"{path} already exists; name another folder")


def shell_commands(plan: Plan, bootstrap: str) -> str:
    """The plan as shell commands: a file, the reassignment, then elections.

    Kafka keeps a leader while its replica remains, so moving leadership elsewhere takes
    a preferred election once the new replicas are in sync.
    """
    servers = shlex.quote(bootstrap)
    name = f"plimsoll-{plan.hash[:12]}"
    moves, elections = f"{name}.json", f"{name}-election.json"
    text = _file(moves, reassignment(plan)) + (
        f"kafka-reassign-partitions --bootstrap-server {servers} "
        f"--reassignment-json-file {moves} --execute\n"
    )
    held = election(plan)
    if held["partitions"]:
        text += _file(elections, held) + (
            "# when --verify in place of --execute reports that all are complete:\n"
            f"kafka-leader-election --bootstrap-server {servers} "
            f"--election-type preferred --path-to-json-file {elections}\n"
        )
    return text


def _file(name: str, document: dict[str, object]) -> str:
    return f"cat > {name} <<'EOF'\n{json_of(document)}\nEOF\n"
