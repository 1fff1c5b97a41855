"""Notifications to systemd, received on a real datagram socket."""

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from control.service.systemd_notify import SystemdNotifier


class Steps:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def systemd(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as found:
        found.bind(str(tmp_path / "notify"))
        found.settimeout(60)
        yield found


def received(systemd: socket.socket) -> str:
    return systemd.recv(65536).decode()


def is_silent(systemd: socket.socket) -> bool:
    systemd.setblocking(False)
    try:
        systemd.recv(1)
    except BlockingIOError:
        return True
    finally:
        systemd.settimeout(60)
    return False


def notifier(systemd: socket.socket, **more: str) -> SystemdNotifier:
    return SystemdNotifier.of({"NOTIFY_SOCKET": systemd.getsockname(), **more})


def test_each_state_is_one_datagram(systemd: socket.socket) -> None:
    found = notifier(systemd)
    before_us = time.monotonic_ns() // 1000
    for report in (found.ready, found.reloading, found.stopping, found.extend):
        report()
    assert received(systemd) == "READY=1"
    reloading, since = received(systemd).split("\n")
    assert reloading == "RELOADING=1"
    name, _, at_us = since.partition("=")
    assert name == "MONOTONIC_USEC"
    assert before_us <= int(at_us) <= time.monotonic_ns() // 1000
    assert received(systemd) == "STOPPING=1"
    assert received(systemd) == "EXTEND_TIMEOUT_USEC=120000000\nWATCHDOG=1"
    found.close()


def test_the_status_is_one_line_sent_once(systemd: socket.socket) -> None:
    found = notifier(systemd)
    found.status("balanced: all\nREADY=1\r\nSTOPPING=1")
    found.status("balanced: all\nREADY=1\r\nSTOPPING=1")
    found.status("x" * 9000)
    assert received(systemd) == "STATUS=balanced: all READY=1 STOPPING=1"
    assert len(received(systemd)) == len("STATUS=") + 500
    assert is_silent(systemd)
    found.close()


def test_beats_are_passed_on_four_times_within_the_limit(systemd: socket.socket) -> None:
    clock = Steps()
    found = SystemdNotifier(systemd.getsockname(), 20.0, clock)
    found.beat()
    assert received(systemd) == "WATCHDOG=1"
    clock.now_s += 4.9
    found.beat()
    assert is_silent(systemd)
    clock.now_s += 0.1
    found.beat()
    assert received(systemd) == "WATCHDOG=1"
    found.close()


@pytest.mark.parametrize(
    "variables", [{}, {"WATCHDOG_USEC": "later"}, {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}]
)
def test_without_a_watchdog_for_this_process_beats_are_not_passed_on(
    systemd: socket.socket, variables: dict[str, str]
) -> None:
    found = notifier(systemd, **variables)
    found.beat()
    assert is_silent(systemd)
    found.close()


def test_children_do_not_inherit_the_socket(systemd: socket.socket) -> None:
    environment = {
        "NOTIFY_SOCKET": systemd.getsockname(),
        "WATCHDOG_USEC": "4000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    found = SystemdNotifier.of(environment)
    assert environment == {"HOME": "/"}
    found.beat()
    assert received(systemd) == "WATCHDOG=1"
    found.close()


def test_an_abstract_socket_is_used() -> None:
    name = f"plimsoll-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind("\0" + name)
        receiver.settimeout(60)
        found = SystemdNotifier.of({"NOTIFY_SOCKET": "@" + name})
        found.ready()
        assert received(receiver) == "READY=1"
        found.close()


@pytest.mark.parametrize("address", [None, "", "relative", "/nowhere/notify"])
def test_without_a_receiver_nothing_happens(address: str | None) -> None:
    environment = {} if address is None else {"NOTIFY_SOCKET": address}
    found = SystemdNotifier.of(environment)
    found.ready()
    found.status("x")
    found.beat()
    found.close()


def test_a_receiver_that_does_not_read_does_not_block_beats(systemd: socket.socket) -> None:
    found = notifier(systemd)
    for number in range(5000):
        found.status(f"{number} " + "x" * 400)
    found.close()
