"""Time as an argument, and the limits of a run."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Final

from executor.throttle.auto import AutoThrottle
from model.stop_rules import StopRules

# CLOCK_BOOTTIME continues while the machine sleeps; on macOS, CLOCK_MONOTONIC does.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

_RULES: Final = StopRules()
_SETTLE_S: Final = 10.0
_SETTLE_LOOK_S: Final = 0.1


def steady_s() -> float:
    """Seconds since some moment, by a clock that nobody sets."""
    return time.clock_gettime(_STEADY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The clock of a run and its way to wait."""

    now_s: Callable[[], float] = time.time
    """Seconds since the epoch; for stamps alone, since somebody may set this clock."""
    pause: Callable[[float], None] = time.sleep
    """Wait this many seconds."""
    steady_s: Callable[[], float] = steady_s
    """Seconds since some moment; nobody sets this clock, so waiting goes by it."""

    def settles(self, fits: Callable[[], bool]) -> bool:
        """Whether it comes to fit in 10 s: brokers may lag behind the controller."""
        end_s = self.steady_s() + _SETTLE_S
        while not fits():
            if self.steady_s() >= end_s:
                return False
            self.pause(_SETTLE_LOOK_S)
        return True

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(1000 * self.now_s())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a run may do at once, and how long it waits for what."""

    moves_in_flight: int = 4
    """Moves under way in the cluster."""
    moves_per_broker: int = 10
    """Moves under way that a broker takes part in, in and out together."""
    throttle_bytes_per_s: int | None = None
    """What moves may copy into a broker, and out of it, each; None without limit."""
    throttle_follows: bool = False
    """Whether the throttle follows what clients leave free, as `auto_throttle` says."""
    auto_throttle: AutoThrottle = field(default_factory=AutoThrottle)
    disk_reserve_bytes: int = 10**9
    """What stays free on every target's disk."""
    stuck_s: float = 120.0
    """A move on shared storage, which copies nothing, is stuck after so long."""
    poll_s: float = 0.15
    """Between two looks at what is under way."""
    health_s: float = 1.0
    """Between two looks at the cluster as a whole."""
    watch_s: float = 10.0
    """Between two looks at every partition, those outside the plan too."""
    unreachable_s: float = 60.0
    """A cluster that does not answer for this long ends the run."""
    disk_look_s: float = 10.0
    """Between two looks at the free room of targets."""
    stop_rules: StopRules = _RULES
    """What ends a run early or holds it."""
    suspend_balancer: bool = False
    """Whether AutoMQ's own balancer may be stood down for the run."""
    lower_segments: bool = False
    """Whether topics in the remote tier may have short segments for the run."""
    tier_wait_s: float = 30.0
    """How long to wait until segments are in the remote tier."""

    def __post_init__(self) -> None:
        if self.moves_in_flight < 1 or self.moves_per_broker < 1:
            raise ValueError("at least one move must be allowed in flight")
        if self.throttle_bytes_per_s is not None and self.throttle_bytes_per_s < 1:
            raise ValueError("a throttle must let at least one byte per second through")

    @property
    def copy_bytes_per_s(self) -> float:
        """The most that a throttle lets into a broker, and out of it, each."""
        if self.throttle_follows:
            return self.auto_throttle.most_bytes_per_s
        return self.throttle_bytes_per_s or inf
