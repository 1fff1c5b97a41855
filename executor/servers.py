"""Bootstrap servers: their addresses, and whether one of them can be reached."""

import socket
import time
from collections.abc import Sequence

from model.errors import ClusterUnreachable, ConfigError


def addresses(bootstrap: str) -> list[tuple[str, int]]:
    """Hosts and ports; raises ConfigError where the text is no list of `host:port`."""
    servers = []
    for text in bootstrap.split(","):
        host, _, port = text.strip().rpartition(":")
        if not (host and port.isdecimal() and 0 < int(port) < 65536):
            raise ConfigError(
                f"{text!r} in the bootstrap servers {bootstrap!r} is no host:port; "
                "write for example localhost:9092, several parted by commas"
            )
        servers.append((host.strip("[]"), int(port)))
    return servers


def knock(servers: Sequence[tuple[str, int]], timeout_s: float) -> None:
    """Raise ClusterUnreachable unless one of the servers can be reached."""
    end_s = time.monotonic() + timeout_s
    reasons = []
    for host, port in servers:
        left_s = max(0.1, end_s - time.monotonic())
        try:
            socket.create_connection((host, port), timeout=left_s).close()
        except OSError as exc:
            reasons.append(f"{host}:{port}: {reason_of(exc)}")
        else:
            return
    raise ClusterUnreachable(
        f"No Kafka broker answers ({'; '.join(reasons)}). Check the address, and that "
        "the cluster runs."
    )


def reason_of(exc: Exception) -> str:
    """What the driver says, in one line."""
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    if isinstance(exc, OSError) and exc.strerror:
        return exc.strerror
    name = type(exc).__name__
    return str(exc).split("\n", 1)[0].removeprefix(f"{name}: ") or name
