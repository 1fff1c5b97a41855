"""TCP ports on 127.0.0.1."""

import atexit
import socket
from collections.abc import Iterator
from itertools import cycle, islice
from random import SystemRandom
from typing import Final

from model.errors import PortTaken

HOST: Final = "127.0.0.1"
_RANGE: Final = range(24000, 32000)
"""Below the ports for outgoing connections, so that the port of a killed broker is
still free when it restarts."""
_BLOCK: Final = 100
_MOST_BLOCKS: Final = 8
"""Of one process, so that some remain for others."""


def _own_ports() -> Iterator[int]:
    """Ports of blocks that no other process uses, each port once before any is repeated.

    The first port of a block is bound as long as the process lives, and marks the block as
    taken: a broker that is away must not find a broker of another process on its port.
    """
    marks: list[socket.socket] = []
    own: list[int] = []
    firsts = _RANGE[::_BLOCK]
    for first in SystemRandom().sample(firsts, len(firsts)):
        if len(marks) == _MOST_BLOCKS:
            break
        mark = socket.socket()
        try:
            mark.bind((HOST, first))
        except OSError:
            mark.close()
            continue
        atexit.register(mark.close)
        marks.append(mark)
        block = range(first + 1, first + _BLOCK)
        own += block
        yield from block
    if not own:
        raise PortTaken(f"No port from {_RANGE[0]} to {_RANGE[-1]} is free on {HOST}.")
    yield from cycle(own)


_TURNS: Final = _own_ports()


def free_ports(count: int) -> list[int]:
    """Find ports that are not in use, were not returned recently, and no other process finds."""
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
