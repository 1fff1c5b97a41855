"""What one plan at the beginning of a day would have reached, had the planner known the day."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from control.planning.slow_brokers import with_slow
from control.settings.auto_limits import AutoLimits, tightened
from control.simulation.tally import Counts
from lab.time_lapse.time_lapse_cluster import TimeLapseCluster, loaded, placed, placement_after
from model.evaluate import evaluate
from model.goals.goals import Goals
from model.goals.topic_placement import with_topic_placements
from model.plan.unplaceable import with_placeless_deferred
from model.snapshot.snapshot import Floats, Ints, Snapshot
from solver.report.result import Result

Solve = Callable[[Snapshot, Goals], Result]


@dataclass(slots=True)
class Hindsight:
    """Samples of one day at a time: loads, and how the policy did."""

    cluster: TimeLapseCluster
    goals: Goals
    limits: AutoLimits
    solve: Solve
    heeds_slow: bool
    """Whether slow brokers take nothing, as they do unless their trigger is off."""
    _placement: Ints = field(init=False)
    """At the beginning of the day."""
    _states: list[Snapshot] = field(default_factory=list)
    """The cluster at each sample."""

    def __post_init__(self) -> None:
        self._placement = self.cluster.placement

    def sample(self) -> None:
        """Remember the cluster as it is; in the middle of each hour is enough."""
        state = self.cluster.present()
        self._states.append(with_slow(state, self.cluster.slow) if self.heeds_slow else state)

    def regret(self, used: Counts) -> float:
        """Mean imbalance of the samples above that of the best single plan; starts another day.

        used: what the policy used of its budgets on the day.
        """
        states, placement = self._states, self._placement
        self._states, self._placement = [], self.cluster.placement
        if not states:
            return 0.0
        reached = _mean(self.goals, states)
        start = placed(states[0], placement)
        mean: Floats = np.mean([state.partitions.loads for state in states], axis=0)
        plan = self.solve(loaded(start, mean), self._budgeted(states[0], used)).best
        least = _mean(self.goals, [placed(state, placement) for state in states])
        if plan is not None and plan.moves:
            planned = placement_after(start, plan.moves)
            known = _mean(self.goals, [placed(state, planned) for state in states])
            least = min(least, known)
        return reached - least

    def _budgeted(self, snapshot: Snapshot, used: Counts) -> Goals:
        """The goals with the budgets of one run, or what the day used where that is more."""
        limits = self.limits
        wider = limits.model_copy(
            update={
                "replica_moves": max(limits.replica_moves, used.moves),
                "leader_changes": max(limits.leader_changes, used.moves),
                "bytes": max(limits.bytes, used.bytes_copied),
                "partitions_per_topic": max(limits.partitions_per_topic, used.moves),
            }
        )
        goals = with_topic_placements(tightened(self.goals, wider), snapshot)
        return with_placeless_deferred(goals, snapshot)


def _mean(goals: Goals, states: list[Snapshot]) -> float:
    """Mean imbalance score over some states."""
    return float(np.mean([evaluate(state, goals, ()).deviation for state in states]))
