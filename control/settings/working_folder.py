"""What is taken from a `plimsoll.toml` that merely lies in the current folder.

It may be someone else's: of an archive, a checkout, a shared folder. So it may set
what changes how plimsoll plans and looks, and nothing that runs code, names files and
servers, or consents to changes.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from control.settings.sources import Kind, Sources
from model.errors import ConfigError

FILE: Final = Path("plimsoll.toml")
HARMLESS: Final = frozenset(
    {
        *("bootstrap_server", "name", "timeout_s", "interval_s", "window_s"),
        *("forecast", "cruise_control_topic", "throttle", "auto_throttle"),
        *("capacities", "goals", "solve"),
        *("dead_broker_after", "stop_rules", "screen", "keys"),
    }
)
"""Settings that such a file may give; all others are refused, new ones too."""
_TRUST: Final = f"to take it, say --config ./{FILE}"
_log = logging.getLogger("plimsoll.settings")


def check_keys(sources: Sources) -> None:
    """Refuse keys that such a file may not set.

    Raises
    ------
    ConfigError
        Names the first one, its line, and what to do.
    """
    for key in sources.values:
        if key not in HARMLESS:
            raise ConfigError(
                f"{sources.line((key,))}: {key!r} is not taken from a file that lies "
                "in the current folder unasked, since it could run code, or send "
                f"secrets elsewhere; {_TRUST}"
            )


def check_login(sources: Sources, typed: Mapping[str, Any]) -> None:
    """Refuse to log in at servers that such a file names; say that it is used.

    typed: the flags that were given, and what the environment gave beside them.

    Raises
    ------
    ConfigError
        Client properties are given, but the servers are the file's.
    """
    if not sources.unasked:
        return
    servers = sources.of(("bootstrap_server",)).kind
    if (
        servers in (Kind.FILE, Kind.PROFILE)
        and typed.get("bootstrap_server") is None
        and typed.get("client_properties") is not None
    ):
        raise ConfigError(
            f"{FILE} of the current folder names the bootstrap servers, and the "
            "client properties may hold secrets for others; name them by "
            f"--bootstrap-server, or, {_TRUST}"
        )
    _log.warning("settings are taken from %s in the current folder", FILE)
