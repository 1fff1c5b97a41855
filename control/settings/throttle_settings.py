"""Settings of the adaptive throttle, which uses the bandwidth clients leave free."""

from typing import TYPE_CHECKING, Self

from pydantic import model_validator

from model.files import FileModel
from model.quantities import Rate
from model.snapshot.capacities import Capacities

if TYPE_CHECKING:
    from executor.throttle.auto import AutoThrottle


class AutoThrottleSettings(FileModel):
    """`[auto_throttle]`: bounds of the adaptive throttle, in bytes/s or `50MB/s`."""

    floor: Rate = 1
    """Lowest rate, even if less bandwidth is free."""
    ceiling: Rate | None = None
    """Highest rate, even if more bandwidth is free."""

    @model_validator(mode="after")
    def _apart(self) -> Self:
        if self.ceiling is not None and self.ceiling < self.floor:
            raise ValueError("the floor is above the ceiling; change one of them")
        return self


def auto_throttle(settings: AutoThrottleSettings, given: Capacities | None) -> "AutoThrottle":
    """The throttle for the executor; `given` has the brokers' network capacities."""
    from executor.throttle.auto import AutoThrottle

    entries = given.by_broker if given is not None else {}
    capacity = {broker: entry.capacity for broker, entry in entries.items()}
    return AutoThrottle(floor=settings.floor, ceiling=settings.ceiling, capacity=capacity)
