"""TCP ports on 127.0.0.1."""

import socket
from itertools import cycle, islice
from random import SystemRandom
from typing import Final

from model.errors import PortTaken

HOST: Final = "127.0.0.1"
_RANGE: Final = range(24000, 32000)
"""Below the ports for outgoing connections, so that the port of a killed broker is
still free when it restarts."""


_TURNS: Final = cycle(SystemRandom().sample(_RANGE, len(_RANGE)))
"""Random, so that labs of several processes do not collide; in turn, so that a port is
not returned twice before its server listens."""


def free_ports(count: int) -> list[int]:
    """Find ports that are not in use and were not returned recently."""
    some = islice(_TURNS, len(_RANGE))
    return list(islice(filter(is_free, some), count))


def claim(port: int, what: str) -> int:
    """Return the port if it is free; raises PortTaken otherwise."""
    if not is_free(port):
        raise PortTaken(
            f"Port {port} for {what} is in use on {HOST}. Choose another one, or stop "
            "the program that listens there."
        )
    return port


def is_free(port: int) -> bool:
    """Whether a server could listen on the port."""
    with socket.socket() as probe:
        # As servers do; otherwise recently closed connections would block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether a server accepts connections on the port."""
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True
