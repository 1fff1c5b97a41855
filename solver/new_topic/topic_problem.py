"""A topic about to be created, and the assignment of its partitions."""

import re
from dataclasses import dataclass
from typing import Final

from model.errors import ConfigError
from model.ids import BrokerId, TopicName

MOST_PARTITIONS: Final = 100_000
"""More partitions in one topic are taken for a mistake; Kafka creates at most 10,000 at a time."""

MOST_LOAD: Final = 1e18
"""Bytes per second above this are taken for a mistake."""

NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
"""Valid topic names (`org.apache.kafka.common.internals.Topic`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic that does not exist yet.

    Raises ConfigError unless the name is valid in Kafka, there are 1 to `MOST_PARTITIONS`
    partitions, the replication factor is at least 1, and loads are None or 0 to `MOST_LOAD`.
    """

    name: TopicName
    partitions: int
    replication_factor: int
    net_in: float | None = None
    """Expected bytes/s from producers to each partition."""
    net_out: float | None = None
    """Expected bytes/s from each partition to consumers."""

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name) or self.name in (".", ".."):
            raise ConfigError(
                f"{self.name!r} is not a valid topic name; use 1 to 249 letters, "
                "digits, dots, underscores and hyphens"
            )
        if not 1 <= self.partitions <= MOST_PARTITIONS:
            raise ConfigError(
                f"{self.partitions} partitions cannot be assigned; give 1 to {MOST_PARTITIONS:,}"
            )
        if self.replication_factor < 1:
            raise ConfigError(
                f"a replication factor of {self.replication_factor} is not possible; give 1 or more"
            )
        for name, load in (("in", self.net_in), ("out", self.net_out)):
            if load is not None and not 0 <= load <= MOST_LOAD:
                raise ConfigError(
                    f"the expected net {name} is {load:g}; give bytes per second of "
                    "one partition, 0 or more"
                )

    @property
    def taken(self) -> float:
        """Expected bytes/s into each replica: what producers send to a partition, 0 if unknown."""
        return self.net_in or 0.0

    @property
    def served(self) -> float:
        """Expected bytes/s out of each leader, including to its followers; 0 where unknown."""
        return (self.net_out or 0.0) + (self.replication_factor - 1) * self.taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Evenness:
    """How even counts are over the brokers that may get any."""

    least: int
    most: int
    greatest_lowest: int
    """Proved: in no allowed assignment is the lowest count higher."""
    least_highest: int
    """Proved: in no allowed assignment is the highest count lower."""

    @property
    def proved(self) -> bool:
        """Whether no allowed assignment has a higher lowest or a lower highest count."""
        at_best = self.greatest_lowest, self.least_highest
        return (self.least, self.most) == at_best


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadEvenness:
    """Squared deviations from the mean load under an assignment, as in F."""

    cost: float
    bound: float
    """Proved: no allowed assignment has a lower cost."""

    @property
    def proved(self) -> bool:
        """Whether no allowed assignment is better, apart from rounding."""
        return self.cost - self.bound <= 1e-9 * max(1.0, self.cost)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """Replica lists for the partitions of a new topic, or why there are none."""

    topic: NewTopic
    brokers: tuple[BrokerId, ...]
    """Brokers that may get a replica."""
    replicas: tuple[tuple[BrokerId, ...], ...] = ()
    """By partition number: leader first, observers last. Empty if there are none."""
    reasons: tuple[str, ...] = ()
    """Why there are none."""
    evenness: Evenness | None = None
    """Of replicas; None where there is no assignment."""
    leader_evenness: Evenness | None = None
    limited_by: str = ""
    """What ended the search for better leaders early; otherwise empty."""
    load_evenness: LoadEvenness | None = None
    """None where no load is expected, or none of it is balanced."""

    def counts(self) -> dict[BrokerId, tuple[int, int]]:
        """Return, by id, the numbers of replicas and of leaders that each of `brokers` gets.

        Both 0 where there is no assignment.
        """
        held = [b for row in self.replicas for b in row]
        led = [row[0] for row in self.replicas]
        return {b: (held.count(b), led.count(b)) for b in self.brokers}
