"""A throttle that follows the network bandwidth that clients leave free."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Final

from model.ids import BrokerId
from model.snapshot.snapshot import Resource

ANY_BROKER: Final = -1
"""Stands for brokers without a capacity of their own, as in Cruise Control's capacity file."""
_SHARE: Final = 0.9
"""Share of the free bandwidth used; the rest is a reserve for clients."""
_FAIL_SAFE: Final = 10_000_000
"""Bytes per second where capacity or traffic is unknown (DataDog's autothrottle)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoThrottle:
    """The limits of a throttle that follows clients, in bytes per second."""

    floor: int = 1
    ceiling: int | None = None
    capacity: Mapping[int, Mapping[Resource, float]] = field(default_factory=dict)
    """Network capacity by broker and direction (NET_IN, NET_OUT)."""

    def __post_init__(self) -> None:
        if self.ceiling is not None and not 1 <= self.floor <= self.ceiling:
            raise ValueError("a throttle's floor lies above its ceiling")

    def rate(self, broker: BrokerId, direction: Resource, used: float | None) -> float:
        """Bytes per second that copies may use of a broker in one direction.

        `direction` is NET_IN or NET_OUT; `used` is what clients use there, None where unknown.
        """
        capacity = self.capacity.get(broker, self.capacity.get(ANY_BROKER, {})).get(direction)
        if capacity is None or used is None:
            return self._within(_FAIL_SAFE)
        return self._within(_SHARE * (capacity - used))

    @property
    def most_bytes_per_s(self) -> float:
        """Bytes per second that copies may use of the largest broker while clients are idle."""
        both = (Resource.NET_IN, Resource.NET_OUT)
        known = [of[key] for of in self.capacity.values() for key in both if key in of]
        return self._within(_SHARE * max(known) if known else _FAIL_SAFE)

    def _within(self, rate: float) -> float:
        return min(max(rate, self.floor), self.ceiling or inf)
