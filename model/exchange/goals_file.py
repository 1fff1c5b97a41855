"""Goals in a file of their own: TOML, or JSON where its name ends in .json."""

import json
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from model.bounded import MOST_TYPED_BYTES, parse_toml
from model.errors import ConfigError
from model.exchange.text_files import line_in_json, read_object, read_text
from model.exchange.toml_lines import line_of
from model.exchange.validation_messages import faults_of, holds
from model.goals.goals import Goals


def read_goals(path: Path) -> Goals:
    """Read goals; what the file leaves out keeps its default.

    Raises ConfigError: the file cannot be read, has a key that is not known or a value that does
    not fit; the line is named, and the closest key.
    """
    is_json = path.suffix == ".json"
    document = read_object(path) if is_json else parse_toml(path, read_text(path, MOST_TYPED_BYTES))
    try:
        return Goals.model_validate_json(json.dumps(document, default=str))
    except ValidationError as exc:
        table = "an object" if is_json else "a table"
        faults = faults_of(Goals, exc, partial(holds, document), table)
        text, find = read_text(path), line_in_json if is_json else line_of
        lines = (f"line {find(text, place) or 1}: {words}" for place, words in faults)
        raise ConfigError(f"{path}, {'; '.join(lines)}") from exc
