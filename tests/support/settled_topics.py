"""Kafka's own tools agree that nothing of a run is left on the cluster."""

import json
from pathlib import Path

from tests.support.kafka_tools import REASSIGN, stock_tool

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"

Row = tuple[int, list[int], list[int]]
"""Leader, replicas and replicas in sync."""


def described(bootstrap: str, topic: str) -> dict[int, Row]:
    """Each partition, as `kafka-topics --describe` shows it."""
    text = stock_tool(TOPICS, bootstrap, "--describe", "--topic", topic)
    rows = [line.split() for line in text.splitlines() if "Partition:" in line]
    found = [dict(zip(row[::2], row[1::2], strict=False)) for row in rows]
    return {
        int(row["Partition:"]): (int(row["Leader:"]), _ids(row["Replicas:"]), _ids(row["Isr:"]))
        for row in found
    }


def _ids(brokers: str) -> list[int]:
    return [int(broker) for broker in brokers.split(",")]


def settled(bootstrap: str, topic: str, folder: Path) -> dict[int, list[int]]:
    """Replicas of each partition of a topic whose run has left nothing on the cluster.

    All replicas are in sync and the preferred ones lead, no reassignment is in progress, that to
    these replicas is completed, and neither topic nor brokers have a throttle.
    """
    rows = described(bootstrap, topic)
    for leader, replicas, in_sync in rows.values():
        assert sorted(replicas) == sorted(in_sync)
        assert leader == replicas[0]
    assert "No partition reassignments found" in stock_tool(REASSIGN, bootstrap, "--list")
    parts = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for number, (_, replicas, _) in rows.items()
    ]
    file = folder / f"{topic}.json"
    file.write_text(json.dumps({"version": 1, "partitions": parts}))
    # Without the last option, the tool would remove throttles itself.
    verify = ("--reassignment-json-file", file, "--verify", "--preserve-throttles")
    verified = stock_tool(REASSIGN, bootstrap, *verify)
    for number in rows:
        assert f"Reassignment of partition {topic}-{number} is completed." in verified
    for kind in ("brokers", "topics"):
        shown = stock_tool(CONFIGS, bootstrap, "--describe", "--entity-type", kind)
        assert "throttled" not in shown, shown
    return {number: replicas for number, (_, replicas, _) in rows.items()}
