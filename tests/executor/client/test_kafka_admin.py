"""Connection errors as plimsoll's messages."""

import pytest

from executor.client.kafka_admin import KafkaAdmin
from lab.local_cluster.tcp_ports import HOST, free_ports
from model.errors import ClusterUnreachable, ConfigError


def test_an_unreachable_address_is_named() -> None:
    (port,) = free_ports(1)
    with (
        KafkaAdmin(f"{HOST}:{port}", 1.0) as admin,
        pytest.raises(ClusterUnreachable, match=f"{port}: Connection refused"),
    ):
        admin.cluster()


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":9092", "a:1,b:x"])
def test_an_invalid_address_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match="is not host:port"):
        KafkaAdmin(text, 1.0)
