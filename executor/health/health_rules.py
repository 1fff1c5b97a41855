"""Stop rules evaluated on polls of the whole cluster.

Each rule watches only partitions that were well at the first poll: a topic created
during the run has no leader for a moment.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Final

from executor.client.responses import PartitionView
from model.ids import BrokerId, PartitionId, TopicName
from model.stop_rules import StopRule, StopRules
from model.units import seconds_text

CLOSED: Final = "the window for moves is closed"
_MINUTE_S: Final = 60.0
POLLS: Final = 3
"""Response times whose median is compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenStopRule:
    """A stop rule that is broken."""

    rule: StopRule
    reason: str
    """For people."""
    is_own: bool = False
    """Whether it concerns the plan's own brokers or partitions, so it cannot be off."""


def broken_for_plan(rule: StopRule, reason: str | None) -> BrokenStopRule | None:
    """A broken rule about the plan's own brokers or partitions; None without a reason."""
    return BrokenStopRule(rule=rule, reason=reason, is_own=True) if reason else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterHealth:
    """A poll of the whole cluster."""

    at_s: float
    alive: frozenset[BrokerId]
    views: Mapping[PartitionId, PartitionView]
    """All partitions of the cluster."""
    min_in_sync: Mapping[TopicName, int] = field(default_factory=dict)
    """`min.insync.replicas` by topic that lacks replicas in sync."""
    elections: int | None = None
    """Controller elections so far; None where the cluster does not report them."""
    answer_s: float = 0.0
    """Seconds until a small request was answered."""
    free_bytes: Mapping[BrokerId, int] = field(default_factory=dict)
    """Bytes beyond the reserve, by broker that moves copy to."""


HealthRule = Callable[[ClusterHealth], str | None]
"""Returns why the rule is broken, in words, or None."""

Views = Mapping[PartitionId, PartitionView]


def brokers_lost(before: frozenset[BrokerId], health: ClusterHealth) -> str | None:
    """Brokers that were alive when the run began no longer are."""
    lost = sorted(before - health.alive)
    return f"broker {lost[0]} died or was fenced" if lost else None


def went_offline(before: Views, health: ClusterHealth) -> str | None:
    """A partition outside the plan lost its leader."""
    return _outside_plan(lost_leader(before, health), "went offline")


def lost_leader(before: Views, health: ClusterHealth) -> list[PartitionId]:
    """Partitions that had a leader and no longer have one."""
    return [now.id for was, now in _pairs(before, health) if was.is_led and not now.is_led]


def under_replicated(before: Views, health: ClusterHealth) -> str | None:
    """A partition outside the plan that had all replicas in sync no longer has."""
    return _outside_plan(lost_in_sync(before, health), "lost replicas in sync")


def lost_in_sync(before: Views, health: ClusterHealth) -> list[PartitionId]:
    """Partitions that had all replicas in sync and no longer have."""
    return [now.id for was, now in _pairs(before, health) if _whole(was) and not _whole(now)]


def isr_shrank(before: Views, health: ClusterHealth) -> str | None:
    """A partition that already lacked replicas in sync has lost more of them."""
    found = [
        now.id
        for was, now in _pairs(before, health)
        if not _whole(was) and len(now.in_sync) < len(was.in_sync)
    ]
    return _outside_plan(found, "lost still more replicas in sync")


def under_min_isr(before: Views, health: ClusterHealth) -> str | None:
    """A partition has fallen below min.insync.replicas, so acks=all producers fail."""
    found = fell_below_minimum(before, health)
    if not found:
        return None
    minimum = health.min_in_sync[min(found).topic]
    return f"{_named(found)} has fewer than {minimum} replicas in sync, its minimum"


def fell_below_minimum(before: Views, health: ClusterHealth) -> list[PartitionId]:
    """Partitions that had `min.insync.replicas` in sync and no longer have."""
    least = health.min_in_sync
    return [
        now.id
        for was, now in _pairs(before, health)
        if len(now.in_sync) < least.get(now.id.topic, 0) <= len(was.in_sync)
    ]


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The controller changed twice within a minute."""

    seen: deque[tuple[float, int]] = field(default_factory=deque)

    def __call__(self, health: ClusterHealth) -> str | None:
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
    """Brokers answer much more slowly than when the run began."""

    begun_s: float
    limit_s: float
    seen: deque[float] = field(default_factory=lambda: deque(maxlen=POLLS))

    def __call__(self, health: ClusterHealth) -> str | None:
        self.seen.append(health.answer_s)
        now_s = median(self.seen)
        if len(self.seen) < POLLS or now_s < self.limit_s:
            return None
        return (
            f"brokers take {seconds_text(now_s)} to answer, compared with "
            f"{seconds_text(self.begun_s)} when the run began"
        )


def disk_is_short(health: ClusterHealth) -> str | None:
    """A target broker has less free disk space than its reserve."""
    short = sorted(b for b, free in health.free_bytes.items() if free < 0)
    return f"the disk of broker {short[0]} is down to its reserve" if short else None


def health_rules(
    begun: ClusterHealth, moving: Collection[PartitionId], rules: StopRules
) -> dict[StopRule, HealthRule]:
    """Return the rules, each comparing with the first poll of the run."""
    outside_plan = others(begun, moving)
    return {
        StopRule.BROKER_LOST: partial(brokers_lost, begun.alive),
        StopRule.OFFLINE: partial(went_offline, outside_plan),
        StopRule.UNDER_MIN_ISR: partial(under_min_isr, begun.views),
        StopRule.UNDER_REPLICATED: partial(under_replicated, outside_plan),
        StopRule.ISR_SHRINK: partial(isr_shrank, outside_plan),
        StopRule.CONTROLLER_CHANGES: ControllerChanged(),
        StopRule.SLOW_REQUESTS: SlowRequests(begun.answer_s, rules.slow_limit_s(begun.answer_s)),
        StopRule.DISK: disk_is_short,
    }


def others(begun: ClusterHealth, moving: Collection[PartitionId]) -> Views:
    """The partitions outside the plan, as they were when the run began."""
    return {pid: view for pid, view in begun.views.items() if pid not in moving}


def _pairs(before: Views, health: ClusterHealth) -> Iterator[tuple[PartitionView, PartitionView]]:
    """Pairs of a partition's first and present state, without deleted ones."""
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
