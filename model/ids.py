"""Names of brokers, topics and partitions as types of their own."""

from typing import NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""Kafka's node id."""

TopicName = NewType("TopicName", str)
"""A topic's name as Kafka shows it."""

NO_BROKER = BrokerId(-1)
"""What Kafka's metadata give as leader of a partition that has none."""


class PartitionId(NamedTuple):
    """One partition of a topic; sorts by topic, then by number."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"
