"""Values that do not fit, in words: the place, the closest key, the reason."""

from collections.abc import Iterable

from pydantic import BaseModel
from pydantic_core import ErrorDetails

from model.exchange.schema import models_in
from model.exchange.source import nearest

_UNKNOWN = "extra_forbidden"


def fault_words(model: type[BaseModel], error: ErrorDetails) -> str:
    """What does not fit in a value of `model`, in one line."""
    place = place_of(error["loc"])
    if error["type"] == _UNKNOWN:
        *parents, key = error["loc"]
        return f"unknown key {place!r}{nearest(str(key), fields_at(model, parents))}"
    reason = " ".join(error["msg"].split())
    return f"{place}: {reason.removeprefix('Value error, ')}"


def place_of(loc: Iterable[int | str]) -> str:
    """A place in a file: `balance.0.floor`."""
    return ".".join(map(str, loc)) or "file"


def fields_at(model: type[BaseModel], parents: Iterable[int | str]) -> set[str]:
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
