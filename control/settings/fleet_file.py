"""The file of a fleet: the clusters that one service keeps balanced, and where it listens."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, ValidationError, model_validator

from control.settings.screen_settings import Keys, ScreenSettings
from control.settings.service_table import ServiceTable
from model.bounded import MOST_TYPED_BYTES, parse_toml
from model.errors import ConfigError
from model.exchange.text_files import read_text
from model.exchange.toml_lines import line_of
from model.exchange.validation_messages import faults_of, holds
from model.files import FileModel
from model.paths import UserPath

MOST_CLUSTERS: Final = 100
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _usable_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(
            "the name of a cluster begins with a letter or digit and has at most 64 letters, "
            "digits, dots, hyphens and underscores; rename it"
        )
    return name


ClusterName = Annotated[str, AfterValidator(_usable_name)]
"""A part of paths and labels."""
_OF_CLUSTERS: Final = ("standby", "resume", "cruise_control_api", "metrics_listen")
"""Settings of `[service]` that belong into the file of a cluster."""


class FleetCluster(FileModel):
    """A cluster of the fleet."""

    config: UserPath
    """Its `plimsoll.toml`; a relative path begins in the folder of the fleet's file."""

    profile: str | None = None
    """A profile of that file."""

    limits: str | None = None
    """The limits that `--auto` obeys there; by default those of the command line."""

    read_only: bool = False
    """Whether to observe and plan there alone, also with `--auto`."""


class FleetFile(FileModel):
    """What `plimsoll service --fleet FILE` reads."""

    state_dir: UserPath
    """Folder of the fleet's own socket and of Spark's log; each cluster has a folder of its own. A
    relative path begins in the folder of the fleet's file."""

    service: ServiceTable = ServiceTable()
    """Where the service listens for the whole fleet; the tables of the clusters are not used for
    that."""

    screen: ScreenSettings = ScreenSettings()
    """Appearance of `plimsoll fleet`."""
    keys: Keys = {}
    """Keys of its screen, by action id."""

    clusters: dict[ClusterName, FleetCluster] = {}
    """The clusters by name."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        if not self.clusters:
            raise ValueError("the fleet has no cluster; add a table [clusters.NAME]")
        if len(self.clusters) > MOST_CLUSTERS:
            raise ValueError(f"a fleet has at most {MOST_CLUSTERS} clusters")
        for name in _OF_CLUSTERS:
            if getattr(self.service, name) != ServiceTable.model_fields[name].default:
                raise ValueError(f"set {name} in the files of the clusters, not here")
        folders: dict[str, str] = {}
        for name in self.clusters:
            # The names are parts of paths, also on file systems that ignore case.
            other = folders.setdefault(name.lower(), name)
            if other != name:
                raise ValueError(f"the names {other} and {name} differ by case alone")
        return self


def read_fleet(path: Path) -> FleetFile:
    """Read the file of a fleet; its paths are absolute.

    Raises ConfigError where it cannot be read, a key is unknown, or a value is invalid.
    """
    text = read_text(path, MOST_TYPED_BYTES)
    values = parse_toml(path, text)
    try:
        # By JSON's rules, as settings are; TOML has dates, which JSON writes as text.
        found = FleetFile.model_validate_json(json.dumps(values, default=str))
    except ValidationError as exc:
        faults = faults_of(FleetFile, exc, lambda place: holds(values, place))
        named = [f"{_place(path, text, place)}: {words}" for place, words in faults]
        raise ConfigError("; ".join(named)) from exc
    folder = Path(os.path.abspath(path)).parent
    clusters = {
        name: cluster.model_copy(update={"config": folder / cluster.config})
        for name, cluster in found.clusters.items()
    }
    return found.model_copy(update={"clusters": clusters, "state_dir": folder / found.state_dir})


def _place(path: Path, text: str, place: tuple[int | str, ...]) -> str:
    line = line_of(text, place)
    return f"{path}" if line is None else f"{path}, line {line}"


def first_twice(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """The first two names with the same value; None where all differ."""
    seen: dict[Any, str] = {}
    for name, value in values.items():
        if (other := seen.setdefault(value, name)) != name:
            return other, name
    return None
