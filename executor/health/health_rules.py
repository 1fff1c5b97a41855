"""Small rules over looks at the whole cluster, and who looks.

Only partitions that a rule found well at the first look are watched: a topic that is
made meanwhile has no leader for a moment.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from executor.client.responses import PartitionView
from model.ids import BrokerId, PartitionId, TopicName
from model.stop_rules import Rule, StopRules
from model.units import seconds_text

CLOSED: Final = "the window for moves is closed"
_MINUTE_S: Final = 60.0
_LOOKS: Final = 3
"""Answers whose median is judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenStopRule:
    """A rule that is broken."""

    rule: Rule
    reason: str
    """In words, for people."""
    is_own: bool = False
    """It is about the plan's own brokers and partitions, and cannot be left aside."""


def own(rule: Rule, reason: str | None) -> BrokenStopRule | None:
    """One about the plan itself, where there is a reason."""
    return BrokenStopRule(rule=rule, reason=reason, is_own=True) if reason else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """A cluster at one moment."""

    at_s: float
    alive: frozenset[BrokerId]
    views: Mapping[PartitionId, PartitionView]
    """Every partition."""
    min_in_sync: Mapping[TopicName, int] = field(default_factory=dict)
    """`min.insync.replicas`, of topics with partitions that are not whole."""
    elections: int | None = None
    """Of controllers so far; None where the cluster does not tell."""
    answer_s: float = 0.0
    """How long brokers took to answer a small question."""
    free_bytes: Mapping[BrokerId, int] = field(default_factory=dict)
    """Beside the reserve, of brokers that moves copy to."""


Guard = Callable[[ClusterHealth], str | None]
"""Why its rule is broken, in words; None while all is well."""

Views = Mapping[PartitionId, PartitionView]


@dataclass(frozen=True, slots=True)
class BrokersLost:
    """Brokers that served when the run began do not any more."""

    before: frozenset[BrokerId]

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        lost = sorted(self.before - health.alive)
        return f"broker {lost[0]} died or was fenced" if lost else None


@dataclass(frozen=True, slots=True)
class WentOffline:
    """A partition outside the plan lost its leader."""

    before: Views

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        pairs = _pairs(self.before, health)
        found = [now.id for was, now in pairs if was.is_led and not now.is_led]
        return _outside_plan(found, "went offline")


@dataclass(frozen=True, slots=True)
class UnderReplicatedGrew:
    """A partition outside the plan that was whole is not any more."""

    before: Views

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        pairs = _pairs(self.before, health)
        found = [now.id for was, now in pairs if _whole(was) and not _whole(now)]
        return _outside_plan(found, "lost replicas in sync")


@dataclass(frozen=True, slots=True)
class IsrShrank:
    """One that was not whole has still fewer replicas in sync."""

    before: Views

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        found = [
            now.id
            for was, now in _pairs(self.before, health)
            if not _whole(was) and len(now.in_sync) < len(was.in_sync)
        ]
        return _outside_plan(found, "lost still more replicas in sync")


@dataclass(frozen=True, slots=True)
class UnderMinIsr:
    """A partition, also one of the plan, takes no records from careful producers."""

    before: Views

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        found = [
            now.id
            for was, now in _pairs(self.before, health)
            if len(now.in_sync)
            < health.min_in_sync.get(now.id.topic, 0)
            <= len(was.in_sync)
        ]
        if not found:
            return None
        minimum = health.min_in_sync[min(found).topic]
        return f"{_named(found)} has fewer than {minimum} replicas in sync, its least"


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The controller changed twice within a minute."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        if health.elections is None:
            return None
        self.seen.append((health.at_s, health.elections))
        while health.at_s - self.seen[0][0] > _MINUTE_S:
            self.seen.popleft()
        changes = health.elections - self.seen[0][1]
        if changes < 2:
            return None
        return f"the controller changed {changes} times within a minute"


@dataclass(frozen=True, slots=True)
class SlowRequests:
    """Brokers answer far later than when the run began."""

    begun_s: float
    times: float
    least_s: float
    seen: deque[float] = field(default_factory=lambda: deque(maxlen=_LOOKS))

    def __call__(self, health: ClusterHealth) -> str | None:
        """As `Guard`."""
        self.seen.append(health.answer_s)
        now_s = median(self.seen)
        if len(self.seen) < _LOOKS or now_s < self.least_s:
            return None
        if now_s < self.times * self.begun_s:
            return None
        return (
            f"brokers take {seconds_text(now_s)} to answer, and took "
            f"{seconds_text(self.begun_s)} when the run began"
        )


def disk_is_short(health: ClusterHealth) -> str | None:
    """A target has less room than its reserve."""
    short = sorted(b for b, free in health.free_bytes.items() if free < 0)
    return f"the disk of broker {short[0]} is down to its reserve" if short else None


def guards_of(
    begun: ClusterHealth, moving: Collection[PartitionId], rules: StopRules
) -> dict[Rule, Guard]:
    """The rules, against how a cluster was when the run began."""
    beside = {pid: view for pid, view in begun.views.items() if pid not in moving}
    return {
        Rule.BROKER_LOST: BrokersLost(begun.alive),
        Rule.OFFLINE: WentOffline(beside),
        Rule.UNDER_MIN_ISR: UnderMinIsr(begun.views),
        Rule.UNDER_REPLICATED: UnderReplicatedGrew(beside),
        Rule.ISR_SHRINK: IsrShrank(beside),
        Rule.CONTROLLER_CHANGES: ControllerChanged(),
        Rule.SLOW_REQUESTS: SlowRequests(
            begun.answer_s, rules.slow_times, rules.slow_s
        ),
        Rule.DISK: disk_is_short,
    }


def _pairs(
    before: Views, health: ClusterHealth
) -> Iterator[tuple[PartitionView, PartitionView]]:
    """Partitions then and now; those that were deleted meanwhile are left out."""
    for pid, was in before.items():
        now = health.views.get(pid)
        if now is not None and now.topic_id == was.topic_id:
            yield was, now


def _whole(view: PartitionView) -> bool:
    return view.in_sync.issuperset(view.replicas)


def _named(found: Sequence[PartitionId]) -> str:
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    return f"{min(found)}{more}"


def _outside_plan(found: Sequence[PartitionId], what: str) -> str | None:
    return f"{_named(found)}, which the plan leaves alone, {what}" if found else None
