"""The search budget of a solve: how much work it may still do, and whether to stop."""

from dataclasses import dataclass, field

from model.goals.goals import SolveLimits
from solver.search.observer import SolveObserver


@dataclass(slots=True, kw_only=True)
class Budget:
    """Deterministic work done against its limit; steps of one solve share it."""

    limits: SolveLimits
    observer: SolveObserver = field(default_factory=SolveObserver)
    work: float = 0.0
    """Deterministic work done."""
    stopped: bool = False
    """The observer asked to stop."""

    def part(self, work: float) -> "Budget":
        """A budget of its own for one step; `spend` charges what it used."""
        limits = self.limits.model_copy(update={"work": max(1e-9, work)})
        return Budget(limits=limits, observer=self.observer, stopped=self.stopped)

    def spend(self, part: "Budget") -> None:
        """Charge the work of a part."""
        self.work += part.work
        self.stopped = self.stopped or part.stopped

    @property
    def work_left(self) -> float:
        """Deterministic work that may still be done."""
        return max(0.0, self.limits.work - self.work)

    def stops(self) -> bool:
        """Ask the observer whether to stop; True for good once it has said so."""
        self.stopped = self.stopped or self.observer.stops()
        return self.stopped

    def over(self, end: float = float("inf")) -> bool:
        """Whether to stop here: as asked, or at the limit or this much work in all."""
        return self.stops() or self.work >= end or self.work_left <= 0.0
