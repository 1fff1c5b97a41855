"""What a solve answers. A result is not a plan: it may hold none."""

from dataclasses import dataclass

from model.plan.plan import Plan, PlanStatus
from model.units import count_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The answer of one solve."""

    status: PlanStatus
    best: Plan | None
    """The sealed plan; None when infeasible, none in time or stopped without one."""
    objective: float | None
    """F of the best plan."""
    bound: float | None
    """Proved lower bound of F over all allowed plans."""
    work: float
    """Deterministic work done, about seconds of one core."""
    seconds: float
    """Wall time; never part of a plan."""
    reasons: tuple[str, ...] = ()
    """Why there is no plan, in words; or what a plan has to leave as it is."""
    limited_by: str = ""
    """What ended the solve, in words, as in the plan."""
    exhausted: bool = False
    """The search budget ended it before its proof."""
    relaxation: tuple[str, ...] = ()
    """Where infeasible: what would make a plan possible, the cheapest first."""

    def summary(self) -> str:
        """One sentence for people."""
        why = "; ".join((*self.reasons, *self.relaxation))
        if self.best is None:
            return f"{self.status}: {why or 'no reason known'}"
        plan = self.best
        if not plan.moves:
            return f"{self.status}: {why or 'nothing has to move'}"
        return (
            f"{self.status}: {count_text(len(plan.moves), 'move')}, imbalance "
            f"{plan.objective_before:.4g} -> {plan.objective:.4g}, "
            f"bound {plan.bound:.4g}"
        ) + (f"; {why}" if why else "")
