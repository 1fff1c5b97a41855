"""What the screen needs of the loop; nothing else of it is within reach."""

from collections.abc import Callable
from typing import Protocol

from control.loop.dependencies import LoopSettings
from control.loop.view import LoopView
from control.planning.plan_overrides import PlanOverrides
from executor.journal.journal_replay import Replay
from executor.journal.run_history import PastRun
from executor.run.operator_control import Steering
from executor.schedule.estimate import Forecast
from model.plan.plan import Plan
from model.run import RunReport
from model.snapshot.what_if import Scenario


class Asking(Protocol):
    """What may be asked of plans; `control.planning.planner_thread.Proposals` takes it.

    What cannot be asked of the cluster as it is is a ConfigError, in words.
    """

    def ask(self, asks: PlanOverrides) -> None:
        """Make a new plan, with what is asked of it."""

    def undo(self) -> None:
        """Restore the plan from before the last request."""

    def use_best(self) -> None:
        """End the solve under way with the best plan so far."""

    def trace(self) -> None:
        """Trace the frontier."""

    def choose(self, point: int) -> None:
        """Let the plan behind a point of the frontier be the plan."""

    def suppose(self, scenario: Scenario | None) -> None:
        """Plan a cluster that is only supposed; None ends it."""


class PreviousRunsPort(Protocol):
    """Runs of before; `previous_runs.Past` is one. Refusals are PlimsollError."""

    @property
    def interrupted(self) -> PastRun | None:
        """The newest run, where its process ended before it did."""
        ...

    def runs(self) -> tuple[PastRun, ...]:
        """The newest runs on the cluster, newest first; reads their files."""
        ...

    def replay(self, run_id: str) -> Replay:
        """A run after each record of its journal; reads it."""
        ...

    def resume(self, by: str) -> None:
        """Go on with the newest run."""

    def plan_rollback(self, run_id: str) -> tuple[Plan, list[str]]:
        """The plan that undoes a run, and what it leaves alone; asks the cluster."""
        ...

    def roll_back(self, plan: Plan, by: str) -> None:
        """Carry out exactly this plan back."""


class Engine(Protocol):
    """The loop, seen from the screen; `control.loop.loop.Loop` is one."""

    @property
    def settings(self) -> LoopSettings:
        """Mode, goals and names."""
        ...

    @property
    def view(self) -> LoopView:
        """The loop as it stands."""
        ...

    @property
    def running(self) -> bool:
        """Whether a run goes on."""
        ...

    @property
    def steering(self) -> Steering:
        """Of the run that goes on."""
        ...

    @property
    def proposals(self) -> Asking:
        """What may be asked of plans."""
        ...

    @property
    def reports(self) -> tuple[RunReport, ...]:
        """Of the runs that ended, oldest first."""
        ...

    @property
    def previous_runs(self) -> PreviousRunsPort:
        """Runs of before."""
        ...

    def subscribe(self, subscriber: Callable[[LoopView], None]) -> None:
        """Call `subscriber` with each new view, from any thread."""

    def approve(self, plan_hash: str, by: str) -> None:
        """Carry out the plan with this hash; refusals are GuardrailRefused."""

    def preview(self, plan: Plan) -> Forecast:
        """What a plan will take; asks the cluster, and raises as a run would."""
        ...

    def acted(self, words: str) -> None:
        """Say in the log what the operator did."""

    def plan_again(self) -> None:
        """Make a new plan from the newest snapshot."""
