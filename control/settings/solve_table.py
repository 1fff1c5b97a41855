"""The `[solve]` table: the search budget and the effort of plans."""

from typing import Any, Final

from model.goals.effort import Effort
from model.goals.goals import SolveLimits

QUICK_WORK: Final = 1.0
"""Search budget of `quick`, about seconds of one core."""
BEST_WORK: Final = 200.0
"""Search budget of `best`."""
TASK_WORK: Final = 2.0
"""Largest search budget of a task's plan, about seconds of one core."""
LEAST_TASK_WORK: Final = 0.25
"""Its smallest one: of 5,000 partitions on 50 brokers. F is within 6 % of that after 2.0, measured
on equal brokers, two sizes and heavy tails."""
TASK_WORK_PER_PLACE: Final = 1e-6
"""Search budget of a task's plan between these, per partition and broker."""

_LIMITS: Final[dict[Effort, dict[str, Any]]] = {
    Effort.QUICK: {"work": QUICK_WORK},
    Effort.GOOD: {},
    Effort.BEST: {"work": BEST_WORK, "gap_share": 0.0},
}
"""What differs from the defaults of `SolveLimits`."""


class SolveTable(SolveLimits):
    """When a search ends, and how far plans go."""

    effort: Effort = Effort.GOOD
    """How far plans go: `quick` changes leaders only and copies nothing; `good`; `best` searches
    until a plan is proved optimal, or ten times as long. Limits that are set take precedence."""

    @property
    def limits(self) -> SolveLimits:
        """The limits of commands that have no effort of their own.

        Those of `effort`; of `good` where that is `quick`, since they move replicas.
        """
        return limits_at(self, Effort.GOOD if self.effort is Effort.QUICK else self.effort)


def limits_at(solve: SolveLimits, effort: Effort) -> SolveLimits:
    """The limits of a search at an effort; those set in `solve` take precedence.

    Set are the fields that were given, even where they equal the defaults. They remain the only
    ones set in the result, so that it may be passed on for another effort.
    """
    given = {n for n in SolveLimits.model_fields if n in solve.model_fields_set}
    values = {name: getattr(solve, name) for name in given}
    defaults = {n: v for n, v in _LIMITS[effort].items() if n not in given}
    # Constructed without checks, which the values have passed before, to choose the set fields.
    return SolveLimits.model_construct(_fields_set=given, **(defaults | values))


def task_limits(solve: SolveTable, partitions: int, brokers: int) -> SolveLimits:
    """The limits of the plans of tasks: those set in `solve`, else a small search budget.

    The replicas that move are given, and their places are found early; `best` searches on.
    partitions, brokers: of the cluster.
    """
    if solve.effort is Effort.BEST or "work" in solve.model_fields_set:
        return solve.limits
    work = min(TASK_WORK, max(LEAST_TASK_WORK, TASK_WORK_PER_PLACE * partitions * brokers))
    return solve.limits.model_copy(update={"work": work})
