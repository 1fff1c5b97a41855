"""Plans that are made beside the loop, as they are asked for, and thought experiments.

Each solve has a thread of its own, so that nobody waits for it; the loop takes the
answer when it is there. Only `plan` can be approved: what is supposed never gets there.
"""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from control.asks import NOTHING, Asks
from control.changes import changes
from control.judge import refuse_broken
from control.ports import Planner
from control.proposed import Proposed, Supposed, Traced
from control.supposing import judged
from control.task import Follower, Task
from model.errors import ConfigError, PlimsollError
from model.frontier import Frontier
from model.goals import Goals, SolveLimits
from model.plan import Plan
from model.scenario import Scenario, WhatIf, lost_partitions, suppose
from model.snapshot import Snapshot
from solver.result import Result

T = TypeVar("T")


class Proposals:
    """The newest plan, and what a person asks of it; from any thread."""

    def __init__(
        self,
        planner: Planner,
        goals: Goals,
        limits: SolveLimits,
        *,
        clock: Callable[[], float],
        steady: Callable[[], float],
        lock: threading.Condition,
        wake: Callable[[], None],
        note: Callable[[str], None],
    ) -> None:
        """Guarded by `lock`; `wake` is called when an answer can be taken.

        note: says in the log what came to nothing.
        """
        self._planner, self._goals, self._limits = planner, goals, limits
        self._clock, self._lock, self._wake = clock, lock, wake
        self._steady, self._note = steady, note
        self.plan: Plan | None = None
        """The one that can be approved."""
        self.result: Result | None = None
        self.planned_at_s = 0.0
        """By the clock that nobody sets."""
        self.wanted = False
        """A person asked for a new plan."""
        self._made_for: Snapshot | None = None
        """What the plan was made for."""
        self._made_as = NOTHING
        """What was asked of the plan when it was made."""
        self._solving_for: Snapshot | None = None
        self._newest: Snapshot | None = None
        self._asks = NOTHING
        self._changes: tuple[str, ...] = ()
        self._compared = ""
        """The placement (its fingerprint) that these are of."""
        self._solve: Task[Result] | None = None
        self._given_up = False
        """The solve under way is for what is no longer wanted."""
        self._trace: Task[Traced] | None = None
        self._traced: Traced | None = None
        self._thought: Task[WhatIf] | None = None
        self._supposed: Supposed | None = None

    # ---- what the screen asks for

    def ask(self, asks: Asks) -> None:
        """Make a new plan, with what is asked of it.

        Raises
        ------
        ConfigError
            It cannot be asked of the cluster as it is.
        """
        with self._lock:
            asks.check(self._goals, self._known())
            if asks != self._asks:
                self._end_trace()
            self._asks = asks
            self.want()

    def want(self) -> None:
        """Make a new plan from the newest snapshot, as it is asked for."""
        with self._lock:
            self.give_up()
            self.wanted = True
        self._wake()

    def use_best(self) -> None:
        """End the solve that is shown, of what is supposed or not, with its best."""
        with self._lock:
            solve = self._solve if self._supposed is None else self._thought
            if solve is not None:
                solve.stop()

    def trace(self) -> None:
        """Trace the frontier of the newest snapshot; ConfigError as `ask`."""
        from solver.frontier import trace_plans

        with self._lock:
            snapshot = self._known()
            goals = replace(self._asks, cut=None).goals_for(self._goals, snapshot)
            self._end_trace()
            self._trace = self._begin(
                lambda follower: _traced(
                    snapshot, *trace_plans(snapshot, goals, self._limits, follower)
                )
            )

    def choose(self, point: int) -> None:
        """Let the plan behind a point of the frontier be the plan.

        Raises
        ------
        ConfigError
            There is no plan behind it, or the cluster changed since it was traced.
        """
        with self._lock:
            traced, newest = self._traced, self._known()
            result = traced.answers[point] if traced is not None else None
            if traced is None or result is None or result.best is None:
                raise ConfigError("this point is the cluster as it is; pick another")
            if traced.frontier.snapshot_fingerprint != newest.fingerprint:
                raise ConfigError(
                    "the cluster changed since the frontier was traced; trace it again"
                )
            self.give_up()
            self.wanted = False
            self._asks = self._asks.cut_at(traced.frontier.points[point])
            self._keep(result, traced.snapshot)
        self._wake()

    def suppose(self, scenario: Scenario | None) -> None:
        """Plan a cluster that is only supposed; None ends it. ConfigError as `ask`."""
        with self._lock:
            if self._thought is not None:
                self._thought.stop()
            self._thought = self._supposed = None
            if scenario is None:
                return
            before = self._known()
            after = suppose(before, scenario)
            goals = self._asks.goals or self._goals
            lost = len(lost_partitions(before, after))
            self._supposed = Supposed(words=scenario.words(), snapshot=after)
            self._thought = self._begin(
                lambda follower: judged(
                    after,
                    scenario,
                    self._planner(after, goals, self._limits, follower),
                    lost,
                )
            )

    # ---- what the loop does

    @property
    def solving(self) -> bool:
        """Whether a plan is being made, or waits to be taken."""
        return self._solve is not None

    @property
    def awaited(self) -> bool:
        """Whether something else is asked by now than the plan was made by."""
        return self.plan is not None and self._asks != self._made_as

    def see(self, snapshot: Snapshot) -> None:
        """This snapshot is the newest."""
        self._newest = snapshot
        if self.plan is None or self._made_for is None:
            return
        # All partitions are compared, which a run would make each second's work.
        if snapshot.fingerprint != self._compared:
            self._compared = snapshot.fingerprint
            self._changes = changes(self._made_for, snapshot, self.plan)

    def begin(self) -> None:
        """Begin to make a plan for the newest snapshot, as it is asked for."""
        snapshot = self._known()
        self._asks = self._asks.fitting(snapshot)
        goals = self._asks.goals_for(self._goals, snapshot)
        self.wanted = self._given_up = False
        self._solving_for = snapshot
        self._solve = self._begin(
            lambda follower: self._passed(snapshot, goals, follower)
        )

    def take(self) -> Result | None:
        """The answer of the solve, once it is there and still wanted.

        Raises
        ------
        PlimsollError
            The plan is wrong; nobody gets to see it.
        """
        self._take_asides()
        if self._solve is None or self._solve.now is not None:
            return None
        result, self._solve = self._solve.take(), None
        if self._given_up or result is None or self._solving_for is None:
            return None
        self._keep(result, self._solving_for)
        return result

    def forget(self) -> None:
        """A run has ended: there is no plan any more, and none is being made."""
        self.give_up()
        self.plan, self.wanted, self._changes = None, False, ()
        self._asks = self._asks.after_a_run()
        self._end_trace()

    def close(self) -> None:
        """End all solves and wait for them."""
        with self._lock:
            tasks = [t for t in (self._solve, self._trace, self._thought) if t]
            for task in tasks:
                task.stop()
        for task in tasks:
            task.join()

    @property
    def view(self) -> Proposed:
        """All that is shown of plans, as it stands."""
        supposed = self._supposed
        if supposed is not None and self._thought is not None:
            supposed = replace(supposed, solving=self._thought.now)
        return Proposed(
            asks=self._asks,
            awaited=self.awaited,
            solving=self._solve.now if self._solve else None,
            result=self.result,
            changes=self._changes,
            tracing=self._trace.now if self._trace else None,
            traced=self._traced,
            supposed=supposed,
        )

    def _passed(self, snapshot: Snapshot, goals: Goals, follower: Follower) -> Result:
        result = self._planner(snapshot, goals, self._limits, follower)
        if result.best is not None:
            refuse_broken(snapshot, result.best)
        return result

    def _keep(self, result: Result, snapshot: Snapshot) -> None:
        self.result, self.plan, self._made_for = result, result.best, snapshot
        self.planned_at_s, self._changes, self._compared = self._steady(), (), ""
        self._made_as = self._asks

    def _take_asides(self) -> None:
        """The frontier and the thought experiment, where they are done.

        One that failed ends; the loop, which it is no part of, goes on.
        """
        if self._trace is not None and self._trace.now is None:
            trace, self._trace = self._trace, None
            self._traced = self._aside("the frontier", trace)
        if self._thought is not None and self._thought.now is None:
            thought, self._thought = self._thought, None
            answer = self._aside("the what-if", thought)
            supposed = self._supposed
            if supposed is not None:
                kept = replace(supposed, answer=answer) if answer is not None else None
                self._supposed = kept

    def _aside(self, what: str, task: Task[T]) -> T | None:
        try:
            return task.take()
        except PlimsollError as exc:
            self._note(f"{what} could not be planned: {exc}")
            return None

    def _begin(self, call: Callable[[Follower], T]) -> Task[T]:
        return Task(call, int(1000 * self._clock()), self._wake)

    def _known(self) -> Snapshot:
        if self._newest is None:
            raise ConfigError("loads are not known yet; wait for the first figures")
        return self._newest

    def give_up(self) -> None:
        """The plan that is being made is no longer wanted."""
        if self._solve is not None:
            self._given_up = True
            self._solve.stop()

    def _end_trace(self) -> None:
        if self._trace is not None:
            self._trace.stop()
        self._trace = self._traced = None


def _traced(
    snapshot: Snapshot, frontier: Frontier, answers: tuple[Result | None, ...]
) -> Traced:
    for answer in answers:
        if answer is not None and answer.best is not None:
            refuse_broken(snapshot, answer.best)
    return Traced(frontier=frontier, snapshot=snapshot, answers=answers)
