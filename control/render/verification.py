"""What `verify` found: claims of a plan, or someone's moves, as text and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from control.cli.output import Form
from control.cli.output_types import ClaimAnswer, ReassignmentAnswer, VerifyAnswer
from control.render.text import json_text, table
from model.evaluate import evaluate
from model.goals.goals import Goals
from model.plan.plan import Move, Plan
from model.printable import printable
from model.snapshot.snapshot import Snapshot
from model.units import count_text, percent_text

VERDICTS: Final = {True: "holds", False: "DOES NOT HOLD", None: "not checked"}


def broken_claims(found: Sequence[ClaimAnswer]) -> list[str]:
    """Names of the claims that do not hold."""
    return [c.name for c in found if c.holds is False]


def claims_text(plan: Plan, found: Sequence[ClaimAnswer], output: Form) -> str:
    """The claims of a plan with their verdicts, a table or JSON."""
    broken = broken_claims(found)
    if output is Form.JSON:
        return json_text(VerifyAnswer.of(plan, plan=plan.hash, holds=not broken, claims=found))
    rows = [[c.name, VERDICTS[c.holds], c.words] for c in found]
    verdict = f"plan {plan.hash[:12]} of cluster {printable(plan.cluster_id)}: "
    unchecked = [c.name for c in found if c.holds is None]
    if broken:
        verdict += f"claims that do not hold: {', '.join(broken)}"
    elif unchecked:
        verdict += f"all checked claims hold; not checked: {', '.join(unchecked)}"
    else:
        verdict += "all claims hold"
    return verdict + "\n\n" + table(["claim", "verdict", "reason"], rows)


# ---- anyone's reassignment


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedMoves:
    """Someone's moves beside plimsoll's plan and bound."""

    answer: ReassignmentAnswer
    deviation_before: float

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        goals: Goals,
        moves: tuple[Move, ...],
        plimsoll_objective: float | None,
        bound: float,
        method: str,
    ) -> Self:
        """The moves, evaluated by these goals.

        plimsoll_objective: F of plimsoll's plan; None where there is none. bound: a proved
        lower bound of F over all plans that the goals allow. method: what proved it.
        """
        before, after = evaluate(snapshot, goals, ()), evaluate(snapshot, goals, moves)
        possible, gain = before.objective - bound, before.objective - after.objective
        answer = ReassignmentAnswer.of(
            after,
            changes=len(moves),
            objective_before=before.objective,
            bound=bound,
            bound_by=method,
            gap=max(0.0, after.objective - bound),
            gained_share=gain / possible if possible > 0 else 0.0,
            plimsoll_objective=plimsoll_objective,
        )
        return cls(answer=answer, deviation_before=before.deviation)


def _gained(found: ReassignmentAnswer) -> str:
    """The share of the possible improvement, which means nothing where F rises."""
    if found.objective > found.objective_before:
        return f"imbalance raised by {found.objective - found.objective_before:.3g}"
    return f"{percent_text(found.gained_share)} of the possible improvement"


def judged_moves_text(judged: JudgedMoves, output: Form) -> str:
    """Score, bound and broken rules of the moves, as lines or JSON."""
    found = judged.answer
    if output is Form.JSON:
        return json_text(found)
    lines = [
        f"{count_text(found.changes, 'change')}: imbalance "
        f"{found.objective_before:.6g} -> {found.objective:.6g} (deviation "
        f"{judged.deviation_before:.6g} -> {found.deviation:.6g}, cost of the moves "
        f"{found.prices:.6g})",
        f"bound {found.bound:.6g} by {found.bound_by}; gap {found.gap:.3g}; {_gained(found)}",
    ]
    if found.plimsoll_objective is not None:
        lines.append(f"plimsoll's plan: imbalance {found.plimsoll_objective:.6g}")
    if found.violations:
        lines.append(f"{count_text(len(found.violations), 'rule')} broken:")
        lines += [f"  {v.rule}: {v.words}" for v in found.violations]
    else:
        lines.append("no rule is broken")
    return "\n".join(lines) + "\n"
