"""What a throttle that follows what clients leave free is told in the settings."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from model.files import FileModel
from model.quantities import Rate
from model.snapshot.capacities import Capacities

if TYPE_CHECKING:
    from executor.throttle.auto import AutoThrottle


class AutoThrottleSettings(FileModel):
    """Rates are bytes/s, or `50MB/s`."""

    floor: Rate = 1
    """No lower, however little is free."""
    ceiling: Rate | None = None
    """No higher, however much is free."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.ceiling is not None and self.ceiling < self.floor:
            raise ValueError("the floor lies above the ceiling; change one of them")
        return self


def auto_throttle(
    told: AutoThrottleSettings, given: Capacities | None
) -> "AutoThrottle":
    """For the executor; what brokers' network cards carry is as given of brokers."""
    from executor.throttle.auto import AutoThrottle

    entries = given.by_broker if given is not None else {}
    capacity = {broker: entry.capacity for broker, entry in entries.items()}
    return AutoThrottle(floor=told.floor, ceiling=told.ceiling, capacity=capacity)
