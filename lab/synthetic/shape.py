"""Shape of a synthetic cluster; together with a seed it determines the cluster."""

from dataclasses import dataclass
from typing import Final

from model.errors import ConfigError

YOUNG: Final = 0.2
"""Share of young brokers."""

LARGEST: Final = 0.1
"""Largest ordinary partition, as a share of the mean net_in of a broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShape:
    """Size, racks and imbalance.

    `young`: the last fifth of the brokers hold a twentieth of the replicas of others. `hot`: some
    topics have three times the rate they were placed for. `drain`: broker 0 is draining;
    `dead`: it is dead, and its partitions are led by their next replica.
    `large_partitions`: some of up to 0.6 of the mean load of a broker. `nearly_balanced`: largest
    partitions first on the least loaded broker, then some moved at random. `unequal`: capacities of
    1, 1, 1.5 and 2 units. `two_sizes`: every other broker has twice the capacity.

    Raises ConfigError: the shape is not possible.
    """

    brokers: int
    partitions: int
    rf: int = 1
    """Replicas of each partition."""
    racks: int = 1
    """At least as many as replicas: each replica starts in a rack of its own."""
    topic_skew: float = 0.9
    """Zipf exponent of the rates of topics."""
    partition_skew: float = 0.4
    """Zipf exponent of the rates of the partitions of one topic."""
    largest: float = LARGEST
    """Largest ordinary partition, as a share of the mean net_in of a broker."""
    young: bool = True
    hot: bool = False
    drain: bool = False
    dead: bool = False
    large_partitions: bool = False
    nearly_balanced: bool = False
    unequal: bool = False
    two_sizes: bool = False

    def __post_init__(self) -> None:
        if self.dead and (self.drain or self.rf < 2):
            raise ConfigError("a dead broker needs several replicas, and is not draining")
        if not 1 <= self.rf <= self.racks:
            raise ConfigError(
                f"{self.rf} replicas need as many racks, but there are {self.racks}; "
                "give more racks or fewer replicas"
            )
        if self.racks > self.brokers - self.young_brokers:
            raise ConfigError(
                f"{self.racks} racks need as many brokers that are not young, but there are "
                f"{self.brokers - self.young_brokers}; give more brokers or fewer racks"
            )

    @property
    def young_brokers(self) -> int:
        """Number of young brokers; these are the last ones."""
        return young_brokers(self.brokers) if self.young else 0


def young_brokers(brokers: int) -> int:
    """Number of young brokers among `brokers`; at least 1."""
    return max(1, round(YOUNG * brokers))
