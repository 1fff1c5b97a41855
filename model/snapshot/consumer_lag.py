"""How far consumer groups are behind, by the offsets they have committed."""

from dataclasses import dataclass

from model.ids import TopicName


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerLag:
    """The lag of all groups on some topics.

    Groups commit every few seconds, so one that keeps up has a lag of seconds. A group
    that no longer reads counts as well.
    """

    records: int
    """Summed over groups and partitions."""
    seconds: float | None
    """Of the topic furthest behind: its lag by the rate at which records arrive; None
    where no record arrives."""
    topic: TopicName
    """The topic furthest behind."""
