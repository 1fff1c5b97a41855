"""What Cruise Control's own properties say of goals, as far as it has a counterpart here."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clients.properties import Properties, read_properties
from control.cruise_control.goal_names import ALL, RULES, short_name
from model.printable import printable
from model.units import listed

DEFAULT: Final = "default.goals"
SUPPORTED: Final = "goals"
HARD: Final = "hard.goals"
MOST_NAMED: Final = 30
"""Keys or goals that a warning names."""
_READ: Final = frozenset(
    {
        DEFAULT,
        SUPPORTED,
        HARD,
        # By the start script of the container, as settings.
        "bootstrap.servers",
        "capacity.config.file",
        "metric.reporter.topic",
        "security.protocol",
        # By `webserver_files`.
        "webserver.auth.credentials.file",
    }
)
_READ_BEGINNINGS: Final = ("plimsoll.", "webserver.security.", "webserver.ssl.", "ssl.", "sasl.")


@dataclass(frozen=True, slots=True)
class GoalProperties:
    """The goals that requests may name, and those of requests that name none."""

    defaults: tuple[str, ...] = ()
    """Without their package; empty for the goals of plimsoll's own settings."""
    supported: tuple[str, ...] = ALL
    """Without their package."""
    warnings: tuple[str, ...] = ()
    """What has no counterpart, in sentences."""


NO_PROPERTIES: Final = GoalProperties()


def goal_properties(path: Path) -> GoalProperties:
    """Read the properties. Raises ConfigError where the file cannot be read."""
    found = Properties(path, read_properties(path))
    defaults, unknown = _goals(found, DEFAULT)
    supported, more = _goals(found, SUPPORTED)
    hard, others = _goals(found, HARD)
    warnings = []
    if unknown := list(dict.fromkeys([*unknown, *more, *others])):
        warnings.append(f"{path}: goals that plimsoll does not know: {_named(unknown)}")
    if soft := [name for name in hard if name not in RULES]:
        warnings.append(
            f"{path}: {HARD} has goals that are balanced here, and are no rules: {_named(soft)}"
        )
    if unused := [key for key in found.by_key if not _is_read(key)]:
        warnings.append(f"{path}: plimsoll does not use: {_named(sorted(unused))}")
    if supported:
        # Cruise Control has the default goals among them.
        supported = tuple(name for name in ALL if name in {*supported, *defaults})
    return GoalProperties(defaults, supported or ALL, tuple(warnings))


def _goals(found: Properties, key: str) -> tuple[tuple[str, ...], list[str]]:
    """Goals of a key that are known here, and the others; names without their package."""
    names = [short_name(item.strip()) for item in (found.get(key) or "").split(",")]
    known = tuple(dict.fromkeys(name for name in names if name in ALL))
    return known, [name for name in names if name and name not in ALL]


def _is_read(key: str) -> bool:
    return key in _READ or key.startswith(_READ_BEGINNINGS)


def _named(names: Iterable[str]) -> str:
    return printable(listed([*names], MOST_NAMED))
