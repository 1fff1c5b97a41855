"""The shipped checkpoint equals the one made by Kafka's own tool."""

import pytest

from clients.jvm.jars import default_cache_dir, fetch
from clients.jvm.java import find_java
from lab.local_cluster.broker_properties import CHECKPOINT
from lab.local_cluster.checkpoint import make, without_times
from lab.local_cluster.local_cluster import kafka_pins


@pytest.mark.kafka
def test_the_storage_tool_still_writes_the_shipped_checkpoint() -> None:
    """Everything but checksums and times."""
    made = make(find_java(), fetch(kafka_pins(), default_cache_dir()))
    assert without_times(made) == without_times(CHECKPOINT.read_bytes())


def test_only_checksums_and_times_are_ignored() -> None:
    """Every feature level is part of the comparison."""
    shipped = CHECKPOINT.read_bytes()
    compared = without_times(shipped)
    assert len(compared) == len(shipped)
    assert compared.count(b"metadata.version") == 1
    assert sum(a != b for a, b in zip(compared, shipped, strict=True)) <= 60
