"""What a synthetic cluster looks like; with a seed it is a cluster."""

from dataclasses import dataclass
from typing import Final

from model.errors import ConfigError

YOUNG: Final = 0.2
"""Share of the brokers that are young."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterShape:
    """Size, racks, and what is uneven.

    Young brokers, the last fifth, hold a twentieth of what an old one holds
    (`young`). `hot`: some topics carry three times their rate since they were placed.
    `drain`: broker 0 must empty. `giants`: partitions of up to 0.6 of a broker's
    level. `near_level`: placed largest first on the emptiest broker, then shaken.
    `unequal`: brokers of capacity 1, 1, 1.5 and 2.

    Raises
    ------
    ConfigError
        No cluster can have this shape.
    """

    brokers: int
    partitions: int
    rf: int = 1
    """Replicas of each partition."""
    racks: int = 1
    """Never fewer than replicas: each partition starts with a rack a replica."""
    topic_skew: float = 0.9
    """Zipf exponent of the rates of topics."""
    partition_skew: float = 0.4
    """Zipf exponent of the rates of the partitions of one topic."""
    young: bool = True
    hot: bool = False
    drain: bool = False
    giants: bool = False
    near_level: bool = False
    unequal: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.rf <= self.racks:
            raise ConfigError(
                f"{self.rf} replicas need as many racks, but there are {self.racks}; "
                "give more racks or fewer replicas"
            )
        if self.racks > self.brokers - self.young_brokers:
            raise ConfigError(
                f"{self.racks} racks need as many brokers that are not young, but "
                f"there are {self.brokers - self.young_brokers}; give more brokers or "
                "fewer racks"
            )

    @property
    def young_brokers(self) -> int:
        """How many of the last brokers are young."""
        return young_brokers(self.brokers) if self.young else 0


def young_brokers(brokers: int) -> int:
    """How many of so many brokers are young where some are."""
    return max(1, round(YOUNG * brokers))
