"""Solves that do not depend on each other, on this machine or elsewhere."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from model.goals.goals import Goals, SolveLimits
from model.plan.plan import Plan
from model.snapshot.snapshot import Snapshot
from solver.report.result import Result
from solver.search.observer import SolveObserver
from solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveTask:
    """The arguments of one solve."""

    goals: Goals
    limits: SolveLimits
    earlier: Plan | None = None
    """A plan for about the same cluster to stay near to; None for none."""
    snapshot: Snapshot | None = None
    """What to plan for; None for the snapshot that all tasks share."""


SolveAll = Callable[[Snapshot, Sequence[SolveTask], SolveObserver], Iterator[Result]]
"""Solves tasks that may share a snapshot.

Yields their results in the order of the tasks, the same wherever they are solved. Ends early
where the observer asks to stop. Closing the iterator gives up the results not yet taken.
"""


def solve_in_turn(
    shared: Snapshot, tasks: Sequence[SolveTask], observer: SolveObserver
) -> Iterator[Result]:
    """Solve one task after the other in this process, each when its result is asked for."""
    for task in tasks:
        yield _solved(shared, task, observer)


def solve_pickled(shared: bytes, task: bytes) -> bytes:
    """Solve a pickled `SolveTask` for a pickled snapshot; return the pickled `Result`.

    For processes that other machines run: both arguments must come from plimsoll itself.
    """
    snapshot, wanted = pickle.loads(shared), pickle.loads(task)  # noqa: S301 - see above
    return pickle.dumps(_solved(snapshot, wanted, SolveObserver()))


def _solved(shared: Snapshot, task: SolveTask, observer: SolveObserver) -> Result:
    snapshot = shared if task.snapshot is None else task.snapshot
    return solve(snapshot, task.goals, task.limits, observer, task.earlier)
