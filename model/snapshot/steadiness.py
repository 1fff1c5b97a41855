"""How steady the loads behind a snapshot are: the newest change, and the noise."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from model.ids import BrokerId


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """What the newest samples say about the loads of brokers."""

    newest_ms: int
    """Time of the newest sample, milliseconds since the epoch."""
    since_ms: int
    """Time of the oldest sample."""
    changed_ms: int | None
    """When the load of any broker last changed materially; None if it has not since
    `since_ms`."""
    agrees: bool
    """Whether the newest rates are as they have been since the change; False just after
    the end of a burst."""
    noise: Mapping[BrokerId, float] = field(default_factory=dict)
    """Standard error of what each broker takes in as leader, as a share of it; inf while
    there are too few samples to tell."""

    measured: bool = True
    """Whether all loads have been measured since those of their broker changed; until then, some
    are a mixture of the old and the new one."""
    unread: frozenset[BrokerId] = frozenset()
    """Leaders whose consumer groups read materially less or more than arrives: they have
    stopped, catch up, or commit rarely."""

    @property
    def level_s(self) -> float:
        """Seconds that loads have been as they are now, by the samples."""
        since_ms = self.since_ms if self.changed_ms is None else self.changed_ms
        return (self.newest_ms - since_ms) / 1000
