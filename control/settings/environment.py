"""Settings in environment variables: their names, and how their texts are read."""

import json
import os
import re
import types
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import EnvSettingsSource

from model.errors import ConfigError
from model.exchange.text_files import nearest
from model.files import old_names_of

PREFIX: Final = "PLIMSOLL_"

NOT_SETTINGS: Final = re.compile(r"PLIMSOLL_(CONFIG|PROFILE|JAVA|LAB|SOAK_MINUTES|[A-Z0-9_]*_HOME)")
"""Variables of plimsoll that choose files or tools and are not settings."""

KUBERNETES: Final = re.compile(
    r"PLIMSOLL(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_[A-Z]+(_\w+)?)?)"
)
"""Variables that Kubernetes sets for a service named plimsoll."""

Trail = tuple[str, ...]


class Environment(EnvSettingsSource):
    """Variables whose texts become numbers, booleans and tables where needed."""

    def decode_complex_value(self, field_name: str, field: FieldInfo, value: Any) -> Any:
        """Parse JSON; leave other text to the validation of the setting."""
        try:
            return super().decode_complex_value(field_name, field, value)
        except ValueError:
            return value

    def __call__(self) -> dict[str, Any]:
        """The settings in the environment, nested as in a file."""
        found: dict[str, Any] = _converted(self.settings_cls, super().__call__())
        return found


def variables(model: type[BaseModel]) -> dict[Trail, str]:
    """The variables that are set, by setting.

    Raises
    ------
    ConfigError
        A variable does not name a setting; the message names the closest one.
    """
    found: dict[Trail, str] = {}
    for variable in sorted(os.environ):
        ours = variable.startswith(PREFIX) and not (
            NOT_SETTINGS.fullmatch(variable) or KUBERNETES.fullmatch(variable)
        )
        if ours:
            trail = tuple(variable.removeprefix(PREFIX).lower().split("__"))
            _check(variable, model, trail)
            found[trail] = variable
    return found


def name_of(trail: Sequence[str]) -> str:
    """The variable of a setting."""
    return PREFIX + "__".join(trail).upper()


def _check(variable: str, model: type[BaseModel], trail: Trail) -> None:
    place: Any = model
    for depth, key in enumerate(trail):
        inner = inner_of(place, key)
        if inner is None:
            known = [name_of((*trail[:depth], n)) for n in names_at(place)]
            beginning = name_of(trail[: depth + 1])
            near = nearest(beginning, known) if known else _as_json(model, trail)
            raise ConfigError(f"unknown environment variable {variable}{near}")
        place = inner


def _as_json(model: type[BaseModel], trail: Trail) -> str:
    """A hint for a table whose keys contain dots; empty for other settings."""
    kinds = _kinds(inner_of(model, trail[0]))
    is_table = any(get_origin(kind) is dict for kind in kinds)
    if not is_table or not all(trail):
        return ""
    table = json.dumps({".".join(trail[1:]): "..."})
    return f"; set a name with dots as JSON: {name_of(trail[:1])}='{table}'"


def names_at(place: Any) -> list[str]:
    """Names of the settings in a table; empty where any key is allowed."""
    return [name for model in _models(place) for name in model.model_fields]


def inner_of(place: Any, key: str) -> Any:
    """The type of a table's value for a key; None for an unknown key."""
    for kind in _kinds(place):
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            new, *_ = old_names_of(kind).get(key, (key,))
            field = kind.model_fields.get(new)
            if field is not None:
                return _with_metadata(field)
        elif get_origin(kind) is dict:
            return get_args(kind)[1]
    return None


def _with_metadata(field: FieldInfo) -> Any:
    if not field.metadata:
        return field.annotation
    return Annotated.__class_getitem__((field.annotation, *field.metadata))  # type: ignore[attr-defined]


def _models(place: Any) -> list[type[BaseModel]]:
    return [k for k in _kinds(place) if isinstance(k, type) and issubclass(k, BaseModel)]


def _kinds(place: Any) -> Iterator[Any]:
    """The types that an annotation allows, through `Annotated` and unions."""
    origin = get_origin(place)
    if origin is Annotated:
        yield from _kinds(get_args(place)[0])
    elif origin in (Union, types.UnionType):
        for kind in get_args(place):
            yield from _kinds(kind)
    else:
        yield place


def _converted(place: Any, value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _converted(inner_of(place, k), v) for k, v in value.items()}
    if not isinstance(value, str) or place is None:
        return value
    return _read(TypeAdapter(place), value)


def _read(adapter: TypeAdapter[Any], text: str) -> Any:
    """The value of a text: the text itself, a number, a boolean, or JSON."""
    if _fits(adapter, text):
        return text
    try:
        value = adapter.validate_strings(text)
    except ValidationError:
        value = None
    if isinstance(value, bool | int | float):
        return value
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fits(adapter: TypeAdapter[Any], text: str) -> bool:
    try:
        adapter.validate_json(json.dumps(text), strict=True)
    except ValidationError:
        return False
    return True
