"""Where Spark works: on this machine alone, or on a Spark cluster."""

import os
import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clients.connection import is_loopback
from model.bounded import MOST_TYPED_BYTES
from model.errors import ClusterUnreachable, ConfigError
from model.exchange.text_files import read_text
from model.private import check_secret

LOCAL: Final = "local[*]"
"""A task on each core of this machine."""
_LOCAL: Final = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
_STANDALONE: Final = re.compile(r"spark://([^\s,:/]+:\d+)(,[^\s,:/]+:\d+)*")
_OTHERS: Final = re.compile(r"yarn|k8s://\S+")
_PROPERTY: Final = re.compile(r"spark\.[\w.\-]+")
_ELSEWHERE: Final = {"spark.master": "spark_master"}
_AUTHENTICATE: Final = "spark.authenticate"
_SECRET: Final = "spark.authenticate.secret"  # noqa: S105 - the name of a property
_ENCRYPT: Final = "spark.network.crypto.enabled"
_PROTECTED: Final = {_AUTHENTICATE: "true", _ENCRYPT: "true"}
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


def is_submitted() -> bool:
    """Whether `spark-submit` started this process, with a JVM for it."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


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


def protected(
    master: str, properties: Mapping[str, str], secret_file: Path | None
) -> dict[str, str]:
    """The properties, with authentication and encryption of a standalone cluster's RPC.

    secret_file: holds the secret of that cluster. Properties of other masters stay as they are.

    Raises ConfigError where the secret cannot be used, or where traffic to a master beyond
    loopback would be neither authenticated nor left open on purpose.
    """
    given = dict(properties)
    if _STANDALONE.fullmatch(master) is None:
        return given
    wanted = _boolean(given, _AUTHENTICATE)
    if secret_file is not None:
        if wanted is False or _SECRET in given:
            raise ConfigError(
                f"spark_secret_file and [spark] contradict each other; remove {_AUTHENTICATE} and "
                f"{_SECRET} from [spark]"
            )
        return {**_PROTECTED, **given, _SECRET: _secret_in(secret_file)}
    if wanted:
        if not given.get(_SECRET):
            raise ConfigError(
                f"{_AUTHENTICATE} needs the secret of {master}; name a file that holds it by "
                "spark_secret_file"
            )
        return {**_PROTECTED, **given}
    if wanted is None and not _on_loopback(master):
        raise ConfigError(
            f"Spark's traffic with {master} would be neither authenticated nor encrypted, and "
            "whoever reaches it could run code there. Give master and workers "
            f'{_AUTHENTICATE} = "true" and a secret, and name a file that holds it by '
            "spark_secret_file. If the network is trusted, set "
            f'"{_AUTHENTICATE}" = "false" in [spark].'
        )
    return given


def _boolean(properties: Mapping[str, str], key: str) -> bool | None:
    """The value of a property as Spark reads it, in any case; None where it is not set.

    Raises ConfigError where it is neither true nor false.
    """
    if key not in properties:
        return None
    text = properties[key].strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f'{key} in [spark] is {properties[key]!r}; use "true" or "false"')
    return text == "true"


def _secret_in(path: Path) -> str:
    check_secret(path, "the Spark secret ")
    secret = read_text(path, MOST_TYPED_BYTES).strip()
    if not secret or not secret.isprintable():
        raise ConfigError(f"{path} has to hold the Spark secret, on one line")
    return secret


def _on_loopback(master: str) -> bool:
    """Whether all masters of a standalone cluster have loopback addresses."""
    hosts = [a.rpartition(":")[0] for a in master.removeprefix("spark://").split(",")]
    return all(host == "localhost" or is_loopback(host) for host in hosts)


def settings_of(master: str) -> dict[str, str]:
    """Properties of Spark that depend on its master.

    Raises ClusterUnreachable where none of a standalone cluster's masters answers.
    """
    if is_local(master):
        # Other users of this machine reach loopback, too; Spark makes a secret of its own.
        return {"spark.driver.host": "127.0.0.1", **_PROTECTED}
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
