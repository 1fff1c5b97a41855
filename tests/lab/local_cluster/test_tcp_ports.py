"""Ports: found, claimed, refused."""

import contextlib
import socket
import subprocess
import sys

import pytest

from lab.local_cluster.tcp_ports import HOST, answers, claim, free_ports, is_free
from model.errors import PortTaken


def test_a_port_in_use_is_refused_by_number() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        assert not is_free(port)
        assert answers(port)
        with pytest.raises(PortTaken, match=f"Port {port} for a test"):
            claim(port, "a test")


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(map(answers, ports))
    assert claim(ports[0], "a test") == ports[0]


FINDING = """
from lab.local_cluster.tcp_ports import free_ports
print(*free_ports({}), flush=True)
input()
"""


def test_two_processes_never_find_the_same_port() -> None:
    """Even if none of them listens, as while a broker restarts."""
    found: list[str] = []
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            program = [sys.executable, "-c", FINDING.format(250)]
            pipe = subprocess.PIPE
            other = stack.enter_context(
                subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True)
            )
            stack.callback(other.communicate, "\n")
            assert other.stdout
            found += other.stdout.readline().split()
    assert len(set(found)) == 4 * 250


def test_a_process_that_has_found_many_ports_finds_them_again() -> None:
    program = [sys.executable, "-c", FINDING.format(2000)]
    done = subprocess.run(program, input="\n", capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found = done.stdout.split()
    assert len(found) == 2000 > len(set(found)) > 500
