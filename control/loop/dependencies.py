"""Settings of the loop, the parts it drives, and the interfaces of these."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol

from control.cli.console import operator
from control.loop.view import Mode
from control.planning.background_call import InBackground, in_thread
from control.planning.planner import Planner
from control.settings.auto_limits import AutoLimits
from control.settings.auto_policy import AutoPolicy
from control.settings.schedule_table import ScheduleTable
from control.settings.screen_settings import ScreenSettings
from control.settings.trigger_table import TriggerTable
from executor.run.operator_control import Steering
from executor.timing import steady_s
from model.errors import PlimsollError
from model.goals.effort import Effort
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, TopicName
from model.plan.plan import Plan
from model.run import RunProgress, RunReport
from model.snapshot.consumer_lag import ConsumerLag
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, RecentMove, Snapshot
from model.snapshot.steadiness import Steadiness
from model.stop_rules import StopRules

if TYPE_CHECKING:
    from control.loop.policy import Decision, DecisionInputs
    from control.service.auto_watch import AutoWatch
    from control.tasks.operator_tasks import OperatorTasks
    from executor.journal.run_history import RunUsage
    from executor.schedule.estimate import Forecast
    from solver.report.result import Result


@dataclass(frozen=True, kw_only=True)
class LoopSettings:
    """Settings of the loop; the same for every front end."""

    bootstrap: str
    operator: str = field(default_factory=operator)
    """User name, for the log."""
    name: str | None
    """Name of the cluster; None shows the start of its id."""
    mode: Mode
    goals: Goals
    solve: SolveLimits
    """As configured: limits that are set hold at every effort (`limits_at`)."""
    effort: Effort = Effort.GOOD
    """How far plans go."""
    limits: AutoLimits
    triggers: TriggerTable = field(default_factory=TriggerTable)
    """What `--auto` does about each reason for a plan."""
    schedule: ScheduleTable = field(default_factory=ScheduleTable)
    """When `--auto` may start runs."""
    journal_dir: Path
    decisions_dir: Path | None = None
    """Where `--auto` records its decisions; None for nowhere."""
    resume: bool = False
    """Resume the run that was interrupted last, if there is one, before anything else begins."""
    patient: bool = False
    """Retry when the first connection fails, as the screen and the service do."""
    tick_s: float = 0.5
    dead_broker_after_s: float = 3600.0
    """How long `--auto` waits for a dead broker before it moves its replicas; inf:
    for ever. Plans for an operator do not wait."""
    throttle: int | Literal["auto"] | None = None
    """Throttle of each broker and direction at the start of a run, bytes/s."""
    stop_rules: StopRules = field(default_factory=StopRules)
    screen: ScreenSettings = field(default_factory=ScreenSettings)
    keys: Mapping[str, str] = field(default_factory=dict)
    """Keys of the screen by action id."""

    @property
    def policy(self) -> AutoPolicy:
        """The policy that the loop begins with."""
        return AutoPolicy(
            limits=self.limits,
            triggers=self.triggers,
            dead_broker_after_s=self.dead_broker_after_s,
            stop_rules=self.stop_rules,
            schedule=self.schedule,
            goals=self.goals,
            effort=self.effort,
        )


class Observer(Protocol):
    """Observe one cluster in the background."""

    def start(self) -> None:
        """Start observing; return at once."""

    def brokers(self) -> tuple[Broker, ...]:
        """Brokers in the metadata; empty before the first response."""
        ...

    def replication(self) -> Replication | None:
        """Under-replicated and offline partitions; None before the first response."""
        ...

    def slow(self) -> Mapping[BrokerId, str]:
        """Brokers that answer much later than the others, for minutes, with the times in words."""
        ...

    def snapshot(self) -> Snapshot | None:
        """Newest snapshot; None before loads are known."""
        ...

    def steadiness(self) -> Steadiness | None:
        """How steady the loads of that snapshot are; None where that is not known."""
        ...

    def ahead_s(self) -> float:
        """Seconds by which the newest samples are ahead of the clock, if none of them counts for
        that reason; else 0."""
        ...

    def consumer_lag(self, topics: Collection[TopicName]) -> ConsumerLag | None:
        """Lag of the consumer groups of these topics; None if none has committed."""
        ...

    @property
    def failure(self) -> PlimsollError | None:
        """Error that ended the observation; None while it continues."""
        ...

    def close(self) -> None:
        """Stop observing and release all resources."""


class RunExecutor(Protocol):
    """Execute plans on the cluster; every method may raise PlimsollError."""

    def execute(
        self,
        plan: Plan,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
        check: Callable[[], None] | None = None,
    ) -> RunReport:
        """Execute exactly this plan; `steering` may end it early.

        check: called once the journals of all machines are here, before anything is changed;
        may raise.
        """
        ...

    def resume(
        self,
        *,
        journal_dir: Path,
        moves_in_flight: int,
        observe: Callable[[RunProgress], None],
        steering: Steering,
    ) -> RunReport:
        """Resume the most recent run on the cluster."""
        ...


class PlanExecutor(RunExecutor, Protocol):
    """Execute and undo plans on the cluster; every method may raise PlimsollError."""

    def plan_rollback(self, journal_dir: Path, run_id: str | None) -> tuple[Plan, list[str]]:
        """Return the plan that undoes a run, and what it cannot undo, in words."""
        ...

    def clean_up(self, journal_dir: Path, *, idle: bool = False) -> list[str]:
        """Restore settings that runs left on the cluster; return one line for each.

        idle: only while no partition is being moved.
        """
        ...

    def forecast(
        self, plan: Plan, journal_dir: Path, moves_in_flight: int | None = None
    ) -> "Forecast":
        """Estimate duration and traffic of a plan."""
        ...

    def rebalancers(self, *, shared: bool) -> tuple[str, ...]:
        """Competing rebalancers, one sentence each.

        shared: whether the plan moves partitions on shared storage.
        """
        ...

    def dry_run(self, plan: Plan, journal_dir: Path | None = None) -> Sequence[str]:
        """Check the plan as before a run, and list the requests it would send."""
        ...

    def close(self) -> None:
        """Close the connection."""


class WorkInterrupted(Exception):
    """The loop ends, or a person stops the work on a task; another process may continue it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSite:
    """What the loop offers to the work on a task."""

    snapshot: Snapshot
    """Of the cluster just now."""
    observe: Callable[[], Snapshot]
    """Wait for a snapshot whose loads were all measured after the call; raises WorkInterrupted."""
    steering: Steering
    """May end a run of the task early."""
    watch: Callable[[RunProgress], None]
    """Receives the progress of runs."""
    say: Callable[[str], None]
    """Writes a sentence to the log."""
    planned: Callable[[str], None] = lambda _plan_hash: None
    """Is passed the hash of the task's newest plan; empty for none."""
    moves_in_flight: int


