"""Goals in a file of their own: TOML, or JSON where its name ends in .json."""

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from model.bounded import MOST_TYPED_BYTES, parse_toml
from model.errors import ConfigError
from model.exchange.text_files import object_at, read_json, read_text
from model.exchange.toml_lines import line_of
from model.exchange.validation_messages import Place, faults_of, holds
from model.goals.goals import Goals


def read_goals(path: Path) -> Goals:
    """Read goals; what the file leaves out keeps its default.

    Raises
    ------
    ConfigError
        The file cannot be read, has a key that is not known or a value that does not
        fit; the line is named, and the closest key.
    """
    document = _document(path)
    try:
        return Goals.model_validate_json(json.dumps(document, default=str))
    except ValidationError as exc:
        raise _faults(path, faults_of(Goals, exc, partial(holds, document))) from exc


def _document(path: Path) -> Any:
    if path.suffix == ".json":
        return object_at(path, read_json(path), "the file")
    return parse_toml(path, read_text(path, MOST_TYPED_BYTES))


def _faults(path: Path, faults: Iterable[tuple[Place, str]]) -> ConfigError:
    text = read_text(path)
    lines = (f"line {_line(path, text, at)}: {fault}" for at, fault in faults)
    return ConfigError(f"{path}, {'; '.join(lines)}")


def _line(path: Path, text: str, loc: Sequence[int | str]) -> int:
    """The line of a place, or of what is around it; 1 where that is not found."""
    if path.suffix != ".json":
        return line_of(text, loc) or 1
    keys = [re.escape(str(key)) for key in loc if isinstance(key, str)]
    lines = [*enumerate(text.splitlines(), 1)]
    found = (
        number
        for key in reversed(keys)
        for number, line in lines
        if re.search(rf'"{key}"\s*:', line)
    )
    return next(found, 1)
