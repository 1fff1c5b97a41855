"""The result of a solve, with or without a plan."""

from dataclasses import dataclass

from model.plan.plan import Plan, PlanStatus
from model.units import count_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one solve: a status, the plan if there is one, and its proof."""

    status: PlanStatus
    best: Plan | None
    """The sealed plan; None if infeasible, or if the search ended without one."""
    objective: float | None
    """F of the best plan."""
    bound: float | None
    """Proved lower bound of F over all allowed plans."""
    work: float
    """Work units spent, each about a second of one core."""
    seconds: float
    """Wall-clock time; never part of a plan."""
    reasons: tuple[str, ...] = ()
    """Why there is no plan, or what a plan has to leave unchanged."""
    limited_by: str = ""
    """What ended the solve, as in the plan."""
    exhausted: bool = False
    """The search budget was exhausted before optimality was proved."""
    relaxation: tuple[str, ...] = ()
    """If infeasible: changes that would make a plan possible, the cheapest first."""

    def summary(self) -> str:
        """Describe the result in one line: status, moves, F before and after, bound and reasons.

        Without a plan, or without moves in it, only the status and the reasons.
        """
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
