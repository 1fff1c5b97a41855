"""Every setting with its value and where it comes from."""

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from control.cli.output import json_of
from control.cli.output_types import ConfigAnswer, SettingAnswer
from control.render.text import table
from control.settings.settings import OFF, Settings, settings_of, sources
from control.settings.sources import FLAGS, Kind, SettingSource, Sources
from model.exchange.validation_messages import places_of

MASK: Final = "****"
_SECRET: Final = re.compile("(?i)secret|password|token|credential|key")
"""Names of Spark properties that are masked; Spark's own rule is narrower."""

Place = tuple[str, ...]


def settings_answer(
    flags: Mapping[str, Any], *, config: Path | None, profile: str | None
) -> ConfigAnswer:
    """All settings with their sources; secrets are masked.

    flags: values of options by the name of the setting; None where not given.
    """
    found = sources(config, profile)
    typed = {name: value for name, value in flags.items() if value is not None}
    settings = settings_of(found, {k: v for k, v in typed.items() if "." not in k})
    rows = [
        _answer(place, typed.get(".".join(place), value), _source(found, typed, place))
        for place, value in _leaves(settings, ())
    ]
    return ConfigAnswer(
        file=None if found.path is None else str(found.path),
        profile=found.profile,
        settings=tuple(rows),
    )


def _source(found: Sources, typed: Mapping[str, Any], place: Place) -> SettingSource:
    name = ".".join(place)
    if name in typed:
        return SettingSource(kind=Kind.FLAG, place=FLAGS[name])
    given = map(found.of, places_of(Settings, place))
    default = SettingSource(kind=Kind.DEFAULT)
    return next((s for s in given if s.kind is not Kind.DEFAULT), default)


def _answer(place: Place, value: Any, source: SettingSource) -> SettingAnswer:
    return SettingAnswer(
        name=".".join(place),
        # JSON has no infinity; it is written as in a configuration file.
        value=OFF if value == math.inf else to_jsonable_python(value),
        source=source.kind.value,
        place=source.place,
    )


def _leaves(model: BaseModel, above: Place) -> Iterator[tuple[Place, Any]]:
    """Every setting that is not a table, with its place; secrets are masked."""
    for name, field in type(model).model_fields.items():
        value, place = getattr(model, name), (*above, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, place)
        elif isinstance(value, dict) and value:
            yield from _entries(value, place, secret=field.repr is False)
        else:
            yield place, MASK if value and field.repr is False else value


def _entries(
    table: Mapping[Any, Any], above: Place, *, secret: bool
) -> Iterator[tuple[Place, Any]]:
    for key, value in table.items():
        place = (*above, str(key))
        if isinstance(value, BaseModel):
            yield from _leaves(value, place)
        else:
            yield place, MASK if secret and _SECRET.search(str(key)) else value


def settings_text(answer: ConfigAnswer) -> str:
    """The settings as a table, below the name of the configuration file."""
    file = answer.file or "none"
    profile = f", profile {answer.profile}" if answer.profile else ""
    rows = [
        [s.name, _value_text(s.value), f"{s.source} {s.place}".rstrip()] for s in answer.settings
    ]
    head = f"configuration file: {file}{profile}\n\n"
    return head + table(["setting", "value", "source"], rows)


def _value_text(value: Any) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else json_of(value)
