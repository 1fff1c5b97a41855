import socket

import pytest

from clients.connection import Connection
from collector.metadata import ClusterReader
from model.errors import ClusterUnreachable, ConfigError


@pytest.mark.parametrize("text", ["", "kafka", "kafka:", ":9092", "a:x", "a:1,,b:2"])
def test_an_invalid_address_is_rejected_with_its_text(text: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port") as caught:
        Connection(text)
    assert repr(text) in str(caught.value)


def test_several_servers_may_be_given() -> None:
    connection = Connection("a:1, [::1]:2")
    assert connection.addresses == (("a", 1), ("::1", 2))


def test_a_refused_connection_names_the_address() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    reader = ClusterReader(Connection(f"127.0.0.1:{port}"))
    with pytest.raises(ClusterUnreachable, match=f"127.0.0.1:{port}"):
        reader.read()


def test_a_server_that_never_answers_is_given_up() -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"127.0.0.1:{mute.getsockname()[1]}"
        reader = ClusterReader(Connection(address, timeout_s=0.5))
        with pytest.raises(ClusterUnreachable, match=address):
            reader.read()
