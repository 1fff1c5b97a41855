"""Settings that a run overrides on a cluster, and restores after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from executor.client.cluster_admin import ClusterAdmin
from executor.journal.run_history import PastRun
from executor.journal.run_journal import RunJournal
from executor.platforms.automq_balancer import AutoMQBalancer, RunBalancer
from executor.platforms.tiered_segments import RunSegmentSettings, SegmentSettings
from executor.run.operator_control import Steering
from executor.throttle.quota import ClusterThrottle
from executor.throttle.rates import RunRates, consumed_of
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.plan.plan import Move, Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOverrides:
    """The throttle, AutoMQ's balancer and the topics' segments during one run."""

    throttle: RunThrottle
    balancer: RunBalancer
    segments: RunSegmentSettings

    @property
    def remain(self) -> bool:
        """Whether any of them is set and not restored."""
        return any((self.throttle.is_set, self.balancer.is_suspended, self.segments.are_lowered))

    def lift(self) -> str:
        """Restore all of them; return what is left or not ours, in words."""
        left: list[str] = []
        try:
            left.append(self.throttle.end())
        finally:
            try:
                left.append(self.balancer.end())
            finally:
                left.append(self.segments.end())
        return "; ".join(filter(None, left))


@dataclass(frozen=True, slots=True)
class ClusterOverrides:
    """Makes the overrides of runs on one cluster, as the limits demand."""

    admin: ClusterAdmin
    limits: RunLimits
    timing: Timing

    def requests(self, moves: Sequence[Move]) -> list[str]:
        """The requests that precede the moves, as text."""
        balancer = AutoMQBalancer(self.admin, self.timing).plan(moves)
        affected = moves if self.limits.lower_segments else ()
        return [
            *(balancer.requests() if balancer else ()),
            *SegmentSettings(self.admin, self.timing).plan(affected).requests(),
        ]

    def rates(self, plan: Plan, limits: RunLimits) -> RunRates:
        """The rates of a throttle."""
        return RunRates(self.admin, self.timing, limits, consumed_of(plan))

    def of_run(
        self, journal: RunJournal, rates: RunRates, steering: Steering, past: PastRun | None
    ) -> RunOverrides:
        """The overrides of one run; those that `past` has left set are taken over."""
        admin, timing, limits = self.admin, self.timing, self.limits
        return RunOverrides(
            throttle=RunThrottle(
                ClusterThrottle(admin, timing),
                journal,
                rates,
                timing,
                steering,
                past.throttled if past else None,
            ),
            balancer=RunBalancer(
                AutoMQBalancer(admin, timing),
                journal,
                consent=limits.suspend_balancer,
                held=past.suspended_balancer if past else None,
            ),
            segments=RunSegmentSettings(
                SegmentSettings(admin, timing),
                journal,
                consent=limits.lower_segments,
                held=past.lowered_segments if past else None,
            ),
        )

    def restore(self, journal: RunJournal, past: PastRun) -> Iterator[str]:
        """Restore what an interrupted run has left set; yield what was done."""
        rates = self.rates(past.plan, self.limits)
        of = self.of_run(journal, rates, Steering(), past)
        if past.throttled is not None:
            left = of.throttle.end()
            yield left if of.throttle.is_set else _but("its throttle is gone", left)
        if past.suspended_balancer is not None:
            left, done = of.balancer.end(), "AutoMQ's own balancer is restored"
            yield left if of.balancer.is_suspended else _but(done, left)
        if past.lowered_segments is not None:
            left, done = of.segments.end(), "its topics' segments are as before"
            yield left if of.segments.are_lowered else _but(done, left)


def _but(done: str, left: str) -> str:
    return f"{done}, but {left}" if left else done
