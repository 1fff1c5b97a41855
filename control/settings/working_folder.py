"""Limits on a `plimsoll.toml` that was found in the current folder, not named.

It may come from an archive, a checkout or a shared folder. So it may change how
plimsoll plans and what the screen looks like, but not run code, name files, or allow
changes; servers that it names never get a login.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from control.settings.sources import Kind, Sources
from model.errors import ConfigError
from model.log_events import LogEvent, named

FILE: Final = Path("plimsoll.toml")
HARMLESS: Final = frozenset(
    {
        *("bootstrap_server", "name", "timeout_s", "interval_s", "window_s"),
        *("forecast", "cruise_control_topic", "throttle", "auto_throttle"),
        *("capacities", "goals", "solve"),
        *("dead_broker_after", "stop_rules", "screen", "keys"),
    }
)
"""Settings that such a file may contain; all others are refused, new ones too."""
_TRUST: Final = f"to use it, add --config ./{FILE}"
_log = logging.getLogger("plimsoll.settings")


def check_keys(sources: Sources) -> None:
    """Refuse keys that such a file may not contain.

    Raises
    ------
    ConfigError
        The file has such a key; the message names its line.
    """
    for key in sources.values:
        if key not in HARMLESS:
            raise ConfigError(
                f"{sources.line((key,))}: {key!r} is not allowed in a file that was "
                "only found in the current folder, since it could run code or send "
                f"secrets elsewhere; {_TRUST}"
            )


def check_login(sources: Sources, given: Mapping[str, Any]) -> None:
    """Refuse to log in at servers named by such a file, and warn that it is used.

    given: options, and client properties from the environment.

    Raises
    ------
    ConfigError
        Client properties are given, but the servers are the file's.
    """
    if not sources.implicit:
        return
    servers = sources.of(("bootstrap_server",)).kind
    if (
        servers in (Kind.FILE, Kind.PROFILE)
        and given.get("bootstrap_server") is None
        and given.get("client_properties") is not None
    ):
        raise ConfigError(
            f"{FILE} in the current folder names the bootstrap servers, and the "
            "client properties may hold secrets for other servers; name the servers "
            f"with --bootstrap-server, or, {_TRUST}"
        )
    _log.warning(
        "using settings from %s in the current folder", FILE, extra=named(LogEvent.SETTINGS_FOLDER)
    )
