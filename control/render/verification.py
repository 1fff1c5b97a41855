"""What `verify` found: claims of a plan, or someone's moves, as text and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from control.cli.output import Form
from control.cli.output_types import ClaimAnswer, ReassignmentAnswer, VerifyAnswer
from control.render.text import json_text, table
from model.evaluate import Evaluation, evaluate
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

    moves: tuple[Move, ...]
    before: Evaluation
    after: Evaluation
    plimsoll_objective: float | None
    """F of plimsoll's plan; None where there is none."""
    bound: float
    """A proved lower bound of F over all plans that the goals allow."""
    method: str
    """What proved the bound."""

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
        """The moves, evaluated by these goals."""
        return cls(
            moves=moves,
            before=evaluate(snapshot, goals, ()),
            after=evaluate(snapshot, goals, moves),
            plimsoll_objective=plimsoll_objective,
            bound=bound,
            method=method,
        )

    @property
    def gap(self) -> float:
        """F of the moves less the bound."""
        return max(0.0, self.after.objective - self.bound)

    @property
    def gained(self) -> float:
        """Reduction of F as a share of the largest reduction the bound allows."""
        possible = self.before.objective - self.bound
        gain = self.before.objective - self.after.objective
        return gain / possible if possible > 0 else 0.0


def judged_moves_text(judged: JudgedMoves, output: Form) -> str:
    """Score, bound and broken rules of the moves, as lines or JSON."""
    if output is Form.JSON:
        return json_text(_answer(judged))
    after, before = judged.after, judged.before
    lines = [
        f"{count_text(len(judged.moves), 'change')}: imbalance "
        f"{before.objective:.6g} -> {after.objective:.6g} (deviation "
        f"{before.deviation:.6g} -> {after.deviation:.6g}, cost of the moves "
        f"{after.prices:.6g})",
        f"bound {judged.bound:.6g} by {judged.method}; gap {judged.gap:.3g}; "
        f"{percent_text(judged.gained)} of the possible improvement",
    ]
    if judged.plimsoll_objective is not None:
        lines.append(f"plimsoll's plan: imbalance {judged.plimsoll_objective:.6g}")
    broken = after.violations
    if not broken:
        return "\n".join([*lines, "no rule is broken"]) + "\n"
    lines.append(f"{count_text(len(broken), 'rule')} broken:")
    return "\n".join([*lines, *(f"  {v.rule}: {v.words}" for v in broken)]) + "\n"


def _answer(judged: JudgedMoves) -> ReassignmentAnswer:
    return ReassignmentAnswer.of(
        judged.after,
        changes=len(judged.moves),
        objective_before=judged.before.objective,
        bound=judged.bound,
        bound_by=judged.method,
        gap=judged.gap,
        gained_share=judged.gained,
        plimsoll_objective=judged.plimsoll_objective,
    )
