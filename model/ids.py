"""Names of brokers, topics and partitions as types of their own."""

import re
from typing import Final, NamedTuple, NewType

BrokerId = NewType("BrokerId", int)
"""Kafka's node id."""

TopicName = NewType("TopicName", str)
"""A topic's name as Kafka shows it."""

MOST_ID: Final = 2**31 - 1
"""The largest id of a broker, and number of a partition: Kafka's are 32 bits wide."""

_LEGAL: Final = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")

NO_BROKER = BrokerId(-1)
"""What Kafka's metadata give as leader of a partition that has none."""


class PartitionId(NamedTuple):
    """One partition of a topic; sorts by topic, then by number."""

    topic: TopicName
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def is_broker_id(text: str) -> bool:
    """Whether a person's text is the id of a broker: digits, and at most `MOST_ID`."""
    digits = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_ID))
    return digits and int(text) <= MOST_ID


def is_legal(topic: str) -> bool:
    """Whether Kafka allows a topic to have this name (class `Topic.validate`)."""
    return _LEGAL.fullmatch(topic) is not None
