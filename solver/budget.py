"""The search budget of a solve: deterministic work, its limit, and requests to stop."""

from dataclasses import dataclass, field

from model.goals.goals import SolveLimits
from solver.search.observer import SolveObserver


@dataclass(slots=True, kw_only=True)
class Budget:
    """Deterministic work done against its limit, shared by the steps of one solve.

    A work unit is about a second of one core. It is counted,
    not timed, so that equal inputs give equal plans on any machine.
    """

    limits: SolveLimits
    observer: SolveObserver = field(default_factory=SolveObserver)
    work: float = 0.0
    """Work units done."""
    stopped: bool = False
    """The observer has asked to stop."""

    def part(self, work: float) -> "Budget":
        """Return a budget of `work` units, at least 1e-9, for one step with the same observer.

        `work` is not capped at `work_left`; the step's work is charged here only by `spend`.
        """
        limits = self.limits.model_copy(update={"work": max(1e-9, work)})
        return Budget(limits=limits, observer=self.observer, stopped=self.stopped)

    def spend(self, part: "Budget") -> None:
        """Charge the work units of a part to this budget; a stop asked for there holds here."""
        self.work += part.work
        self.stopped = self.stopped or part.stopped

    @property
    def work_left(self) -> float:
        """Work units that may still be spent; never below 0."""
        return max(0.0, self.limits.work - self.work)

    def stops(self) -> bool:
        """Ask the observer whether to stop; stays True once it has agreed."""
        self.stopped = self.stopped or self.observer.stops()
        return self.stopped

    def over(self, end: float = float("inf")) -> bool:
        """Return whether to stop now: on the observer's request, or with the budget exhausted.

        Also True once the `work` done here reaches `end` work units.
        """
        return self.stops() or self.work >= end or self.work_left <= 0.0
