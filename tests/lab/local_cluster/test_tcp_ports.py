"""Ports: found, claimed, refused."""

import socket

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
