"""Messages for validation errors: the place, the closest key, the reason."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from model.exchange.json_schemas import models_in
from model.exchange.text_files import nearest
from model.files import old_names_of

Place = tuple[int | str, ...]

_UNKNOWN = "extra_forbidden"
_CHOICES = ("enum", "literal_error")
_TABLES = ("dict_type", "model_type", "model_attributes_type")
_KEY = "[key]"
"""How pydantic marks that the key of a table does not fit, and not its value."""
_TAG = re.compile(r"\S*\[\S+\]")
"""A step that names no place, but the one of several types that does not fit."""
_MOST = 5
"""Faults that a message names."""


def faults_of(
    model: type[BaseModel],
    error: ValidationError,
    has: Callable[[Place], bool],
    table: str = "a table",
) -> list[tuple[Place, str]]:
    """The first faults of a value of `model`: the place of each, and one line.

    has: whether something was given at a place; fields are called as they were there.
    table: what the language of the file calls what has fields.
    """
    errors = [
        ErrorDetails(**{**e, "msg": f"Input should be {table}"}) if e["type"] in _TABLES else e
        for e in error.errors()
    ]
    # A key that is not known may be why another one is missing.
    chosen = [e for e in errors if _is_unknown(e)] or errors
    found: dict[tuple[Place, str], None] = {}
    for each in _merged(chosen):
        place = next(filter(has, places_of(model, each["loc"])), each["loc"])
        words = validation_message(model, ErrorDetails(**{**each, "loc": place}))
        found[place, words] = None
    return [*found][:_MOST]


def _is_unknown(error: ErrorDetails) -> bool:
    return error["type"] == _UNKNOWN or error["loc"][-1:] == (_KEY,)


def _merged(errors: Iterable[ErrorDetails]) -> list[ErrorDetails]:
    """The errors by their places in the file; one names all that may be chosen."""
    found: dict[tuple[Place, str], ErrorDetails] = {}
    for error in errors:
        place = tuple(s for s in error["loc"] if not _TAG.fullmatch(str(s)))
        is_choice = error["type"] in _CHOICES
        key = place, "" if is_choice else error["msg"]
        joins = is_choice and key in found
        msg = f"{found[key]['msg']} or {error['msg']}" if joins else error["msg"]
        found[key] = ErrorDetails(**{**error, "loc": place, "msg": msg})
    return [_with_choices(e) if e["type"] in _CHOICES else e for e in found.values()]


def _with_choices(error: ErrorDetails) -> ErrorDetails:
    known = re.findall(r"'([^']*)'", error["msg"])
    *others, last = map(repr, known)
    near = get_close_matches(str(error["input"]), known, 1, 0.5)
    words = f"Input should be {', '.join(others)}{' or ' if others else ''}{last}"
    guess = f"; did you mean {near[0]!r}?" if near else ""
    return ErrorDetails(**{**error, "msg": words + guess})


def places_of(model: type[BaseModel], place: Place) -> Iterator[Place]:
    """The place of a field, and then those of the old names of the field."""
    yield place
    for inner in _models_at(model, place[:-1]):
        for old, new in old_names_of(inner).items():
            if place[-1] in new:
                yield (*place[:-1], old)


def holds(document: Any, place: Sequence[int | str]) -> bool:
    """Whether a table has a value at the place, or in a list around it."""
    for key in place:
        if not isinstance(document, Mapping):
            break
        if key not in document:
            return False
        document = document[key]
    return True


def validation_message(model: type[BaseModel], error: ErrorDetails) -> str:
    """Say in one line where a value of `model` is invalid and why.

    An unknown key is answered with the closest known one.
    """
    place = place_of(error["loc"])
    if error["type"] == _UNKNOWN:
        return f"unknown key {place!r}{closest(model, error['loc'])}"
    reason = " ".join(error["msg"].split()).removeprefix("Value error, ")
    return f"{place}: {reason}" if place else reason


def place_of(loc: Iterable[int | str]) -> str:
    """A place in a file as text: `balance.0.floor`; empty for the whole file."""
    return ".".join(map(str, loc))


def closest(model: type[BaseModel], place: Place) -> str:
    """The end of a sentence on an unknown key: the field that may be meant.

    One whose old name is the closest is named as it is called now.
    """
    key, models = str(place[-1]), _models_at(model, place[:-1])
    new = {name for m in models for name in m.model_fields}
    old = {name: to[0] for m in models for name, to in old_names_of(m).items()}
    found = get_close_matches(key, sorted({*new, *old}), 1, 0.5)
    return nearest(old.get(found[0], found[0]) if found else key, new)


def _models_at(model: type[BaseModel], parents: Iterable[int | str]) -> set[type[BaseModel]]:
    """The models of what may stand at a place inside a model."""
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
    return models
