"""Records of Cruise Control's sample store."""

import struct


def old(time_ms: int, topic: str, partition: int, *figures: float) -> bytes:
    """Version 0: CPU, disk (MiB), in and out (KiB/s)."""
    cpu, disk, net_in, net_out = figures
    head = struct.pack(">bi4dq", 0, 3, cpu, disk, net_in, net_out, time_ms)
    return head + struct.pack(">i", partition) + topic.encode()


def new(time_ms: int, topic: str, partition: int, *figures: float) -> bytes:
    """Version 1: besides, produced, fetched, records in, replication in and out."""
    head = struct.pack(">bi9dq", 1, 3, *figures, time_ms)
    return head + struct.pack(">i", partition) + topic.encode()
