"""`plimsoll verify PLAN`: judge a plan by code that shares nothing with the search."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from control.cli.exit_codes import Exit
from control.cli.input_source import Origin, plannable
from control.cli.output_format import Form
from control.cli.plan_claims import (
    Claim,
    claims,
    hash_claim,
    prove_again,
    settings_claims,
    snapshot_claim,
)
from control.cli.progress_line import PROVED, shown
from control.render.plan_text import json_text, table
from control.settings.settings import Settings
from model.bound.bound import price_bound
from model.errors import ConfigError
from model.evaluate import Evaluation, evaluate
from model.exchange.reassignment import moves_of, read_election, read_reassignment
from model.files import read_document, rounded
from model.goals.topic_placement import with_topic_placements
from model.plan.plan import (
    KIND,
    Move,
    Plan,
    PlanStatus,
    plan_of_document,
)
from model.plan.unplaceable import with_placeless_deferred
from model.printable import printable
from model.snapshot.snapshot import Snapshot
from model.units import count_text, percent_text
from solver.solve import solve

WORDS = {True: "holds", False: "DOES NOT HOLD", None: "not judged"}


def make(
    settings: Settings,
    plan_file: Path | None,
    origin: Origin,
    *,
    reassignment: Path | None,
    election: Path | None,
    goals_given: bool = False,
    prove: bool,
    work: float | None,
    output: Form,
) -> int:
    """Judge a plan file, or anyone's reassignment by the goals of a plan.

    Options: `PLAN`, which may be missing with `--reassignment FILE`; `--election FILE`
    beside that; what `plan` takes for the cluster and its goals; `--prove` with
    `--work UNITS`. Exits with 5 where a claim does not hold or a rule is broken.

    Raises
    ------
    ConfigError
        A file cannot be used, or there is nothing to judge.
    """
    if reassignment is not None:
        document = read_reassignment(reassignment)
        held = read_election(election) if election is not None else None
        snapshot = origin.read(settings)
        moves = moves_of(snapshot, document, held)
        return _reassignment(settings, plan_file, snapshot, moves, output)
    if election is not None:
        raise ConfigError(
            "--election goes with --reassignment FILE, after which it is held; name "
            "that too"
        )
    if plan_file is None:
        raise ConfigError("nothing to verify; name a plan file or --reassignment FILE")
    plan, found = _claims(settings, plan_file, origin, prove, work, given=goals_given)
    sys.stdout.write(claims_text(plan, found, output))
    return Exit.REFUSED if _broken(found) else Exit.DONE


def _claims(
    settings: Settings,
    plan_file: Path,
    origin: Origin,
    prove: bool,
    work: float | None,
    *,
    given: bool,
) -> tuple[Plan, list[Claim]]:
    document = read_document(plan_file, KIND, major=1)
    plan = plan_of_document(document, plan_file)
    snapshot = origin.read(settings)
    found = [hash_claim(document), snapshot_claim(plan, snapshot)]
    if found[-1].holds:
        found += claims(plan, snapshot)
        goals = with_topic_placements(settings.goals, snapshot)
        goals = with_placeless_deferred(goals, snapshot)
        found += settings_claims(plan, goals, settings.solve, given=given)
        if prove:
            budget = work or plan.limits.work
            again = shown(
                lambda observer: prove_again(plan, snapshot, budget, observer),
                kept=PROVED,
            )
            found = [
                again if c.name == "bound" and c.holds is None else c for c in found
            ]
    return plan, found


def _broken(found: Sequence[Claim]) -> list[str]:
    return [c.name for c in found if c.holds is False]


def claims_text(plan: Plan, found: Sequence[Claim], output: Form) -> str:
    broken = _broken(found)
    if output is Form.JSON:
        return json_text(
            {
                "plan": plan.hash,
                "holds": not broken,
                "objective": plan.objective,
                "bound": plan.bound,
                "gap": rounded(plan.gap),
                "bound_method": plan.bound_method,
                "claims": [c.document() for c in found],
            }
        )
    rows = [[c.name, WORDS[c.holds], c.words] for c in found]
    verdict = f"plan {plan.hash[:12]} of cluster {printable(plan.cluster_id)}: "
    open_ = [c.name for c in found if c.holds is None]
    if broken:
        verdict += f"{', '.join(broken)}: not as the plan claims"
    elif open_:
        verdict += f"all claims hold but what was not judged: {', '.join(open_)}"
    else:
        verdict += "all claims hold"
    return verdict + "\n\n" + table(["claim", "verdict", "why"], rows)


# ---- anyone's reassignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Someone's moves beside the plan and the bound of plimsoll."""

    moves: tuple[Move, ...]
    before: Evaluation
    after: Evaluation
    ours: float | None
    """F of plimsoll's plan; None where there is none."""
    bound: float
    """No allowed plan has an F below this."""
    by: str
    """What proved the bound."""

    @property
    def gap(self) -> float:
        """F less bound."""
        return max(0.0, self.after.objective - self.bound)

    @property
    def gained(self) -> float:
        """Share of what can at most be gained that these moves gain."""
        possible = self.before.objective - self.bound
        gain = self.before.objective - self.after.objective
        return gain / possible if possible > 0 else 0.0


