"""How long brokers have been dead, and how steady the set of live brokers is."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState
from model.units import seconds_text

NEVER: Final = math.inf
"""A broker is never given up."""
FIRST_QUIET_S: Final = 5.0
"""Time without a change after one broker came or went."""
MOST_QUIET_S: Final = 300.0
REMEMBERED_S: Final = 600.0
"""Changes further back do not count."""
_MOST_CHANGES: Final = 16
"""Changes kept: with more, the time to wait is no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What was seen of the brokers so far. Times are of the steady clock, seconds."""

    live: frozenset[BrokerId] | None = None
    """None before the first look."""
    dead_since: Mapping[BrokerId, float] = field(default_factory=dict)
    changes: tuple[float, ...] = ()
    """When live brokers came or went lately, the oldest first."""

    def seen(self, brokers: Iterable[Broker], now_s: float) -> "Membership":
        """The same after another look."""
        brokers = tuple(brokers)
        dead = {b.id for b in brokers if b.state is BrokerState.DEAD}
        live = frozenset(b.id for b in brokers) - dead
        changes = self.changes
        if self.live is not None and live != self.live:
            changes = (*changes, now_s)[-_MOST_CHANGES:]
        return replace(
            self,
            live=live,
            dead_since={b: self.dead_since.get(b, now_s) for b in sorted(dead)},
            changes=tuple(at for at in changes if now_s - at < REMEMBERED_S),
        )

    def given_up(self, after_s: float, now_s: float) -> frozenset[BrokerId]:
        """Brokers that have been dead for at least so long; none where it is inf."""
        since = self.dead_since.items()
        return frozenset(b for b, at in since if now_s - at >= after_s)

    def awaited(
        self, holding: Collection[BrokerId], after_s: float, now_s: float
    ) -> str:
        """Which of these dead brokers may return yet; empty if none is waited for."""
        left = [
            (self.dead_since[b] + after_s - now_s, b)
            for b in sorted(holding)
            if b in self.dead_since
        ]
        last = max((s, b) for s, b in [*left, (0.0, BrokerId(-1))] if s < NEVER)
        if last[0] <= 0:
            return ""
        return (
            f"broker {last[1]} is dead; its replicas are moved in "
            f"{seconds_text(math.ceil(last[0]))} unless it returns"
        )

    def quiet_in_s(self, now_s: float) -> float:
        """Time until brokers count as steady: doubles with each change lately."""
        if not self.changes:
            return 0.0
        quiet_s = min(MOST_QUIET_S, FIRST_QUIET_S * 2.0 ** (len(self.changes) - 1))
        return max(0.0, self.changes[-1] + quiet_s - now_s)
