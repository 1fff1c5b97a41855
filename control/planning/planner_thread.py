"""Plans, frontiers and what-ifs, solved in threads beside the loop.

Each solve has a thread of its own; the loop takes its result when it has ended. Only
`plan` can be approved; the plan of a what-if never becomes that.
"""

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final, Self, TypeVar

from control.planning.background_call import InBackground, SolveProgress, SolveTask, in_thread
from control.planning.backoff import Backoff
from control.planning.frontier_points import checked, with_plan
from control.planning.plan_overrides import NOTHING, PlanOverrides
from control.planning.plan_view import PlanningView, TracedFrontier, WhatIfView
from control.planning.planner import Planner
from control.planning.scenario_flags import judged
from control.planning.snapshot_changes import basis, changes
from control.planning.validate import refuse_broken
from control.settings.solve_table import limits_at
from model.errors import ConfigError, PlimsollError
from model.goals.effort import Effort
from model.goals.goals import Goals, SolveLimits
from model.goals.topic_placement import with_topic_placements
from model.plan.plan import Plan
from model.plan.unplaceable import with_placeless_deferred
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import Scenario, WhatIf, lost_partitions, suppose
from solver.report.result import Result

T = TypeVar("T")
SolvedPlan = tuple[Result, Snapshot]
"""A result, and the snapshot that it is for."""

