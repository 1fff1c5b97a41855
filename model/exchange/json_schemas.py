"""JSON schemas of plimsoll's own files, made of the types that read them."""

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, get_args

from pydantic import BaseModel

from model.errors import ConfigError
from model.exchange.text_files import nearest
from model.goals.goals import Goals
from model.plan.frontier import Frontier
from model.plan.plan import Plan
from model.snapshot.file import SnapshotFile
from model.snapshot.state_file import StateFile
from model.snapshot.what_if import WhatIf
from model.snapshot.what_if_grid import WhatIfGrid

FILES: Final[Mapping[str, type[BaseModel]]] = {
    "frontier": Frontier,
    "goals": Goals,
    "plan": Plan,
    "snapshot": SnapshotFile,
    "state": StateFile,
    "what-if": WhatIf,
    "what-if-grid": WhatIfGrid,
}
"""The file kinds that have a schema."""

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def schema_of(name: str, kinds: Mapping[str, type[BaseModel]] = FILES) -> dict[str, Any]:
    """The JSON schema of a kind of file or output; fields have their docstrings.

    Raises ConfigError: there is no such kind.
    """
    model = kinds.get(name)
    if model is None:
        raise ConfigError(f"there is no schema {name!r}{nearest(name, kinds)}")
    schema = model.model_json_schema()
    for inner in _all_models(model):
        # A type that holds itself is defined beside the others, and referred to.
        own = inner is model and "$ref" not in schema
        place = schema if own else schema["$defs"][inner.__name__]
        for field, words in _docstrings(inner).items():
            place["properties"][field].setdefault("description", words)
    return {"$schema": DIALECT, **schema}


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield every pydantic model in an annotation, inside containers and unions."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _all_models(model: type[BaseModel]) -> set[type[BaseModel]]:
    """The model, and every model inside it."""
    found, waiting = {model}, [model]
    while waiting:
        for field in waiting.pop().model_fields.values():
            new = set(models_in(field.annotation)) - found
            found |= new
            waiting += new
    return found


def _docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field of a model, inherited ones included, in one line."""
    found: dict[str, str] = {}
    for one in reversed(model.__mro__):
        if issubclass(one, BaseModel) and not one.__module__.startswith("pydantic"):
            found |= _own_docstrings(one)
    return found


@cache  # Many kinds contain the same types, and each takes ten milliseconds to parse.
def _own_docstrings(model: type[BaseModel]) -> Mapping[str, str]:
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    found = {}
    for field, below in itertools.pairwise(getattr(body, "body", [])):
        match field, below:
            case (
                ast.AnnAssign(target=ast.Name(id=name)),
                ast.Expr(value=ast.Constant(value=str(words))),
            ):
                found[name] = " ".join(words.split())
    return found
