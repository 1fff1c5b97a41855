"""The plan that the plan screen shows: the real one, or that of a what-if."""

from dataclasses import dataclass

from control.loop.view import LoopView, Phase
from control.planning.plan_view import Solving
from model.plan.plan import Plan, PlanStatus
from model.snapshot.snapshot import Snapshot, in_words
from tui.viewmodel.plan.wording import why_no_plan

WHAT_IF = "WHAT-IF"
"""Marks every part of a what-if."""

HEADINGS = {
    PlanStatus.ALREADY_BALANCED: "ALREADY BALANCED",
    PlanStatus.NO_IMPROVEMENT: "NO IMPROVEMENT WORTH ITS COST",
    PlanStatus.INFEASIBLE: "INFEASIBLE: these cannot all be satisfied",
    PlanStatus.NONE_IN_TIME: "NO PLAN IN TIME",
    PlanStatus.STOPPED: "STOPPED before a better plan was found",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A plan, or why there is none."""

    plan: Plan | None
    """A plan with moves, or None."""
    snapshot: Snapshot | None
    """The snapshot it is for."""
    solving: Solving | None
    supposed: str = ""
    """Description of the what-if; empty for the real cluster."""
    lost: int = 0
    """Partitions that the what-if leaves without a replica."""
    changes: tuple[str, ...] = ()
    """Why the plan is outdated."""
    why_none: str = ""

    def title(self, words: str) -> str:
        """The title of a panel, marked if it belongs to a what-if."""
        return f"{WHAT_IF}: {words}" if self.supposed else words


def shown(view: LoopView) -> Shown:
    """Select what the plan screen shows of this view."""
    supposed, proposed = view.proposed.supposed, view.proposed
    if supposed is None:
        return Shown(
            plan=view.plan if view.plan is not None and view.plan.moves else None,
            snapshot=view.snapshot,
            solving=proposed.solving,
            changes=proposed.changes,
            why_none=_why_none(view),
        )
    answer = supposed.answer
    plan = answer.plan if answer is not None else None
    why = "The what-if is being planned."
    if answer is not None:
        why = _answered(answer.status, answer.reasons, ())
    return Shown(
        plan=plan if plan is not None and plan.moves else None,
        snapshot=supposed.snapshot,
        solving=supposed.solving,
        supposed=supposed.words,
        lost=answer.lost if answer is not None else 0,
        why_none=f"{WHAT_IF}: {why}",
    )


def ghost(view: LoopView) -> Plan | None:
    """The plan drawn into bars; None while a what-if is shown."""
    plan = view.plan if view.proposed.supposed is None else None
    return plan if plan is not None and plan.moves else None


def _why_none(view: LoopView) -> str:
    result = view.proposed.result
    if result is None or result.best is not view.plan or view.phase is Phase.SOLVING:
        return why_no_plan(view)
    at_rest = result.status in (PlanStatus.ALREADY_BALANCED, PlanStatus.NO_IMPROVEMENT)
    if view.phase is Phase.BALANCED and not at_rest and not view.proposed.asks.words():
        return why_no_plan(view)
    return _answered(result.status, result.reasons, result.relaxation)


def _answered(status: PlanStatus, reasons: tuple[str, ...], ways_out: tuple[str, ...]) -> str:
    """An answer without moves: status, reasons, and what would help."""
    lines = [HEADINGS.get(status, status.value.upper())]
    lines += [f"- {in_words(reason)}" for reason in reasons]
    if ways_out:
        lines += ["", "What would help, cheapest first:", *(f"- {in_words(w)}" for w in ways_out)]
    return "\n".join(lines)