MOST_UNDONE: Final = 50
"""Plans kept for `undo`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePlan:
    """A plan, the result that it is from, its snapshot, and the requests it follows."""

    plan: Plan
    result: Result
    snapshot: Snapshot
    asks: PlanOverrides

    def outdated_in(self, newest: Snapshot) -> bool:
        """Whether the cluster has changed in a way that the plan depends on."""
        return bool(changes(self.snapshot, newest, self.plan))


FIRST_SOLVE_S: Final = 5.0
"""Time between two solves after one of no use; doubles with each further one."""
MOST_SOLVE_S: Final = 600.0


class Proposals:
    """The newest plan and what the operator asks of it; any thread may call it.

    Its lock guards plans, requests and solves. While it is held nothing takes the
    loop's lock, which a caller may hold already.
    """

    def __init__(
        self,
        planner: Planner,
        goals: Goals,
        limits: SolveLimits,
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
        wake: Callable[[], None],
        warn: Callable[[str], None],
        acted: Callable[[str], None],
        background: InBackground = in_thread,
    ) -> None:
        """Set up without a plan yet.

        clock: seconds since the epoch; steady: seconds of a clock that is never set.
        wake: called from any thread when a result can be taken.
        warn, acted: write to the log what failed, and what the operator did.
        background: where solves run.
        """
        self._planner, self._goals, self._limits = planner, goals, limits
        self._clock, self._steady, self._wake = clock, steady, wake
        self._warn, self._acted, self._background = warn, acted, background
        self._lock = threading.RLock()
        self.result: Result | None = None
        """Result of the last solve."""
        self._solves = Backoff(first_s=FIRST_SOLVE_S, most_s=MOST_SOLVE_S)
        """Solves since the last useful one."""
        self.wanted = False
        """The operator requested a new plan."""
        self._made: MadePlan | None = None
        """The plan that can be approved."""
        self._earlier: deque[MadePlan] = deque(maxlen=MOST_UNDONE)
        """Plans for `undo`, oldest first."""
        self._newest: Snapshot | None = None
        self._asks = NOTHING
        self._changes: tuple[str, ...] = ()
        self._compared: tuple[object, ...] | None = None
        """The `basis` that the changes were computed for."""
        self._solve: SolveTask[SolvedPlan] | None = None
        self._given_up = False
        """The result of the solve in progress will be discarded."""
        self._trace: SolveTask[TracedFrontier] | None = None
        self._curve: TracedFrontier | None = None
        """The frontier as traced."""
        self._traced: TracedFrontier | None = None
        """The same with the plan as a point."""
        self._what_if_task: SolveTask[WhatIf] | None = None
        self._what_if: WhatIfView | None = None

    # ---- requests of the operator

    def ask(self, asks: PlanOverrides) -> None:
        """Request a new plan under these overrides.

        Raises
        ------
        ConfigError
            The cluster does not allow them, or its loads are not known yet.
        """
        with self._lock:
            asks.check(self._goals, self._known())
            if asks != self._asks:
                self._end_trace()
            self._acted(asks.beyond(self._asks))
            self._remember()
            self._asks = asks
            self.want()

    def undo(self) -> None:
        """Restore exactly the plan from before the last request, if still current.

        Otherwise request a new plan under the previous overrides. Raises ConfigError as `ask`.
        """
        with self._lock:
            asks, newest = self._asks.without_last(), self._known()
            self._acted(f"undo: {self._asks.beyond(asks)}")
            # The frontier does not depend on the point chosen on it.
            if replace(asks, cut=None) != replace(self._asks, cut=None):
                self._end_trace()
            made = self._before_asking(asks)
            if made is None or made.outdated_in(newest):
                self._asks = asks
                self.want()
                return
            self._replace_plan(made.asks, made.result, made.snapshot)
        self._wake()

    def want(self) -> None:
        """Request a new plan for the newest snapshot."""
        with self._lock:
            self.give_up()
            self.wanted, self._solves = True, self._solves.reset()
        self._wake()

    def use_best(self) -> None:
        """Stop the solves shown on the screen with their best results so far.

        During a what-if that is its own; else those of plan and frontier.
        """
        with self._lock:
            real = self._solve, self._trace
            shown = real if self._what_if is None else (self._what_if_task,)
            tasks = [task for task in shown if task is not None]
            if tasks:
                self._acted("use the best plan so far")
            for task in tasks:
                task.stop()

    def trace(self) -> None:
        """Start tracing the frontier of the newest snapshot; ConfigError as `ask`."""
        from solver.studies.trace_frontier import trace_plans

        with self._lock:
            snapshot = self._known()
            goals = replace(self._asks, cut=None).goals_for(self._goals, snapshot)
            self._acted("trace the frontier")
            self._end_trace()
            self._trace = self._begin(
                lambda progress: checked(
                    snapshot, *trace_plans(snapshot, goals, self._limits, progress)
                )
            )

    def choose(self, point: int) -> None:
        """Use the plan behind a point of the frontier.

        Raises
        ------
        ConfigError
            The point has no plan, or the cluster changed since the trace.
        """
        with self._lock:
            traced, newest = self._traced, self._known()
            result = traced.answers[point] if traced is not None else None
            if traced is None or result is None or result.best is None:
                raise ConfigError("this point is the current placement; choose one with a plan")
            if result.best == self.plan:
                return
            if traced.frontier.snapshot_fingerprint != newest.fingerprint:
                raise ConfigError(
                    "the cluster changed since the frontier was traced; trace it again"
                )
            self._remember()
            asks = self._asks.cut_at(traced.frontier.points[point])
            self._acted(asks.beyond(self._asks))
            self._replace_plan(asks, result, traced.snapshot)
        self._wake()

    def suppose(self, scenario: Scenario | None) -> None:
        """Start planning a what-if scenario; None ends it. ConfigError as `ask`."""
        with self._lock:
            if self._what_if_task is not None:
                self._what_if_task.stop()
            shown, self._what_if_task, self._what_if = self._what_if, None, None
            if scenario is None:
                if shown is not None:
                    self._acted("end the what-if")
                return
            before = self._known()
            after = suppose(before, scenario)
            goals = with_topic_placements(self._asks.goals or self._goals, after)
            goals = with_placeless_deferred(goals, after)
            lost = len(lost_partitions(before, after))
            self._acted(f"what-if: {scenario.words()}")
            self._what_if = WhatIfView(words=scenario.words(), snapshot=after)
            self._what_if_task = self._begin(
                lambda progress: judged(
                    after, scenario, self._planner(after, goals, self._limits, progress, None), lost
                )
            )

    # ---- calls of the loop

    @property
    def plan(self) -> Plan | None:
        """The plan that can be approved."""
        made = self._made
        return made.plan if made is not None else None

    @property
    def effort(self) -> Effort | None:
        """The effort that the operator chose; None for the configured one."""
        return self._asks.effort

    @property
    def shown(self) -> tuple[Plan | None, PlanningView]:
        """The plan, and what the screen shows beside it, at one moment."""
        with self._lock:
            supposed = self._what_if
            if supposed is not None and self._what_if_task is not None:
                supposed = replace(supposed, solving=self._what_if_task.now)
            return self.plan, PlanningView(
                asks=self._asks,
                awaited=self._awaited,
                solving=self._solve.now if self._solve else None,
                result=self.result,
                changes=self._changes,
                tracing=self._trace.now if self._trace else None,
                traced=self._traced,
                supposed=supposed,
            )

    @property
    def solve_in_s(self) -> float:
        """Seconds until the next solve is due, after solves that were of no use."""
        return self._solves.left_s(self._steady())

    @property
    def solving(self) -> bool:
        """Whether a solve is in progress, or its result waits to be taken."""
        return self._solve is not None

    def see(self, snapshot: Snapshot) -> None:
        """Set the newest snapshot, and compare the plan with it."""
        with self._lock:
            self._newest = snapshot
            if self._made is None:
                return
            # Comparing all partitions with every snapshot during a run would be slow.
            if (compared := basis(snapshot)) != self._compared:
                self._compared = compared
                self._changes = changes(self._made.snapshot, snapshot, self._made.plan)

    def begin(self, adapt: Callable[[Snapshot, Goals], Goals], noise: float = 0.0) -> None:
        """Start a solve for the newest snapshot.

        noise: what the noise of its loads adds to F; a limit that asks for a proof ignores it.
        adapt: turns the requested goals into those of the solve; must not take the
        loop's lock unless the caller holds it. Raises ConfigError as `ask`.
        """
        with self._lock:
            snapshot = self._known()
            self._solves = self._solves.again(self._steady())
            self._asks = self._asks.fitting(snapshot)
            goals = adapt(snapshot, self._asks.goals_for(self._goals, snapshot))
            self.wanted = self._given_up = False
            made, earlier, effort = self._editable(snapshot), self.plan, self._asks.effort
            limits = self._limits if effort is None else limits_at(self._limits, effort)
            if limits.gap_share > 0 and "noise" not in limits.model_fields_set:
                limits = limits.model_copy(update={"noise": noise})

            def solve(progress: SolveProgress) -> SolvedPlan:
                edited = None if made is None else _without_removed(made, goals)
                if made is not None and edited is not None:
                    return edited, made.snapshot
                result = self._planner(snapshot, goals, limits, progress, earlier)
                refuse_broken(snapshot, result.best)
                return result, snapshot

            self._solve = self._begin(solve)

    def take(self) -> Result | None:
        """Take the result of the solve once it has ended, unless it was cancelled.

        Raises
        ------
        PlimsollError
            The solve failed, or its plan is invalid and was discarded.
        """
        with self._lock:
            self._take_frontier_and_what_if()
            if self._solve is None or self._solve.now is not None:
                return None
            # Removed first: a solve that failed must not fail again at the next call.
            task, self._solve = self._solve, None
            solved = task.take()
            if self._given_up or solved is None:
                return None
            self._keep(*solved)
            return solved[0]

    def continue_from(self, before: Self) -> None:
        """Continue with the plan of a loop that has ended, until `see` shows that it is outdated.

        Both loops have the same goals and clocks.
        """
        with self._lock:
            self.result, self._made, self._asks = before.result, before._made, before._asks
            self._solves = before._solves

    def forget(self, *, ended: bool) -> None:
        """Drop the plan and end the solve for another one, after a run.

        ended: partitions may have moved, so the next solve need not wait.
        """
        with self._lock:
            self.give_up()
            self._made, self.wanted, self._changes = None, False, ()
            self._asks = self._asks.after_a_run()
            self._earlier.clear()
            self._end_trace()
            if ended:
                self._solves = self._solves.reset()

    def close(self) -> None:
        """Stop all solves and wait until they have ended."""
        with self._lock:
            tasks = [t for t in (self._solve, self._trace, self._what_if_task) if t]
            for task in tasks:
                task.stop()
        for task in tasks:
            task.join()

    @property
    def _awaited(self) -> bool:
        """Whether the requests have changed since the plan was made."""
        return self._made is not None and self._asks != self._made.asks

    def _replace_plan(self, asks: PlanOverrides, result: Result, snapshot: Snapshot) -> None:
        """Use a plan that exists already, instead of that of a solve in progress."""
        self.give_up()
        self.wanted, self._asks = False, asks
        self._keep(result, snapshot)

    def _keep(self, result: Result, snapshot: Snapshot) -> None:
        made = None
        if result.best is not None:
            made = MadePlan(plan=result.best, result=result, snapshot=snapshot, asks=self._asks)
        # Assigned once, since other threads read the plan without the lock.
        self.result, self._made = result, made
        self._changes, self._compared = (), None
        # The cluster may have changed during the solve.
        self.see(self._known())
        self._point_at_plan()

    def _point_at_plan(self) -> None:
        """Add the plan to the frontier as a point, unless that is outdated."""
        made, self._traced = self._made, self._curve
        if made is None or self._curve is None:
            return
        if not made.outdated_in(self._curve.snapshot):
            self._traced = with_plan(self._curve, made.result)

    def _remember(self) -> None:
        """Keep the plan for `undo`, unless it is older than the current requests."""
        if self._made is not None and not self._awaited:
            self._earlier.append(self._made)

    def _before_asking(self, asks: PlanOverrides) -> MadePlan | None:
        """Remove and return the newest kept plan made for `asks`."""
        for made in reversed(self._earlier):
            if made.asks == asks:
                self._earlier.remove(made)
                return made
        return None

    def _editable(self, newest: Snapshot) -> MadePlan | None:
        """The plan, if the only new requests are to remove moves from it."""
        made = self._made
        if made is None or not self._asks.only_removes_from(made.asks):
            return None
        return None if made.outdated_in(newest) else made

    def _take_frontier_and_what_if(self) -> None:
        """Take their results if they have ended; a failure is logged and ends nothing else."""
        if self._trace is not None and self._trace.now is None:
            trace, self._trace = self._trace, None
            self._curve = self._taken("the frontier", trace)
            self._point_at_plan()
        if self._what_if_task is not None and self._what_if_task.now is None:
            task, self._what_if_task = self._what_if_task, None
            answer, what_if = self._taken("the what-if", task), self._what_if
            if what_if is not None:
                self._what_if = replace(what_if, answer=answer) if answer is not None else None

    def _taken(self, what: str, task: SolveTask[T]) -> T | None:
        try:
            return task.take()
        except PlimsollError as exc:
            self._warn(f"{what} could not be planned: {exc}")
            return None

    def _begin(self, call: Callable[[SolveProgress], T]) -> SolveTask[T]:
        return SolveTask(call, int(1000 * self._clock()), self._wake, self._background)

    def _known(self) -> Snapshot:
        if self._newest is None:
            raise ConfigError("loads are not known yet; wait for the first measurement")
        return self._newest

    def give_up(self) -> None:
        """Stop the solve in progress and discard its result."""
        with self._lock:
            if self._solve is not None:
                self._given_up = True
                self._solve.stop()

    def _end_trace(self) -> None:
        if self._trace is not None:
            self._trace.stop()
        self._trace = self._traced = self._curve = None


def _without_removed(made: MadePlan, goals: Goals) -> Result | None:
    """The plan without the removed moves; None if that would break a rule."""
    from solver.report.remove_moves import without_removed_moves

    edited = without_removed_moves(made.snapshot, goals, made.plan.limits, made.plan)
    if edited is not None:
        refuse_broken(made.snapshot, edited.best)
    return edited
