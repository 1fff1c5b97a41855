"""Records as metrics reporters write them: AutoMQ's, and Cruise Control's."""

import struct
from collections.abc import Mapping

BYTES_IN, BYTES_OUT, SIZE, CPU = 2, 3, 4, 5
ALL_IN, ALL_OUT = 0, 1
PRODUCED, FETCHED = 16, 17
"""Cruise Control's metric ids."""


def automq_partition(
    time_ms: int, broker: int, topic: str, partition: int, figures: Mapping[int, float]
) -> bytes:
    """Figures by AutoMQ's metric id."""
    name = topic.encode()
    head = struct.pack(">bbqiii", 0, 0, time_ms, broker, 0, len(name)) + name
    entries = b"".join(struct.pack(">bd", *entry) for entry in figures.items())
    return head + struct.pack(">ii", partition, len(figures)) + entries


def cruise(
    metric: int,
    time_ms: int,
    broker: int,
    value: float,
    topic: str = "",
    partition: int | None = None,
    version: int = 0,
) -> bytes:
    """A record of a partition, else of a topic, else of a broker."""
    scope = 0 if not topic else 1 if partition is None else 2
    record = struct.pack(">bbbqi", scope, version, metric, time_ms, broker)
    if topic:
        name = topic.encode()
        record += struct.pack(">i", len(name)) + name
    if partition is not None:
        record += struct.pack(">i", partition)
    return record + struct.pack(">d", value)
