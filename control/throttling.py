"""What a throttle that follows what clients leave free is told in the settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from model.capacities import DEFAULT
from model.exchange.capacity import read_capacities
from model.files import FileModel
from model.snapshot import Resource
from model.units import rate_of

if TYPE_CHECKING:
    from executor.auto_throttle import AutoThrottle


def _rate(value: Any) -> Any:
    return rate_of(str(value))


Rate = Annotated[int, BeforeValidator(_rate)]


class AutoThrottleSettings(FileModel):
    """Rates are bytes/s, or `50MB/s`."""

    floor: Rate = 1
    """No lower, however little is free."""
    ceiling: Rate | None = None
    """No higher, however much is free."""
    net_in: Rate | None = None
    """What a broker's network card takes in, of each that `capacity` does not tell."""
    net_out: Rate | None = None
    """What it sends, likewise."""
    capacity: Path | None = None
    """Cruise Control's capacity file."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.ceiling is not None and self.ceiling < self.floor:
            raise ValueError("the floor lies above the ceiling; change one of them")
        return self


def auto_throttle(told: AutoThrottleSettings) -> "AutoThrottle":
    """For the executor.

    Raises ConfigError where the capacity file cannot be used.
    """
    from executor.auto_throttle import AutoThrottle

    of_all = {Resource.NET_IN: told.net_in, Resource.NET_OUT: told.net_out}
    capacity = {DEFAULT: {way: float(rate) for way, rate in of_all.items() if rate}}
    if told.capacity is not None:
        for broker, entry in read_capacities(told.capacity).by_broker.items():
            capacity[broker] = {**capacity[DEFAULT], **entry.capacity}
    return AutoThrottle(floor=told.floor, ceiling=told.ceiling, capacity=capacity)
