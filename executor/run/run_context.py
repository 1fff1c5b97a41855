"""What one run works with; the executor assembles it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executor.health.health_rules import BrokenStopRule
from executor.journal.run_history import PastRun
from executor.journal.run_journal import RunJournal
from executor.platforms.platform import Platform
from executor.run.operator_control import Steering
from executor.run.overrides import RunOverrides
from executor.schedule.estimate import EtaEstimator
from executor.timing import RunLimits, Timing
from model.ids import BrokerId
from model.plan.plan import Move, Plan
from model.plan.signatures import Signature
from model.run import RunProgress
from model.run_health import RunHealth
from model.snapshot.snapshot import StorageKind


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """A plan, its limits, its journal, and the means to execute it. One thread uses it.

    With `past`, an earlier run of the same plan and journal, the run resumes that one.
    """

    plan: Plan
    limits: RunLimits
    timing: Timing
    journal: RunJournal
    steering: Steering
    observe: Callable[[RunProgress], None]
    """Receives the run after each change."""
    platforms: Mapping[StorageKind, Platform]
    check: Callable[[Sequence[Move]], None]
    """Raises PlanOutdated or GuardrailRefused where these moves do not fit the cluster."""
    overrides: RunOverrides
    headroom: Callable[[Sequence[Move], Sequence[Move]], Mapping[BrokerId, int]]
    """Free bytes per broker for the moves of a plan, given those in flight."""
    monitor: Callable[[bool], Sequence[BrokenStopRule]]
    """Broken stop rules of the whole cluster; True asks for an immediate poll."""
    eta: EtaEstimator
    reading: Callable[[], RunHealth | None] = lambda: None
    """What the last poll of the whole cluster found."""
    past: PastRun | None = None
    signature: Signature | None = None
    """Who signed the plan, where signatures are required."""
    dead: frozenset[BrokerId] = frozenset()
    """Brokers that were dead when planned; what has not left one that returns stays there."""

    def by_platform(self, moves: Sequence[Move]) -> Iterator[tuple[Platform, list[Move]]]:
        """Group moves by the platform that executes them."""
        for kind, platform in self.platforms.items():
            if group := [move for move in moves if move.storage is kind]:
                yield platform, group
