"""The shipped checkpoints equal those made by Kafka's own tool."""

from struct import unpack_from

import pytest

from clients.jvm.jars import default_cache_dir, fetch
from clients.jvm.java import find_java
from lab.local_cluster.checkpoint import make
from lab.local_cluster.kafka_versions import (
    DEFAULT_VERSION,
    checkpoint_of,
    kafka_pins,
    pinned_versions,
)

BATCH_HEADER = 12
VARYING = ((17, 21), (27, 43))
"""Ranges of a batch header that vary between runs: checksum and timestamps."""


def without_times(checkpoint: bytes) -> bytes:
    """The checkpoint with zeros where two runs differ."""
    data = bytearray(checkpoint)
    batch = 0
    while batch < len(data):
        for begin, end in VARYING:
            data[batch + begin : batch + end] = bytes(end - begin)
        (length,) = unpack_from(">i", data, batch + 8)
        batch += BATCH_HEADER + length
    return bytes(data)


@pytest.mark.kafka
def test_the_storage_tool_still_writes_the_shipped_checkpoint() -> None:
    """Everything but checksums and times."""
    made = make(find_java(), fetch(kafka_pins(), default_cache_dir()))
    assert without_times(made) == without_times(checkpoint_of(DEFAULT_VERSION).read_bytes())


@pytest.mark.parametrize("version", pinned_versions())
def test_only_checksums_and_times_are_ignored(version: str) -> None:
    """Every feature level is part of the comparison."""
    shipped = checkpoint_of(version).read_bytes()
    compared = without_times(shipped)
    assert len(compared) == len(shipped)
    assert compared.count(b"metadata.version") == 1
    assert sum(a != b for a, b in zip(compared, shipped, strict=True)) <= 60
