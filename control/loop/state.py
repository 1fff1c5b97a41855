"""State of the loop between two polls of the cluster."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from control.loop.membership import Membership
from control.loop.oscillation import Oscillation
from control.loop.override import AutoRun
from control.loop.policy import Decision
from control.loop.run_lag import RunLag
from control.loop.view import Phase, Retry
from control.planning.backoff import Backoff
from control.planning.min_isr_watch import MinIsrWatch
from control.planning.plan_inputs import SolvedInputs
from control.planning.plan_needs import PlanNeed, Reason
from control.settings.trigger_table import Trigger
from model.errors import PlimsollError
from model.evaluate import Evaluation
from model.ids import BrokerId
from model.run import RunProgress, RunReport
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Snapshot
from model.snapshot.steadiness import Steadiness

if TYPE_CHECKING:
    from executor.journal.run_history import RunUsage

FIRST_RETRY_S: Final = 10.0
"""Time `--auto` waits after a failure; doubles with each further one."""
MOST_RETRY_S: Final = 1800.0
REPORTS: Final = 20
"""Reports kept in memory; the journals have all runs."""


@dataclass
class LoopState:
    """What the loop has observed and done; the loop's lock guards it."""

    phase: Phase = Phase.CONNECTING
    message: str = "waiting for the first response of the cluster"
    reconsidered: str = ""
    """When the decision of `--auto` is reconsidered, in words; empty without one."""
    ruled: tuple[Decision, str, str] | None = None
    """That decision, the rule that holds it back, and what tells its reason from others."""
    held_up: str = ""
    """As `Loop.held_up`."""
    brokers: tuple[Broker, ...] = ()
    slow: Mapping[BrokerId, str] = field(default_factory=dict)
    """As the observer has it; empty where no trigger asks."""
    replication: Replication | None = None
    retry: Retry | None = None
    seen: Snapshot | None = None
    """Newest snapshot of the observer, to recognise a newer one."""
    seen_at_s: float = 0.0
    """When it came, by the clock of the times below."""
    ahead_s: float = 0.0
    """How far it was ahead of the clock then, seconds."""
    left_out_ahead_s: float = 0.0
    """The same of the samples that the observer leaves out now, as the observer has it."""
    snapshot: Snapshot | None = None
    """The same with the recent moves of the journal."""
    evaluation: Evaluation | None = None
    steadiness: Steadiness | None = None
    """How steady the observer's newest loads are."""
    planned_at_s: float | None = None
    """When the newest plan of `--auto` was requested, by the clock of the times below."""
    loads_from_s: float = 0.0
    """As in `DecisionInputs`, by the same clock, as are the times below."""
    membership: Membership = field(default_factory=Membership)
    min_isr: MinIsrWatch = field(default_factory=MinIsrWatch)
    needs: tuple[PlanNeed, ...] = ()
    """Why the cluster needs a plan."""
    needed_since_s: dict[Reason, float] = field(default_factory=dict)
    """Since when, by reason."""
    was_balanced: bool = False
    made_for: frozenset[Trigger] | None = None
    """As in `DecisionInputs`, as is the next."""
    held: frozenset[Trigger] = frozenset()
    answered: SolvedInputs | None = None
    """Inputs of the planner's newest result."""
    failures: Backoff = field(
        default_factory=lambda: Backoff(first_s=FIRST_RETRY_S, most_s=MOST_RETRY_S)
    )
    """Failures of `--auto` since the last complete run."""
    failure: PlimsollError | None = None
    """The last of them."""
    day: "tuple[RunUsage, ...]" = ()
    """Runs of the last 24 hours, where limits per day count them."""
    auto_run: AutoRun | None = None
    """The run that `--auto` approved last, until it ends."""
    executing: str | None = None
    """Hash of the plan of the run or task in progress, empty before it has one; None without."""
    overridden_by: Trigger | None = None
    """The trigger that interrupted the last run: it does not wait for the pause."""
    oscillation: Oscillation = field(default_factory=Oscillation)
    run: RunProgress | None = None
    lag: RunLag | None = None
    """Lag of the topics that the run moves."""
    ended_at_s: float | None = None
    copied_at_s: float | None = None
    """When partitions were last seen to be moved outside of a run."""
    reports: deque[RunReport] = field(default_factory=lambda: deque(maxlen=REPORTS))
    rebalancers: tuple[str, ...] = ()
    """Competing rebalancers, one sentence each."""
