"""How long brokers have been dead, and how stable the set of live brokers is."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from model.ids import BrokerId
from model.snapshot.snapshot import Broker, BrokerState
from model.units import seconds_text

FIRST_QUIET_S: Final = 5.0
"""Time without a change that counts as stable, after one change."""
MOST_QUIET_S: Final = 300.0
REMEMBERED_S: Final = 600.0
"""Older changes do not count."""
_MOST_CHANGES: Final = 16
"""Changes kept: more of them would not make the wait longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """History of the brokers. Times are seconds of a clock that is never set."""

    live: frozenset[BrokerId] | None = None
    """None before the first poll."""
    dead_since: Mapping[BrokerId, float] = field(default_factory=dict)
    changes: tuple[float, ...] = ()
    """Recent times when a live broker joined or left, oldest first."""

    def seen(self, brokers: Iterable[Broker], now_s: float) -> "Membership":
        """The history after another poll."""
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
        """Brokers dead for at least `after_s` seconds; none where that is inf."""
        since = self.dead_since.items()
        return frozenset(b for b, at in since if now_s - at >= after_s)

    def awaited(
        self,
        holding: Collection[BrokerId],
        after_s: float,
        now_s: float,
        then: str = "its replicas are moved",
    ) -> str:
        """Sentence on the dead broker of `holding` that is waited for longest.

        then: what follows. Empty if none is waited for, or all of them for ever.
        """
        waits = self.waits(holding, after_s, now_s)
        left_s, last = max(((wait_s, b) for b, wait_s in waits.items()), default=(0.0, None))
        if last is None:
            return ""
        return (
            f"broker {last} is dead; {then} in {seconds_text(math.ceil(left_s))} unless it returns"
        )

    def waits(
        self, holding: Collection[BrokerId], after_s: float, now_s: float
    ) -> dict[BrokerId, float]:
        """Seconds until each dead broker of `holding` is given up.

        Without those that are, or never will be.
        """
        left = {b: self.dead_since[b] + after_s - now_s for b in holding if b in self.dead_since}
        return {b: left_s for b, left_s in left.items() if 0 < left_s < math.inf}

    def quiet_in_s(self, now_s: float) -> float:
        """Seconds until brokers count as stable; doubles with each recent change."""
        if not self.changes:
            return 0.0
        quiet_s = min(MOST_QUIET_S, FIRST_QUIET_S * 2.0 ** (len(self.changes) - 1))
        return max(0.0, self.changes[-1] + quiet_s - now_s)
