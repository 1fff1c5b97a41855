"""A proxy between clients and local brokers that injects faults.

It reads only the length, API key and correlation id of each message, so it works with
every version of Kafka's protocol.
"""

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, IntEnum
from struct import Struct
from threading import Lock, Thread
from typing import Final

from lab.local_cluster.tcp_ports import HOST
from model.closing import Closing

_SIZE_BYTES: Final = 4
_REQUEST: Final = Struct(">hhi")
"""API key, version, correlation id."""
_ANSWER: Final = Struct(">i")
"""Correlation id."""


class Api(IntEnum):
    """API keys of requests that tests inject faults into."""

    METADATA = 3
    DESCRIBE_LOG_DIRS = 35
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45


class Fault(Enum):
    """Fault of a request."""

    LOSE_REQUEST = "lose request"
    """The broker never receives it; the connection stays open."""
    LOSE_ANSWER = "lose answer"
    """It is executed, but the response is lost; the connection stays open."""
    CUT_BEFORE = "cut before"
    """The connection ends, and the broker never receives it."""
    CUT_AFTER = "cut after"
    """It is executed, and the connection ends before the response."""
    DELAY = "delay"
    """It is executed, and the response is delayed."""


@dataclass(slots=True)
class _Order:
    fault: Fault
    times: int
    delay_s: float


class Proxy(Closing):
    """Forward ports of 127.0.0.1, each to that of a broker; thread-safe.

    ports: brokers' ports by the proxy's. source: address from which brokers see
    clients connect. Without a fault, nothing is lost.
    """

    def __init__(self, ports: Mapping[int, int], *, source: str = HOST) -> None:
        self._ports = dict(ports)
        """Brokers' ports by the proxy's."""
        self._source = source
        self._lock = Lock()
        self._orders: dict[int, _Order] = {}
        """By API key."""
        self._doors: dict[int, tuple[socket.socket, Thread]] = {}
        """By port."""
        self._links: dict[_Link, int] = {}
        """The port of each."""
        self.come_back()

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports for clients, in the order of the brokers."""
        return tuple(self._ports)

    def order(self, api: Api, fault: Fault, *, times: int = 1, delay_s: float = 0.0) -> None:
        """Fault the next requests of this kind, replacing an earlier one."""
        with self._lock:
            self._orders[api] = _Order(fault, times, delay_s)

    def faults_left(self, api: Api) -> int:
        """Number of requests of this kind that will still be faulty."""
        with self._lock:
            return self._orders[api].times if api in self._orders else 0

    def heal(self) -> None:
        """Remove all faults, and listen."""
        with self._lock:
            self._orders.clear()
        self.come_back()

    def cut(self, *ports: int) -> None:
        """Close every connection of these ports, or of all, now; clients may reconnect at once."""
        with self._lock:
            links = [link for link, port in self._links.items() if port in (ports or self._ports)]
        for link in links:
            link.end()

    def go_away(self, *ports: int) -> None:
        """Close every connection of these ports, or of all, and refuse new ones."""
        for port in ports or self._ports:
            if port in self._doors:
                door, thread = self._doors.pop(port)
                door.shutdown(socket.SHUT_RDWR)
                thread.join()
                door.close()
        self.cut(*ports)

    def come_back(self) -> None:
        """Accept connections again."""
        for port in self._ports.keys() - self._doors.keys():
            door = socket.create_server((HOST, port))
            thread = Thread(target=self._admit, args=(door, port), daemon=True)
            thread.start()
            self._doors[port] = door, thread

    def close(self) -> None:
        """Close all connections and stop listening."""
        self.go_away()

    def _admit(self, door: socket.socket, port: int) -> None:
        with suppress(OSError):
            while True:
                client, _ = door.accept()
                Thread(target=self._join, args=(client, port), daemon=True).start()

    def _join(self, client: socket.socket, port: int) -> None:
        with client, suppress(OSError):
            address = (self._source, 0)
            with socket.create_connection((HOST, self._ports[port]), 5.0, address) as there:
                there.settimeout(None)
                link = _Link(client, there, self._next_order)
                with self._lock:
                    self._links[link] = port
                link.run()
                with self._lock:
                    del self._links[link]

    def _next_order(self, api_key: int) -> _Order | None:
        with self._lock:
            order = self._orders.get(api_key)
            if order is None or order.times == 0:
                return None
            order.times -= 1
            return order


class _Link:
    """A connection of a client, and the one to its broker."""

    def __init__(
        self,
        client: socket.socket,
        broker: socket.socket,
        next_order: Callable[[int], _Order | None],
    ) -> None:
        self._client = client
        self._broker = broker
        self._next_order = next_order
        self._ordered: dict[int, _Order] = {}
        """Faults of pending responses by correlation id."""

    def run(self) -> None:
        """Forward messages until one side closes, or `end` is called."""
        asking = Thread(target=self._ask, daemon=True)
        asking.start()
        self._answer()
        asking.join()

    def end(self) -> None:
        """Close both connections."""
        for side in (self._client, self._broker):
            with suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def _ask(self) -> None:
        for message in _messages(self._client):
            api_key, _, number = _REQUEST.unpack_from(message, _SIZE_BYTES)
            order = self._next_order(api_key)
            if order is not None and order.fault is Fault.CUT_BEFORE:
                break
            if order is None or order.fault is not Fault.LOSE_REQUEST:
                if order is not None:
                    self._ordered[number] = order
                _send(self._broker, message)
        self.end()

    def _answer(self) -> None:
        for message in _messages(self._broker):
            (number,) = _ANSWER.unpack_from(message, _SIZE_BYTES)
            order = self._ordered.pop(number, None)
            if order is not None and order.fault is Fault.CUT_AFTER:
                break
            if order is None or order.fault is not Fault.LOSE_ANSWER:
                time.sleep(order.delay_s if order else 0.0)
                _send(self._client, message)
        self.end()


def _messages(side: socket.socket) -> Iterator[bytes]:
    """Messages with their size prefix, until the other side closes."""
    with suppress(OSError):
        while size := side.recv(_SIZE_BYTES, socket.MSG_WAITALL):
            length = int.from_bytes(size, "big")
            yield size + side.recv(length, socket.MSG_WAITALL)


def _send(side: socket.socket, message: bytes) -> None:
    with suppress(OSError):
        side.sendall(message)
