"""What becomes of a request whose connection is closed before it has arrived."""

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

from kafka.protocol.admin import DescribeClusterRequest

from clients.admin_connection import send_request
from clients.connection import Connection
from clients.kafka_python import open_client
from tests.support.collector.fake_brokers import Brokers
from tests.support.namespaces import unshared
from tests.support.paths import ROOT

GIVEN_UP = """
import fcntl, socket, struct, threading, time

from kafka.protocol.admin import DescribeClusterRequest, ListPartitionReassignmentsRequest

from clients import kafka_python
from clients.admin_connection import AdminConnection, send_request
from clients.connection import Connection
from model.errors import ClusterUnreachable
from tests.support.collector.fake_brokers import Brokers

TIMEOUT_S = 3.0


def set_link(up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        found = fcntl.ioctl(control, 0x8913, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", found)[1] & ~1
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"lo", flags | up))


def opened(brokers):
    found = AdminConnection(Connection(brokers.bootstrap, timeout_s=TIMEOUT_S))
    for _ in range(10):
        # The driver opens another connection for this than to the bootstrap server.
        if is_answered(found, DescribeClusterRequest()):
            return found
    raise AssertionError("the broker never answers")


def is_answered(connection, request):
    try:
        with connection.calling("ask", "none") as client:
            send_request(client, request, 1)
    except ClusterUnreachable:
        return False
    return True


def ask_in_vain(connection):
    request = ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None)
    assert not is_answered(connection, request)


def arrived(brokers):
    return (1, "ListPartitionReassignmentsRequest") in brokers.asked


set_link(True)
with Brokers({}, {}, {}, ids=(1,)).running() as shipped, Brokers(
    {}, {}, {}, ids=(1,)
).running() as plain:
    connections = [opened(shipped)]
    kafka_python._socket_options = lambda _timeout_ms: []
    connections.append(opened(plain))
    set_link(False)
    senders = [threading.Thread(target=ask_in_vain, args=(c,)) for c in connections]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    set_link(True)
    ends_s = time.monotonic() + 60
    while not arrived(plain) and time.monotonic() < ends_s:
        time.sleep(0.05)
    # By the time that the one has arrived, the other would be due, too.
    time.sleep(2)
    print(arrived(shipped), arrived(plain))
"""


def test_a_connection_is_reset_and_its_kernel_gives_up_in_time() -> None:
    with Brokers({}, {}, {}, ids=(1,)).running() as brokers:
        connection = Connection(brokers.bootstrap, timeout_s=30.5)
        with closing(open_client(connection)) as client:
            send_request(client, DescribeClusterRequest(), 1)
            opened = client._manager._conns[1]
            option: Callable[..., bytes | int] = opened.transport._sock.getsockopt
            assert option(socket.SOL_SOCKET, socket.SO_LINGER, 8) == struct.pack("ii", 1, 0)
            assert option(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                assert option(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 30_500


def test_a_request_does_not_arrive_after_it_was_given_up() -> None:
    done = subprocess.run(
        [*unshared("--net"), sys.executable, "-P", "-c", GIVEN_UP],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    # Without the options of its socket, it does: so the test can fail.
    assert done.stdout.split() == ["False", "True"], done.stderr
