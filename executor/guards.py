"""What ends a run early: small rules over a look at the whole cluster."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from executor.admin import Admin
from executor.timing import RunLimits, Timing
from model.ids import BrokerId, PartitionId
from model.plan import Move


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """A cluster at one moment, apart from the partitions that a run moves."""

    alive: frozenset[BrokerId]
    offline: frozenset[PartitionId]
    """Led by nobody."""
    under_replicated: frozenset[PartitionId]
    """With replicas that are not in sync."""


Guard = Callable[[Health], str | None]
"""A reason to start nothing further, in words; None while all is well."""


@dataclass(frozen=True, slots=True)
class BrokersLost:
    """Brokers that served when the run began do not any more."""

    before: frozenset[BrokerId]

    def __call__(self, health: Health) -> str | None:
        """As `Guard`."""
        lost = sorted(self.before - health.alive)
        return f"broker {lost[0]} died or was fenced" if lost else None


@dataclass(frozen=True, slots=True)
class WentOffline:
    """A partition outside the plan lost its leader."""

    before: frozenset[PartitionId]

    def __call__(self, health: Health) -> str | None:
        """As `Guard`."""
        return _named(health.offline - self.before, "went offline")


@dataclass(frozen=True, slots=True)
class UnderReplicatedGrew:
    """Partitions outside the plan have fewer replicas in sync than before."""

    before: frozenset[PartitionId]

    def __call__(self, health: Health) -> str | None:
        """As `Guard`."""
        grown = health.under_replicated - self.before
        return _named(grown, "lost replicas in sync")


def guards_of(begun: Health) -> tuple[Guard, ...]:
    """The rules, against how a cluster was when the run began."""
    return (
        BrokersLost(begun.alive),
        WentOffline(begun.offline),
        UnderReplicatedGrew(begun.under_replicated),
    )


class Watch:
    """Looks at the whole cluster now and then, and asks the rules."""

    def __init__(
        self, admin: Admin, moves: Sequence[Move], limits: RunLimits, timing: Timing
    ) -> None:
        self._admin = admin
        self._moving = {move.id for move in moves}
        self._limits = limits
        self._timing = timing
        self._guards: tuple[Guard, ...] = ()
        self._seen_at_s = float("-inf")

    def __call__(self) -> str | None:
        """The first reason found. Raises as the cluster's calls do."""
        now_s = self._timing.now_s()
        if now_s - self._seen_at_s < self._limits.watch_s:
            return None
        health = self._look()
        self._seen_at_s = now_s
        self._guards = self._guards or guards_of(health)
        return next((why for guard in self._guards if (why := guard(health))), None)

    def _look(self) -> Health:
        ids = {
            PartitionId(topic, number)
            for topic, count in self._admin.topics().items()
            for number in range(count)
        }
        views = self._admin.partitions(ids - self._moving).values()
        return Health(
            alive=self._admin.cluster().alive,
            offline=frozenset(v.id for v in views if not v.is_led),
            under_replicated=frozenset(
                v.id for v in views if not v.in_sync.issuperset(v.replicas)
            ),
        )


def _named(found: Collection[PartitionId], what: str) -> str | None:
    if not found:
        return None
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{min(found)}{more}, which the plan leaves alone, {what}"
