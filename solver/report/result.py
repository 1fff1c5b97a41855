"""The result of a solve, with or without a plan."""

from dataclasses import dataclass
from typing import Final

from model.plan.plan import Plan, PlanStatus
from model.plan.remaining import remaining_text
from model.snapshot.snapshot import in_words
from model.units import count_text

FEW_LIMITS: Final = 3
"""Limits that stay exceeded which a summary names; the plan has them all."""

_OUTCOMES: Final = {
    PlanStatus.ALREADY_BALANCED: "already balanced",
    PlanStatus.INFEASIBLE: "no placement keeps every rule",
    PlanStatus.NONE_IN_TIME: "the search ended before a plan was found",
}
"""How a summary begins; the other statuses are words as they are."""


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
        why = in_words("; ".join((*self._short_reasons(), *self.relaxation)))
        outcome = _OUTCOMES.get(self.status, self.status.value)
        if self.best is None:
            return f"{outcome}: {why or 'no reason known'}"
        plan = self.best
        if not plan.moves:
            return f"{outcome}: {why or 'nothing has to move'}"
        return (
            f"{outcome}: {count_text(len(plan.moves), 'move')}, imbalance "
            f"{plan.objective_before:.4g} -> {plan.objective:.4g}, "
            f"bound {plan.bound:.4g}"
        ) + (f"; {why}" if why else "")

    def _short_reasons(self) -> tuple[str, ...]:
        """The reasons, with the first few of the limits that stay exceeded and the number left."""
        over = () if self.best is None else self.best.over_limit
        limits = tuple(remaining_text(over, ()))
        begin = self.reasons.index(limits[0]) if limits and limits[0] in self.reasons else 0
        end = begin + len(limits)
        if self.reasons[begin:end] != limits:
            return self.reasons
        few = remaining_text(over, (), FEW_LIMITS)
        return (*self.reasons[:begin], *few, *self.reasons[end:])