class OpenTask(Protocol):
    """A task on brokers that a person has approved, and that no process works on."""

    @property
    def title(self) -> str:
        """The task in words: `task remove-1 (remove broker 4)`."""
        ...

    @property
    def by(self) -> str:
        """Who approved it."""
        ...

    def work(self, site: TaskSite) -> str:
        """Work on it to its end; how it ended, in words. Raises PlimsollError."""
        ...


class OpenTasks(Protocol):
    """The tasks on brokers, of which the loop continues those that no process works on."""

    def next(self, cluster_id: str) -> OpenTask | None:
        """The oldest that may be continued now; may take a while. Raises PlimsollError."""
        ...


class RunRecords(Protocol):
    """What earlier runs did on a cluster, by its id and since a time in ms since the epoch."""

    def moves_since(self, cluster_id: str, since_ms: int) -> tuple[RecentMove, ...]:
        """Moves, oldest first."""
        ...

    def usage_since(self, cluster_id: str, since_ms: int) -> "tuple[RunUsage, ...]":
        """What runs used of the limits per day, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class JournalledRuns:
    """What the journals in a folder have recorded; ConfigError where one is unreadable."""

    journal_dir: Path

    def moves_since(self, cluster_id: str, since_ms: int) -> tuple[RecentMove, ...]:
        """As `RunRecords` has it."""
        from executor.journal.run_history import recent_moves

        return recent_moves(self.journal_dir, cluster_id, since_ms)

    def usage_since(self, cluster_id: str, since_ms: int) -> "tuple[RunUsage, ...]":
        """As `RunRecords` has it."""
        from executor.journal.run_history import usage_since

        return usage_since(self.journal_dir, cluster_id, since_ms)


@dataclass(frozen=True, kw_only=True)
class LoopParts:
    """Parts that the loop drives; the real ones and those of tests fit."""

    observer: Callable[[], Observer]
    """Create an observer; called again after a lost connection."""
    planner: Planner
    executor: Callable[[], PlanExecutor] | None
    """Connect the only object that changes the cluster; None when read-only."""
    clock: Callable[[], float] = time.time
    """Seconds since the epoch; for timestamps only, since this clock may be set."""
    new_policy: Callable[[AutoPolicy, Callable[[str], None]], AutoPolicy | None] | None = None
    """The policy, if it was changed since the last call; it is passed the one in force, and what
    writes a warning to the log. None where it never changes."""
    steady: Callable[[], float] = steady_s
    """Seconds of a clock that is never set; all waiting uses it."""
    background: InBackground = in_thread
    """Where solves and runs happen."""
    records: RunRecords | None = None
    """What earlier runs did; None reads the journals."""
    tasks: OpenTasks | None = None
    """The tasks that `--auto` continues; None for none."""
    operator_tasks: "OperatorTasks | None" = None
    """The tasks on brokers, for a person at a screen; None where there are none."""
    auto_watch: "AutoWatch | None" = None
    """What another process decides about the cluster, for the same; None where none can."""
    decided: "Callable[[DecisionInputs, Decision, str], None] | None" = None
    """Called with every decision and its reason, by the loop's thread."""
    beat: Callable[[], None] | None = None
    """Called by the loop's thread with every turn, and every `BEAT_S` while it waits to
    reconnect; a loop that hangs does not call it."""
    failed: Callable[[PlimsollError], None] | None = None
    """Called with every error after which the loop tries again, from any of its threads."""
    modelled: Callable[[float], None] | None = None
    """Called by the loop's thread with the seconds that it took to model the cluster from new
    loads: with recent moves and slow brokers, and with the loads and deviations of brokers."""
    stands_by: Callable[[], str] | None = None
    """Why nothing may be changed, since another process leads or nobody can know; empty while this
    one leads. None where there is no other. Any thread may call it."""
    signed: Callable[[str], object] | None = None
    """Raises GuardrailRefused where the plan with this hash lacks a signature; None where none is
    required. Then the limits of `--auto` approve nothing. Any thread may call it."""


@dataclass(frozen=True, kw_only=True)
class LoopWatcher:
    """Those parts of a loop that hear what it does or keep it from it; None for none."""

    decided: "Callable[[DecisionInputs, Decision, str], None] | None" = None
    beat: Callable[[], None] | None = None
    failed: Callable[[PlimsollError], None] | None = None
    modelled: Callable[[float], None] | None = None
    stands_by: Callable[[], str] | None = None
    """As in `LoopParts`."""
    solved: "Callable[[Result], None] | None" = None
    """Hears of the plans of tasks on brokers."""


UNWATCHED: Final = LoopWatcher()
