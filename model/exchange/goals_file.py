"""Goals in a file of their own: TOML, or JSON where its name ends in .json."""

import json
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from model.errors import ConfigError
from model.exchange.schema import models_in
from model.exchange.source import fault, nearest, object_at, read_json, read_text
from model.goals import Goals

_UNKNOWN = "extra_forbidden"


def read_goals(path: Path) -> Goals:
    """Read goals; what the file leaves out keeps its default.

    Raises
    ------
    ConfigError
        The file cannot be read, has a key that is not known (the nearest known one is
        named), or a value that does not fit.
    """
    try:
        return Goals.model_validate_json(json.dumps(_document(path), default=str))
    except ValidationError as exc:
        raise _faults(path, exc.errors()) from exc


def _document(path: Path) -> Any:
    if path.suffix == ".json":
        return object_at(path, read_json(path), "the file")
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path} is no TOML: {exc}") from exc


def _faults(path: Path, errors: list[ErrorDetails]) -> ConfigError:
    unknown = next((e for e in errors if e["type"] == _UNKNOWN), None)
    if unknown is None:
        told = (f"{_place(e['loc'])}: {' '.join(e['msg'].split())}" for e in errors[:5])
        return ConfigError(f"{path} cannot be used: {'; '.join(told)}")
    *parents, key = unknown["loc"]
    known = _fields(Goals, parents)
    words = f"unknown key {_place(unknown['loc'])!r}{nearest(str(key), known)}"
    return fault(path, _line(read_text(path), str(key)), words)


def _place(loc: Iterable[int | str]) -> str:
    return ".".join(map(str, loc)) or "file"


def _line(text: str, key: str) -> int:
    """The first line that names the key as one, 1 where none does."""
    pattern = re.compile(rf"(?<![\w-]){re.escape(key)}[\"']?\s*[\]=:.]")
    lines = enumerate(text.splitlines(), 1)
    return next((n for n, words in lines if pattern.search(words)), 1)


def _fields(model: type[BaseModel], parents: list[int | str]) -> set[str]:
    """Names of the fields that may stand at a place inside a model."""
    models = {model}
    for step in parents:
        inner = {
            found
            for m in models
            if (field := m.model_fields.get(str(step))) is not None
            for found in models_in(field.annotation)
        }
        # A position in a list or a key of a table names no field: stay.
        models = inner or models
    return {name for m in models for name in m.model_fields}
