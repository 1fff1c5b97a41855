"""Settings that a run overrides on a cluster, and restores after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.journal.journal_access import JournalAccess
from executor.journal.run_history import PastRun, left_set
from executor.journal.run_journal import RunJournal
from executor.platforms.automq_balancer import AutoMQBalancer, BalancerReads, RunBalancer
from executor.platforms.tiered_segments import RunSegmentSettings, SegmentReads, SegmentSettings
from executor.run.operator_control import Steering
from executor.throttle.quota import ClusterThrottle, ThrottleSettings
from executor.throttle.rates import RunRates, consumed_of
from executor.throttle.run_throttle import RunThrottle
from executor.timing import RunLimits, Timing
from model.errors import PlimsollError
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
        every = (self.throttle, self.balancer, self.segments)
        return any(override.held is not None for override in every)

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


def override_requests(reads: ClusterReads, limits: RunLimits, moves: Sequence[Move]) -> list[str]:
    """The requests that precede the moves of a run, as text."""
    balancer = BalancerReads(reads).plan(moves)
    affected = moves if limits.lower_segments else ()
    return [
        *(balancer.requests() if balancer else ()),
        *SegmentReads(reads).plan(affected).requests(),
    ]


@dataclass(frozen=True, slots=True)
class ClusterOverrides:
    """Makes the overrides of runs on one cluster, as the limits demand."""

    admin: ClusterAdmin
    limits: RunLimits
    timing: Timing

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

    def clean_up(self, journals: JournalAccess, journal_dir: Path, cluster_id: str) -> list[str]:
        """Restore what the journals say is still set, by the newest run first; say what was done.

        What a run found set may be what an older run has left.
        """
        done = []
        newer: list[ThrottleSettings] = []
        """Some of these may be in force in place of what an older run has set."""
        for past in reversed(left_set(journal_dir, cluster_id)):
            if past.throttled is not None:
                held = reduce(ThrottleSettings.with_newer, reversed(newer), past.throttled)
                newer.append(past.throttled)
                past = replace(past, throttled=held)
            restored = "; ".join(self._restored(journals, journal_dir, past))
            done += [f"run {past.run_id}: {restored}"] if restored else []
            done += [f"run {past.run_id}: {warning}" for warning in past.warnings]
        return done

    def _restored(self, journals: JournalAccess, journal_dir: Path, past: PastRun) -> Iterator[str]:
        """What was done for one run, in words; an error does not stop the others."""
        try:
            with journals.opened(journal_dir, past.plan, past.run_id, resumed=True) as journal:
                yield from self._restore(journal, past)
            if journal.problem:
                yield (
                    f"its journal cannot record that ({journal.problem}); make "
                    f"{journal.path} writable and repeat plimsoll cleanup"
                )
        except PlimsollError as exc:
            yield str(exc)

    def _restore(self, journal: RunJournal, past: PastRun) -> Iterator[str]:
        """Restore what an interrupted run has left set; yield what was done."""
        rates = self.rates(past.plan, self.limits)
        of = self.of_run(journal, rates, Steering(), past)
        for held, override, done in (
            (past.throttled, of.throttle, "its throttle is gone"),
            (past.suspended_balancer, of.balancer, "AutoMQ's own balancer is restored"),
            (past.lowered_segments, of.segments, "its topics' segments are as before"),
        ):
            if held is not None:
                left = override.end()
                gone = f"{done}, but {left}" if left else done
                yield gone if override.held is None else left
