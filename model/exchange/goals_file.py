"""Goals in a file of their own: TOML, or JSON where its name ends in .json."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from model.bounded import MOST_TYPED_BYTES, parse_toml
from model.errors import ConfigError
from model.exchange.faults import fault_words
from model.exchange.lines import line_of
from model.exchange.source import object_at, read_json, read_text
from model.goals import Goals


def read_goals(path: Path) -> Goals:
    """Read goals; what the file leaves out keeps its default.

    Raises
    ------
    ConfigError
        The file cannot be read, has a key that is not known or a value that does not
        fit; the line is named, and the closest key.
    """
    try:
        return Goals.model_validate_json(json.dumps(_document(path), default=str))
    except ValidationError as exc:
        raise _faults(path, exc.errors()) from exc


def _document(path: Path) -> Any:
    if path.suffix == ".json":
        return object_at(path, read_json(path), "the file")
    return parse_toml(path, read_text(path, MOST_TYPED_BYTES))


def _faults(path: Path, errors: list[ErrorDetails]) -> ConfigError:
    text = read_text(path)
    # A key that is not known may be why another one is missing.
    unknown = [e for e in errors if e["type"] == "extra_forbidden"]
    told = [
        f"line {_line(path, text, e['loc'])}: {fault_words(Goals, e)}"
        for e in (unknown or errors)[:5]
    ]
    return ConfigError(f"{path}, {'; '.join(told)}")


def _line(path: Path, text: str, loc: Sequence[int | str]) -> int:
    """The line of a place, or of what is around it; 1 where that is not found."""
    if path.suffix != ".json":
        return line_of(text, loc) or 1
    keys = [re.escape(str(key)) for key in loc if isinstance(key, str)]
    lines = [*enumerate(text.splitlines(), 1)]
    found = (
        number
        for key in reversed(keys)
        for number, words in lines
        if re.search(rf'"{key}"\s*:', words)
    )
    return next(found, 1)
