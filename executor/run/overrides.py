"""What is set on a cluster for a run, and taken back after it."""

from collections.abc import Iterator, Sequence

from executor.client.cluster_admin import Admin
from executor.journal.run_history import PastRun
from executor.journal.run_journal import RunJournal
from executor.platforms.automq_balancer import AutoMQBalancer, RunBalancer
from executor.platforms.tiered_segments import RunSegments, SegmentSettings
from executor.run.operator_control import Steering
from executor.throttle.quota import Throttle
from executor.throttle.rates import RunRates, consumed_of
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.plan.plan import Move, Plan


class RunSettings:
    """Throttle, AutoMQ's balancer and segments of topics, as the limits want them.

    With a `past` run, what that one has left set is known.
    """

    def __init__(self, admin: Admin, limits: RunLimits, timing: Timing) -> None:
        self._admin = admin
        self._limits = limits
        self._timing = timing

    def requests(self, moves: Sequence[Move]) -> list[str]:
        """The requests that precede the moves, as text."""
        balancer = AutoMQBalancer(self._admin, self._timing).plan(moves)
        shortens = moves if self._limits.shorten_segments else ()
        return [
            *(balancer.requests() if balancer else ()),
            *SegmentSettings(self._admin, self._timing).plan(shortens).requests(),
        ]

    def rates(self, plan: Plan, limits: RunLimits) -> RunRates:
        """What a throttle is to let through."""
        return RunRates(self._admin, self._timing, limits, consumed_of(plan))

    def throttle(
        self,
        journal: RunJournal,
        rates: RunRates,
        steering: Steering,
        past: PastRun | None,
    ) -> RunThrottle:
        """The throttle of one run."""
        return RunThrottle(
            Throttle(self._admin, self._timing),
            journal,
            rates,
            self._timing,
            steering,
            past.throttled if past else None,
        )

    def balancer(self, journal: RunJournal, past: PastRun | None) -> RunBalancer:
        """AutoMQ's balancer during one run."""
        return RunBalancer(
            AutoMQBalancer(self._admin, self._timing),
            journal,
            consent=self._limits.stand_down_balancer,
            held=past.stood_down if past else None,
        )

    def segments(self, journal: RunJournal, past: PastRun | None) -> RunSegments:
        """Segments of tiered topics during one run."""
        return RunSegments(
            SegmentSettings(self._admin, self._timing),
            journal,
            consent=self._limits.shorten_segments,
            held=past.shortened if past else None,
        )

    def undo(self, journal: RunJournal, past: PastRun) -> Iterator[str]:
        """Take back what an interrupted run has left set; what it did, in words."""
        if past.throttled is not None:
            rates = self.rates(past.plan, self._limits)
            throttle = self.throttle(journal, rates, Steering(), past)
            words = throttle.end()
            yield words if throttle.stays else _with("its throttle is gone", words)
        if past.stood_down is not None:
            balancer = self.balancer(journal, past)
            words = balancer.end()
            restored = _with("AutoMQ's own balancer is restored", words)
            yield words if balancer.is_suspended else restored
        if past.shortened is not None:
            segments = self.segments(journal, past)
            words = segments.end()
            restored = _with("its topics' segments are as before", words)
            yield words if segments.stay else restored


def _with(done: str, but: str) -> str:
    return f"{done}, but {but}" if but else done