def _reassignment(
    settings: Settings,
    plan_file: Path | None,
    snapshot: Snapshot,
    moves: tuple[Move, ...],
    output: Form,
) -> int:
    judged = _judged(settings, plan_file, snapshot, moves)
    write = _judged_document if output is Form.JSON else _judged_text
    sys.stdout.write(write(judged))
    return Exit.REFUSED if judged.after.violations else Exit.DONE


def _judged(
    settings: Settings,
    plan_file: Path | None,
    snapshot: Snapshot,
    moves: tuple[Move, ...],
) -> Judged:
    goals, ours, bound, by = settings.goals, None, 0.0, "nothing"
    if plan_file is None:
        goals = plannable(goals, snapshot)
        result = shown(
            lambda observer: solve(snapshot, goals, settings.solve, observer),
            kept=PROVED,
        )
        ours, bound = result.objective, result.bound or 0.0
        by = result.best.bound_method if result.best else by
        by += ", stopped" if result.status is PlanStatus.STOPPED else ""
    else:
        plan = _beside_plan(plan_file, snapshot)
        goals, ours = plan.goals, plan.objective
        bound, by = _bound_of(plan, snapshot)
    return Judged(
        moves=moves,
        before=evaluate(snapshot, goals, ()),
        after=evaluate(snapshot, goals, moves),
        ours=ours,
        bound=bound,
        by=by,
    )


def _beside_plan(plan_file: Path, snapshot: Snapshot) -> Plan:
    document = read_document(plan_file, KIND, major=1)
    plan = plan_of_document(document, plan_file)
    for claim in (hash_claim(document), snapshot_claim(plan, snapshot)):
        if not claim.holds:
            raise ConfigError(
                f"{plan_file} cannot judge this reassignment: {claim.words}"
            )
    return plan


def _bound_of(plan: Plan, snapshot: Snapshot) -> tuple[float, str]:
    """The plan's bound and who answers for it."""
    prices = {b.id: b.bound_prices for b in plan.brokers}
    proved = price_bound(snapshot, plan.goals, prices, plan.repaired)
    if proved >= plan.bound:
        return proved, "the plan's prices, recomputed"
    return plan.bound, f"{plan.bound_method}, as the plan claims"


def _judged_text(judged: Judged) -> str:
    after, before = judged.after, judged.before
    lines = [
        f"{count_text(len(judged.moves), 'change')}: objective "
        f"{before.objective:.6g} -> {after.objective:.6g} (deviation "
        f"{before.deviation:.6g} -> {after.deviation:.6g}, price of the moves "
        f"{after.prices:.6g})",
        f"bound {judged.bound:.6g} by {judged.by}; gap {judged.gap:.3g}; "
        f"{percent_text(judged.gained)} of what can be gained",
    ]
    if judged.ours is not None:
        lines.append(f"plimsoll's plan: objective {judged.ours:.6g}")
    broken = after.violations
    kept = "every rule is kept"
    lines.append(kept if not broken else f"{count_text(len(broken), 'rule')} broken:")
    lines += [f"  {v.rule}: {v.words}" for v in broken]
    return "\n".join(lines) + "\n"


def _judged_document(judged: Judged) -> str:
    after = judged.after
    document: dict[str, Any] = {
        "changes": len(judged.moves),
        "objective_before": rounded(judged.before.objective),
        "objective": rounded(after.objective),
        "deviation": rounded(after.deviation),
        "prices": rounded(after.prices),
        "bound": rounded(judged.bound),
        "bound_by": judged.by,
        "gap": rounded(judged.gap),
        "gained_share": rounded(judged.gained),
        "plimsoll_objective": None if judged.ours is None else rounded(judged.ours),
        "violations": [{"rule": v.rule, "words": v.words} for v in after.violations],
    }
    return json_text(document)
