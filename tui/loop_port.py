"""The part of the loop that the screen uses, as protocols."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from control.loop.dependencies import LoopSettings, OpenTask
from control.loop.view import LoopView
from control.planning.plan_overrides import PlanOverrides
from control.service.auto_watch import AutoSeen
from control.tasks.broker_task import Operation
from control.tasks.task_listing import TaskListing
from control.tasks.task_request import NamedBrokers
from executor.journal.journal_replay import Replay
from executor.journal.run_history import PastRun
from executor.run.operator_control import Steering
from executor.schedule.estimate import Forecast
from model.ids import BrokerId
from model.plan.plan import Plan
from model.run import RunReport
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import Scenario

if TYPE_CHECKING:
    from control.tasks.operator_tasks import ProposedTask, ResumedTask


class Asking(Protocol):
    """Requests about plans; `control.planning.planner_thread.Proposals` takes them.

    A request that does not apply to the cluster as it is raises ConfigError.
    """

    def ask(self, asks: PlanOverrides) -> None:
        """Make a new plan that follows these requests."""

    def undo(self) -> None:
        """Restore the plan from before the last request."""

    def use_best(self) -> None:
        """End the search in progress with the best plan so far."""

    def trace(self) -> None:
        """Trace the frontier."""

    def choose(self, point: int) -> None:
        """Make the plan at this point of the frontier the current plan."""

    def suppose(self, scenario: Scenario | None) -> None:
        """Plan a what-if scenario; None ends it."""


class PreviousRunsPort(Protocol):
    """Previous runs; `control.loop.previous_runs.PreviousRuns` is one.

    Refusals are PlimsollError.
    """

    @property
    def interrupted(self) -> PastRun | None:
        """The most recent run, if it was interrupted."""
        ...

    def runs(self) -> tuple[PastRun, ...]:
        """Return the latest runs on the cluster, newest first; reads their journals."""
        ...

    def replay(self, run_id: str) -> Replay:
        """Read a run's journal: its state after each record."""
        ...

    def resume(self, by: str) -> None:
        """Resume the most recent run."""

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """Return a run's rollback plan, and what it leaves alone; asks the cluster."""
        ...

    def roll_back(self, plan: Plan, by: str) -> None:
        """Execute exactly this rollback plan."""


class TasksPort(Protocol):
    """The tasks on brokers; `control.tasks.operator_tasks.OperatorTasks` is one.

    Its methods read files and the archive, so none is for the thread that draws. Refusals are
    PlimsollError.
    """

    def listing(self, cluster_id: str) -> TaskListing:
        """Read the tasks of a cluster."""
        ...

    def cancel(self, task_id: str, by: str) -> str:
        """Cancel an open task: a run of it stops, and what has moved stays.

        Returns what became of its cordons, in sentences.
        """
        ...

    def proposed(
        self,
        operation: Operation,
        named: NamedBrokers,
        snapshot: Snapshot,
        by: str,
        onto: int | None = None,
    ) -> "ProposedTask":
        """Plan what a person asks for; nothing is stored. Takes as long as a plan.

        onto: the broker that replaces another.
        """
        ...

    def request(self, proposed: "ProposedTask", by: str) -> "ResumedTask":
        """Store a task with its plan, which `by` approves; what then works on it."""
        ...

    def markable(
        self, named: NamedBrokers, snapshot: Snapshot, *, excluded: bool
    ) -> tuple[BrokerId, ...]:
        """Ids of the brokers that can be excluded, or included."""
        ...

    def exclude(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Keep new replicas away from brokers; what became of their cordons, in sentences."""
        ...

    def include(self, cluster_id: str, brokers: Sequence[BrokerId], by: str) -> str:
        """Let brokers take new replicas again; what became of their cordons, in sentences."""
        ...

    def waiting_plan(self, task_id: str) -> Plan | None:
        """The plan of a task that waits for its approval, if one does."""
        ...

    def resumed(self, task_id: str, by: str, approved: str = "") -> OpenTask:
        """A task to be worked on; approved: the hash of the plan that `by` approves."""
        ...


class AutoWatchPort(Protocol):
    """What `run --auto` decides in another process; `control.service.auto_watch.AutoWatch` is one.

    Its methods read files, so none is for the thread that draws. Refusals are PlimsollError.
    """

    def seen(self, cluster_id: str, now_ms: int) -> AutoSeen | None:
        """What is decided about a cluster; None where no other process decides about it."""
        ...

    def plan(self, plan_hash: str) -> Plan:
        """The plan that waits for a person."""
        ...

    def approve(self, plan_hash: str, by: str, now_ms: int) -> None:
        """Approve it, once."""


class Engine(Protocol):
    """The loop as the screen sees it; `control.loop.loop.Loop` is one."""

    @property
    def settings(self) -> LoopSettings:
        """Mode, goals and names."""
        ...

    @property
    def view(self) -> LoopView:
        """The latest view of the loop."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run is in progress."""
        ...

    @property
    def steering(self) -> Steering:
        """Controls of the run in progress."""
        ...

    @property
    def proposals(self) -> Asking:
        """Requests about plans."""
        ...

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """Reports of the runs that ended, oldest first."""
        ...

    @property
    def previous_runs(self) -> PreviousRunsPort:
        """Previous runs."""
        ...

    @property
    def tasks(self) -> TasksPort | None:
        """The tasks on brokers; None where there are none."""
        ...

    @property
    def auto_watch(self) -> AutoWatchPort | None:
        """What another process decides about the cluster; None where none can."""
        ...

    def work_on(self, task: OpenTask) -> None:
        """Start the work on a task; raises GuardrailRefused if refused."""

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber` with each new view, from any thread."""

    def approve(self, plan_hash: str, by: str) -> None:
        """Execute the plan with this hash; raises GuardrailRefused if refused."""

    def preview(self, plan: Plan) -> Forecast:
        """Estimate duration and disk use of a plan; raises what its run would."""
        ...

    def acted(self, words: str) -> None:
        """Log what the operator did."""

    def plan_again(self) -> None:
        """Make a new plan from the latest snapshot."""
