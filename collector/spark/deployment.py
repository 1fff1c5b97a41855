"""Where Spark works: on this machine alone, or on a Spark cluster."""

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from model.errors import ClusterUnreachable, ConfigError

LOCAL: Final = "local[*]"
"""A task on each core of this machine."""
_LOCAL: Final = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
_STANDALONE: Final = re.compile(r"spark://([^\s,:/]+:\d+)(,[^\s,:/]+:\d+)*")
_OTHERS: Final = re.compile(r"yarn|k8s://\S+")
_PROPERTY: Final = re.compile(r"spark\.[\w.\-]+")
_ELSEWHERE: Final = {"spark.master": "spark_master"}
_CONNECT_S: Final = 5.0


def master_of(text: str) -> str:
    """Check the URL of a Spark master; raises ValueError for an invalid one."""
    if any(form.fullmatch(text) for form in (_LOCAL, _STANDALONE, _OTHERS)):
        return text
    raise ValueError(
        f"{text!r} is not a Spark master; use local[*], spark://HOST:PORT, yarn, or k8s://HOST:PORT"
    )


def properties_of(table: Any) -> dict[str, str]:
    """Check a table of Spark properties; raises ValueError for an invalid one."""
    if not isinstance(table, dict):
        raise ValueError("Spark's properties are a table of names and texts")
    for key, value in table.items():
        if not _PROPERTY.fullmatch(key):
            raise ValueError(
                f"{key!r} is not a Spark property; write its whole name in quotes, as "
                'in "spark.executor.memory" = "2g"'
            )
        if key in _ELSEWHERE:
            raise ValueError(f"{key} is set by {_ELSEWHERE[key]}, and not here")
        if not isinstance(value, str):
            raise ValueError(f"{key} is a text; write its value in quotes")
    return table


def is_local(master: str) -> bool:
    """Whether a Spark master runs in this machine alone, such as `local[2]`."""
    return _LOCAL.fullmatch(master) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSite:
    """Where Spark works, and how it is set up there."""

    master: str = LOCAL
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Spark's own, over those that plimsoll sets. They may hold secrets."""
    shared_state: bool = False
    """Whether the workers see the state folder, under the same path."""

    def require_samples(self, master: str, state_dir: Path, topic: str | None) -> None:
        """Check that Spark's workers can read the samples.

        Raises ConfigError for a remote master with neither a samples topic nor a state
        folder that it shares.
        """
        if is_local(master) or topic is not None or self.shared_state:
            return
        raise ConfigError(
            f"Spark at {master} would look for samples in {state_dir} on its own "
            "machines. Send them by a topic (samples_topic, with --allow-changes), or, "
            "where these machines share that folder under the same path, set "
            "spark_shared_state = true."
        )


def settings_of(master: str) -> dict[str, str]:
    """Properties of Spark that depend on its master.

    Raises ClusterUnreachable where none of a standalone cluster's masters answers.
    """
    if is_local(master):
        return {"spark.driver.host": "127.0.0.1"}
    if _STANDALONE.fullmatch(master) is None:
        return {}
    # Without a limit, a watch would keep all cores of the cluster for itself.
    return {"spark.driver.host": _own_address(master), "spark.cores.max": "2"}


def _own_address(master: str) -> str:
    """Return this machine's address towards the master, where workers find it."""
    reason = ""
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host, int(port)), _CONNECT_S) as probe:
                return str(probe.getsockname()[0])
        except OSError as exc:
            reason = exc.strerror or str(exc)
    raise ClusterUnreachable(
        f"Spark's master {master} does not answer ({reason}). Check that it runs and "
        "that --spark-master names it."
    )
