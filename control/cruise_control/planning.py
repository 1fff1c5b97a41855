"""Dry runs of the API: they plan with the loop's newest snapshot, and keep what they planned."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from control.cruise_control.answers import REFUSED, Answer, Failed, done
from control.cruise_control.dry_runs import Planned, PlanningParts, planned, refuse_impossible
from control.cruise_control.goal_properties import GoalProperties
from control.cruise_control.kept_plans import KeptPlans
from control.cruise_control.optimisation import optimisation_result
from control.cruise_control.requests import Request
from control.cruise_control.user_tasks import UserTask
from control.settings.solve_table import limits_at
from model.goals.effort import Effort
from model.goals.goals import Goals
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve

if TYPE_CHECKING:
    from control.loop.loop import Loop

Now = Callable[[], int]
"""Milliseconds since the epoch."""


class _Ends(SolveObserver):
    """Ends a search once the service does."""

    def __init__(self) -> None:
        self.ended = False

    def stops(self) -> bool:
        """Whether the service has ended."""
        return self.ended


class Planning:
    """Plans for requests, one at a time."""

    def __init__(
        self, kept: KeptPlans, now_ms: Now, named: GoalProperties, solved: Callable[[Result], None]
    ) -> None:
        """kept: where plans of dry runs are kept. named: the goals of requests.

        solved: hears of each result, for metrics.
        """
        self.loop: Loop | None = None
        """The loop whose settings count; None before the first."""
        self._kept, self._now_ms, self._named = kept, now_ms, named
        self._solved = solved
        self._observer = _Ends()

    def close(self) -> None:
        """End a search in progress with the best plan so far."""
        self._observer.ended = True

    def dry_run(self, request: Request, task: UserTask, snapshot: Snapshot) -> Answer:
        """Plan, and keep the plan under what was requested. Raises as `planned`."""
        found = self.plan(request, snapshot)
        if self._observer.ended:
            # The task stays active, and is planned again after the start.
            raise Failed("the service is stopping", REFUSED)
        if found.plan is None:
            self._kept.forget(request)
        else:
            self._kept.keep(request, found.plan, task.task_id, self._now_ms(), found.entry)
        return self.result(request, found)

    def refuse_impossible(self, request: Request, snapshot: Snapshot) -> None:
        """Raise as the function of this name does; takes no time."""
        refuse_impossible(request, snapshot, self._loop_now().settings.goals, self._named)

    def _loop_now(self) -> "Loop":
        if self.loop is None:
            raise Failed("the service is starting; try again", REFUSED)
        return self.loop

    def plan(self, request: Request, snapshot: Snapshot) -> Planned:
        """The plan for a request. Raises as `planned`."""
        settings = self._loop_now().settings
        effort = Effort.GOOD if settings.effort is Effort.QUICK else settings.effort
        limits = limits_at(settings.solve, effort)

        def find(of: Snapshot, goals: Goals) -> Result:
            result = solve(of, goals, limits, self._observer)
            self._solved(result)
            return result

        parts = PlanningParts(goals=settings.goals, limits=limits, solve=find, named=self._named)
        return planned(request, snapshot, parts)

    def result(self, request: Request, found: Planned) -> Answer:
        """The answer with a plan."""
        verbose = request.flag("verbose", False)
        plan_hash = "" if found.plan is None else found.plan.hash
        return done(optimisation_result(found, verbose=verbose), plan_hash=plan_hash)

    @property
    def ended(self) -> bool:
        """Whether the service ends."""
        return self._observer.ended
