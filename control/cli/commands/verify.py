"""`plimsoll verify`: a plan checked by code that shares nothing with the search."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit
from control.cli.options import GoalsFile, Output
from control.cli.output import Form
from model.errors import ConfigError

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.cli.output_types import ClaimAnswer
    from control.render.verification import JudgedMoves
    from control.settings.settings import Settings
    from model.goals.goals import Goals
    from model.plan.plan import Move, Plan
    from model.snapshot.snapshot import Snapshot


def verify(
    plan_file: Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan file.")] = None,
    *,
    reassignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Check this kafka-reassign-partitions JSON instead."),
    ] = None,
    election: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="With --reassignment: the kafka-leader-election JSON that follows it.",
        ),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Prove a bound again that its certificate does not show."),
    ] = False,
    search_budget: Annotated[
        float | None,
        typer.Option(
            "--search-budget",
            "--work",
            metavar="UNITS",
            min=0.001,
            # `MOST` of the goals, whose import would slow every command down.
            max=1e9,
            help="With --prove: search budget, in units of about a second.",
        ),
    ] = None,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    output: Output = Form.TABLE,
) -> int:
    """Check a plan file, or anyone's reassignment by the goals of a plan.

    Exits with 5 where a claim does not hold or a rule is broken.

    Raises ConfigError where a file cannot be used, or there is nothing to check.
    """
    from control.cli.input_source import goals_of
    from control.render.verification import broken_claims, claims_text, judged_moves_text

    wanted = goals_of(settings, goals, origin)
    if reassignment is not None:
        judged = _reassignment(settings, wanted, origin, plan_file, reassignment, election)
        sys.stdout.write(judged_moves_text(judged, output))
        return Exit.REFUSED if judged.answer.violations else Exit.DONE
    if election is not None:
        raise ConfigError(
            "--election needs --reassignment FILE, the reassignment that it follows; name that too"
        )
    if plan_file is None:
        raise ConfigError("nothing to verify; name a plan file or --reassignment FILE")
    own_goals = goals is not None or origin.no_racks or bool(origin.placement)
    plan, snapshot, found = _claims(settings, wanted, origin, plan_file, own_goals=own_goals)
    if prove and found[1].holds:
        found = _proved(plan, snapshot, search_budget, found)
    sys.stdout.write(claims_text(plan, found, output))
    return Exit.REFUSED if broken_claims(found) else Exit.DONE


def _claims(
    settings: "Settings", wanted: "Goals", origin: "Origin", plan_file: Path, *, own_goals: bool
) -> "tuple[Plan, Snapshot, list[ClaimAnswer]]":
    """A plan, its snapshot and its claims: hash and snapshot first.

    A plan for another snapshot has no further claims.
    """
    from control.cli.input_source import snapshot_of
    from control.cli.plan_claims import claims, hash_claim, settings_claims, snapshot_claim
    from control.settings.solve_table import limits_at
    from model.files import read_document
    from model.goals.topic_placement import with_topic_placements
    from model.plan.plan import KIND, plan_of_document
    from model.plan.unplaceable import with_placeless_deferred

    document = read_document(plan_file, KIND, major=1)
    plan = plan_of_document(document, plan_file)
    snapshot = snapshot_of(settings, origin)
    found = [hash_claim(document), snapshot_claim(plan, snapshot)]
    if found[-1].holds:
        found += claims(plan, snapshot)
        limits = limits_at(settings.solve, settings.solve.effort)
        wanted = with_topic_placements(wanted, snapshot)
        wanted = with_placeless_deferred(wanted, snapshot)
        found += settings_claims(plan, wanted, limits, given=own_goals)
    return plan, snapshot, found


def _proved(
    plan: "Plan", snapshot: "Snapshot", budget: float | None, found: "list[ClaimAnswer]"
) -> "list[ClaimAnswer]":
    """The claims, with an undecided bound proved again."""
    from control.cli.plan_claims import prove_again
    from control.cli.progress_line import PROVED, shown

    again = shown(
        lambda observer: prove_again(plan, snapshot, budget or plan.limits.work, observer),
        kept=PROVED,
    )
    return [again if c.name == "bound" and c.holds is None else c for c in found]


def _reassignment(
    settings: "Settings",
    wanted: "Goals",
    origin: "Origin",
    plan_file: Path | None,
    reassignment: Path,
    election: Path | None,
) -> "JudgedMoves":
    from control.cli.input_source import snapshot_of
    from model.exchange.reassignment import moves_of, read_election, read_reassignment

    document = read_reassignment(reassignment)
    held = read_election(election) if election is not None else None
    snapshot = snapshot_of(settings, origin)
    moves = moves_of(snapshot, document, held)
    if plan_file is None:
        return _beside_own_plan(settings, wanted, snapshot, moves)
    return _beside_plan(plan_file, snapshot, moves)


def _beside_own_plan(
    settings: "Settings", wanted: "Goals", snapshot: "Snapshot", moves: "tuple[Move, ...]"
) -> "JudgedMoves":
    """Someone's moves beside a plan that is made for the comparison."""
    from control.cli.input_source import plannable
    from control.cli.progress_line import PROVED, shown
    from control.render.verification import JudgedMoves
    from model.plan.plan import PlanStatus
    from solver.solve import solve

    goals = plannable(wanted, snapshot)
    limits = settings.solve.limits
    result = shown(lambda observer: solve(snapshot, goals, limits, observer), kept=PROVED)
    method = result.best.bound_method if result.best else "nothing"
    method += ", stopped" if result.status is PlanStatus.STOPPED else ""
    return JudgedMoves.of(snapshot, goals, moves, result.objective, result.bound or 0.0, method)


def _beside_plan(plan_file: Path, snapshot: "Snapshot", moves: "tuple[Move, ...]") -> "JudgedMoves":
    """Someone's moves beside a plan file, whose bound is recomputed where possible."""
    from control.cli.plan_claims import hash_claim, proved_bound, snapshot_claim
    from control.render.verification import JudgedMoves
    from model.files import read_document
    from model.plan.plan import KIND, plan_of_document

    document = read_document(plan_file, KIND, major=1)
    plan = plan_of_document(document, plan_file)
    for claim in (hash_claim(document), snapshot_claim(plan, snapshot)):
        if not claim.holds:
            raise ConfigError(
                f"{plan_file} cannot be compared with this reassignment: {claim.words}"
            )
    bound, method = proved_bound(plan, snapshot), "the plan's prices, recomputed"
    if bound < plan.bound:
        bound, method = plan.bound, f"{plan.bound_method}, as the plan claims"
    return JudgedMoves.of(snapshot, plan.goals, moves, plan.objective, bound, method)
