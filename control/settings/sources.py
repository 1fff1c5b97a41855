"""Where each setting comes from: a flag, the environment, a profile or a file."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from control.settings.environment import Trail
from model.exchange.toml_lines import line_of
from model.exchange.validation_messages import holds

FLAGS: Mapping[str, str] = {
    "bootstrap_server": "--bootstrap-server",
    "client_properties": "--command-config",
    "spark_master": "--spark-master",
    "screen.ascii": "--ascii",
    "screen.theme": "--theme",
}
"""Options by the setting that they set."""


class Kind(StrEnum):
    """Kinds of sources, the strongest first."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    PROFILE = "profile"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingSource:
    """Where one value comes from."""

    kind: Kind
    place: str = ""
    """The flag, the variable, or the file and its line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All values that settings are made from, and where each was found."""

    variables: Mapping[Trail, str]
    path: Path | None = None
    text: str = ""
    profile: str | None = None
    values: Mapping[str, Any]
    """Values of the file; those of the profile replace top-level ones."""
    profiled: frozenset[str] = frozenset()
    """Keys of the profile."""
    implicit: bool = False
    """Whether the file was found in the current folder rather than named."""

    def of(self, place: tuple[int | str, ...]) -> SettingSource:
        """The source of the setting at a place, options apart."""
        if variable := self._variable(tuple(map(str, place))):
            return SettingSource(kind=Kind.ENVIRONMENT, place=variable)
        if holds(self.values, place):
            kind = Kind.PROFILE if place[0] in self.profiled else Kind.FILE
            return SettingSource(kind=kind, place=self.line(place))
        return SettingSource(kind=Kind.DEFAULT)

    def has(self, place: tuple[int | str, ...]) -> bool:
        """Whether any source sets the place."""
        return self.of(place).kind is not Kind.DEFAULT

    def _variable(self, place: Trail) -> str | None:
        """The variable that sets the place, or a table containing it."""
        for depth in range(len(place), 0, -1):
            variable = self.variables.get(place[:depth])
            if variable and holds(_table(os.environ[variable]), place[depth:]):
                return variable
        return None

    def line(self, place: tuple[int | str, ...]) -> str:
        """The file and the line that sets the place."""
        in_profile = place[0] in self.profiled
        above = ("profiles", self.profile) if in_profile and self.profile else ()
        line = line_of(self.text, (*above, *place))
        return f"{self.path}" if line is None else f"{self.path}, line {line}"

    def near(self, place: tuple[int | str, ...]) -> str:
        """The source to name in an error at a place; empty if nothing was set there.

        A missing value has no source of its own, but the table around it has.
        """
        around = (self.of(place[:depth]) for depth in range(len(place), 0, -1))
        given = (s.place for s in around if s.kind is not Kind.DEFAULT)
        below = (v for trail, v in self.variables.items() if trail[:1] == place[:1])
        return next(given, None) or next(below, str(self.path or ""))


def _table(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
