"""Poll the whole cluster and evaluate the stop rules on it."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Final

from executor.client.cluster_admin import ClusterReads
from executor.client.responses import ClusterView, PartitionView
from executor.health.health_rules import (
    CLOSED,
    POLLS,
    BrokenStopRule,
    ClusterHealth,
    HealthRule,
    fell_below_minimum,
    health_rules,
    lost_in_sync,
    lost_leader,
    others,
)
from executor.timing import RunLimits, Timing
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.run_health import FreeDisk, RunHealth
from model.stop_rules import StopRule

_MIN_IN_SYNC: Final = "min.insync.replicas"
_CACHED_S: Final = 300.0
"""Seconds for which a topic's min.insync.replicas is cached."""
_REST_FACTOR: Final = 2
"""A poll that takes t seconds is followed by at least this many times t without one."""
_FIRST: Final = 3
"""Requests timed at the start of a run; their median is the reference."""


class ClusterMonitor:
    """Evaluates the stop rules; between two polls the last result holds. One thread uses it.

    `headroom` returns the free bytes of brokers that moves copy to.
    """

    def __init__(
        self,
        admin: ClusterReads,
        moves: Sequence[Move],
        limits: RunLimits,
        timing: Timing,
        headroom: Callable[[Sequence[Move]], Mapping[BrokerId, int]],
    ) -> None:
        self._admin = admin
        self._moves = moves
        self._limits = limits
        self._timing = timing
        self._headroom = headroom
        self._guards: dict[StopRule, HealthRule] = {}
        self._begun: ClusterHealth | None = None
        self._outside: Mapping[PartitionId, PartitionView] = {}
        self._answers_s: deque[float] = deque(maxlen=POLLS)
        self.reading: RunHealth | None = None
        """What the last poll found; None before the first."""
        self._broken: tuple[BrokenStopRule, ...] = ()
        self._next_at_s = float("-inf")
        self._min_in_sync_cache: dict[TopicName, int] = {}
        self._min_in_sync_at_s = float("-inf")

    def __call__(self, hurry: bool) -> tuple[BrokenStopRule, ...]:
        """Return the broken rules.

        `hurry`: poll at once, since something is known to be wrong. Raises as the
        cluster's calls do.
        """
        now_s = self._timing.steady_s()
        if hurry or now_s >= self._next_at_s:
            health = self._look(now_s)
            self._broken = tuple(self._judged(health))
            self.reading = self._read(health)
            end_s = self._timing.steady_s()
            rest_s = _REST_FACTOR * (end_s - now_s)
            self._next_at_s = max(now_s + self._limits.watch_s, end_s + rest_s)
        if self._limits.stop_rules.is_open(self._timing.now_s()):
            return self._broken
        return (*self._broken, BrokenStopRule(rule=StopRule.WINDOW, reason=CLOSED))

    def _judged(self, health: ClusterHealth) -> list[BrokenStopRule]:
        rules = self._limits.stop_rules
        if not self._guards:
            moving = {move.id for move in self._moves}
            self._guards = health_rules(health, moving, rules)
        found = ((rule, guard(health)) for rule, guard in self._guards.items())
        return [BrokenStopRule(rule=rule, reason=reason) for rule, reason in found if reason]

    def _read(self, health: ClusterHealth) -> RunHealth:
        """The figures behind the rules."""
        if self._begun is None:
            self._begun = health
            self._outside = others(health, {move.id for move in self._moves})
        begun = self._begun
        self._answers_s.append(health.answer_s)
        return RunHealth(
            at_ms=self._timing.now_ms(),
            answer_s=median(self._answers_s),
            first_answer_s=begun.answer_s,
            offline=len(lost_leader(self._outside, health)),
            under_replicated=len(lost_in_sync(self._outside, health)),
            under_min_isr=len(fell_below_minimum(begun.views, health)),
            disk=_least_free(begun.free_bytes, health.free_bytes),
        )

    def _look(self, now_s: float) -> ClusterHealth:
        cluster, answer_s = self._timed()
        views = self._admin.partitions()
        return ClusterHealth(
            at_s=now_s,
            alive=cluster.alive,
            views=views,
            min_in_sync=self._min_in_sync(views.values(), now_s),
            elections=self._admin.controller_elections(),
            answer_s=answer_s,
            free_bytes=self._headroom(self._moves),
        )

    def _timed(self) -> tuple[ClusterView, float]:
        """The live brokers, and the seconds the answer took (at the start, a median)."""
        took = []
        for _ in range(1 if self._guards else _FIRST):
            begun_s = self._timing.steady_s()
            cluster = self._admin.cluster()
            took.append(self._timing.steady_s() - begun_s)
        return cluster, median(took)

    def _min_in_sync(self, views: Iterable[PartitionView], now_s: float) -> Mapping[TopicName, int]:
        """min.insync.replicas of topics that lack replicas in sync; cached for 5 minutes."""
        if now_s - self._min_in_sync_at_s >= _CACHED_S:
            self._min_in_sync_cache, self._min_in_sync_at_s = {}, now_s
        lacking = {v.id.topic for v in views if not v.in_sync.issuperset(v.replicas)}
        if new := sorted(lacking - set(self._min_in_sync_cache)):
            found = self._admin.topic_configs(new, [_MIN_IN_SYNC])
            self._min_in_sync_cache |= {t: int(of.get(_MIN_IN_SYNC, 1)) for t, of in found.items()}
        return self._min_in_sync_cache


def _least_free(begun: Mapping[BrokerId, int], now: Mapping[BrokerId, int]) -> FreeDisk | None:
    """The broker with the least free space; None if none reports it."""
    if not now:
        return None
    free_bytes, broker = min((free, broker) for broker, free in now.items())
    return FreeDisk(broker=broker, free_bytes=free_bytes, first_bytes=begun.get(broker, free_bytes))
