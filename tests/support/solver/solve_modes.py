"""All modes of solving, each called as its command calls it."""

from collections.abc import Callable
from typing import Final

from control.cli.commands.frontier import trace_around_plan
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot
from solver.new_topic.assign_topic import assign_replicas
from solver.new_topic.topic_problem import NewTopic
from solver.report.counterfactual import why_not
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.min_brokers import fewest_brokers
from solver.studies.solve_tasks import solve_in_turn
from tests.support.solver.hard_clusters import with_directories

Mode = Callable[[Snapshot, Goals, SolveLimits, SolveObserver], object]


def _plan(snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver) -> object:
    return solve(snapshot, goals, limits, observer)


def _directories(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> object:
    given_goals = goals.model_copy(update={"level_directories": True})
    return solve(with_directories(snapshot, 0), given_goals, limits, observer)


def _frontier(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> object:
    return trace_around_plan(snapshot, goals, limits, observer, solve_in_turn)


def _fewest(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> object:
    return fewest_brokers(snapshot, goals, limits, observer)


def _assign(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> object:
    topic = NewTopic(name="new", partitions=500, replication_factor=2, net_in=1e5)  # type: ignore[arg-type]
    return assign_replicas(snapshot, goals, topic, limits, observer)


def _why(snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver) -> object:
    small = limits.model_copy(update={"work": limits.work / 2})
    best = solve(snapshot, goals, small, observer).best
    if best is None:
        return None
    broker = snapshot.header.brokers[-1].id
    return [why_not(snapshot, best, row, broker) for row in range(3) if row < len(snapshot)]


MODES: Final[dict[str, Mode]] = {
    "plan": _plan,
    "directories": _directories,
    "frontier": _frontier,
    "fewest": _fewest,
    "assign": _assign,
    "why": _why,
}
