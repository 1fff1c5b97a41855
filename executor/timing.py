"""The clock and the limits of a run, passed as arguments."""

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
    """Seconds of the monotonic clock, which is never adjusted."""
    return time.clock_gettime(_STEADY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The clocks of a run, and how it waits; replaced by simulated time in tests."""

    now_s: Callable[[], float] = time.time
    """Seconds since the epoch; only for time stamps, since this clock may be set."""
    pause: Callable[[float], None] = time.sleep
    """Waits this many seconds."""
    steady_s: Callable[[], float] = steady_s
    """Seconds of a monotonic clock, by which all waiting goes."""

    def settles(self, fits: Callable[[], bool]) -> bool:
        """Poll for up to 10 s until the condition holds; return whether it does.

        Brokers may lag behind the controller.
        """
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
    """How much a run may do at once, and how long it waits."""

    moves_in_flight: int = 4
    """Moves in flight in the cluster."""
    leader_changes_in_flight: int = 10
    """Leader changes in flight, which copy nothing and run before the moves that copy."""
    moves_per_broker: int = 10
    """Moves in flight that involve one broker, incoming and outgoing together."""
    throttle_bytes_per_s: int | None = None
    """Bytes per second that moves may copy into a broker, and out of it, each; None
    without limit."""
    throttle_follows: bool = False
    """Whether the throttle follows what clients leave free, within `auto_throttle`."""
    auto_throttle: AutoThrottle = field(default_factory=AutoThrottle)
    disk_reserve_bytes: int = 10**9
    """Bytes that stay free on every target's disk."""
    stuck_s: float = 120.0
    """Seconds after which a move on shared storage, which copies nothing, is stuck."""
    poll_s: float = 0.15
    """Seconds between two polls of in-flight moves."""
    health_s: float = 1.0
    """Seconds between two checks of the plan's own brokers and partitions."""
    watch_s: float = 10.0
    """Seconds between two polls of every partition, including those outside the plan."""
    unreachable_s: float = 60.0
    """Seconds without an answer from the cluster that end the run."""
    disk_look_s: float = 10.0
    """Seconds between two polls of targets' free disk space."""
    stop_rules: StopRules = _RULES
    """The rules that stop or pause a run."""
    suspend_balancer: bool = False
    """Whether the run may suspend AutoMQ's own balancer."""
    lower_segments: bool = False
    """Whether the run may lower segment.bytes of topics in the remote tier."""
    tier_wait_s: float = 30.0
    """Seconds to wait until segments are in the remote tier."""

    def __post_init__(self) -> None:
        if min(self.moves_in_flight, self.moves_per_broker, self.leader_changes_in_flight) < 1:
            raise ValueError("at least one move must be allowed in flight")
        if self.throttle_bytes_per_s is not None and self.throttle_bytes_per_s < 1:
            raise ValueError("a throttle must let at least one byte per second through")

    @property
    def copy_bytes_per_s(self) -> float:
        """Bytes per second that a throttle lets into a broker, and out of it, each, at most."""
        if self.throttle_follows:
            return self.auto_throttle.most_bytes_per_s
        return self.throttle_bytes_per_s or inf
