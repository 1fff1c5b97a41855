"""`plimsoll plan`: a plan and the proof of how good it is."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from control.cli.completion import topic_names
from control.cli.exit_codes import Exit, exit_of_plan
from control.cli.options import GoalsFile, Output, PlanEffort, output_file, output_option
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings
    from model.goals.goals import Goals
    from model.plan.plan import Plan
    from model.snapshot.snapshot import Snapshot

MOST_SEEDS: Final = 1_000
"""Seeds that one plan may be searched with."""


def plan(
    *,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    effort: PlanEffort = None,
    stages: Annotated[
        bool,
        typer.Option(
            "--stages", help="Plan at every effort, and print what each reaches at which expense."
        ),
    ] = False,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC",
            autocompletion=topic_names,
            help="Move only this topic's partitions. Repeatable.",
        ),
    ] = None,
    leaders_only: Annotated[
        bool,
        typer.Option("--leaders-only", help="Change leaders only: no replica moves, no copying."),
    ] = False,
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            max=MOST_SEEDS,
            help="Search this often with different seeds, and keep the best plan. Executors of "
            "--spark-master share the work.",
        ),
    ] = 1,
    from_plan: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Stay near this earlier plan of the cluster: change what it moves only where "
            "that gains more than a quarter of a move's cost.",
        ),
    ] = None,
    out: Annotated[Path | None, output_file(help="Write the plan here (.json, .json.gz).")] = None,
    reassignment_json: Annotated[
        Path | None,
        output_option(
            "--reassignment-json",
            "--stock",
            metavar="DIR",
            help="Write the plan here as Kafka reassignment JSON, with its rollback.",
        ),
    ] = None,
    detailed_exitcode: Annotated[
        bool,
        output_option(
            "--detailed-exitcode/--no-detailed-exitcode",
            help="Exit with 10 when moves are proposed.",
        ),
    ] = False,
    output: Output = Form.TABLE,
) -> int:
    """Plan for a live cluster or one read from files; print or write the result.

    Raises ConfigError for `--stages` with an option that needs a single plan.
    """
    from control import compose
    from control.cli.input_source import check_racks, goals_of, plannable, snapshot_of
    from control.cli.output_files import check_file, check_folder
    from control.cli.progress_line import PLAN, shown
    from control.planning.efforts import goals_at
    from control.planning.plan_gain import PlanGain
    from control.planning.topic_mode import goals_for, skew_changes
    from control.planning.validate import refuse_broken
    from control.render.plan_text import ChosenPlan, result_text
    from control.settings.solve_table import limits_at
    from model.goals.goals import without_replica_moves
    from model.plan.outages import outage_notes
    from model.plan.plan import KIND, PlanStatus
    from model.snapshot.snapshot import has_shared
    from solver.studies.best_seed import best_of_seeds

    if stages:
        _refuse_single(
            {
                "--effort": effort,
                "--out": out,
                "--reassignment-json": reassignment_json,
                "--from-plan": from_plan,
                "--leaders-only": leaders_only or None,
                "--seeds": seeds if seeds > 1 else None,
                "--detailed-exitcode": detailed_exitcode or None,
            }
        )
    effort = effort or settings.solve.effort
    topics = topic or ()
    check_file(out, KIND)
    check_folder(reassignment_json)
    wanted = goals_of(settings, goals, origin)
    snapshot = snapshot_of(settings, origin)
    wanted = plannable(wanted, snapshot)
    if topics:
        wanted = goals_for(wanted, snapshot, topics)
    if stages:
        check_racks(snapshot, wanted, None)
        _warn_of_unknown_loads(snapshot, wanted)
        return _stages(settings, snapshot, wanted, output)
    if leaders_only:
        wanted = without_replica_moves(wanted)
    earlier = None if from_plan is None else _earlier(from_plan, snapshot)
    check_racks(snapshot, wanted, reassignment_json)
    _warn_of_unknown_loads(snapshot, wanted)
    at = goals_at(snapshot, wanted, effort)
    limits = limits_at(settings.solve, effort)
    with compose.solves(settings) if seeds > 1 else nullcontext(None) as solve_all:
        result = shown(
            lambda observer: best_of_seeds(
                snapshot, at.goals, limits, observer, seeds, solve_all, earlier
            ),
            kept=PLAN,
        )
    refuse_broken(snapshot, result.best)
    if result.best is not None:
        _write(result.best, out, reassignment_json)
    skew = skew_changes(snapshot, result.best, topics)
    notes = [*at.notes, *outage_notes(snapshot)]
    if origin.is_live:
        notes += compose.rebalancers(settings, shared=has_shared(snapshot))
    chosen = None
    if result.best is not None:
        seconds = compose.durations(settings)(result.best)
        chosen = ChosenPlan(effort=effort, gain=PlanGain.of(result.best), seconds=seconds)
    sys.stdout.write(result_text(result, chosen, skew, output, notes))
    found = result.best is not None and result.best.moves
    if found and result.status is not PlanStatus.STOPPED:
        return Exit.MOVES_PROPOSED if detailed_exitcode else Exit.DONE
    return exit_of_plan(result.status) or Exit.DONE


def _refuse_single(given: dict[str, object]) -> None:
    """Refuse options of a single plan beside `--stages`; those not given are None."""
    from model.errors import ConfigError

    named = [flag for flag, value in given.items() if value is not None]
    if named:
        raise ConfigError(
            f"--stages prints the plans of all efforts, and {named[0]} is for a single one; "
            "omit one of them"
        )


def _stages(settings: "Settings", snapshot: "Snapshot", goals: "Goals", output: Form) -> int:
    """Print what each effort reaches.

    The exit code is that of the plan of `best`; INCOMPLETE if stopped before it.
    """
    from control import compose
    from control.cli.progress_line import STAGES, shown
    from control.planning.effort_stages import StageInputs, solve_stages
    from control.planning.planner import planner
    from control.render.effort_table import stages_answer, stages_text
    from control.render.text import json_text
    from model.goals.effort import Effort

    inputs = StageInputs(
        snapshot=snapshot,
        goals=goals,
        limits=settings.solve,
        planner=planner,
        duration=compose.durations(settings),
    )
    found = shown(lambda observer: solve_stages(inputs, observer), kept=STAGES)
    text = json_text(stages_answer(found)) if output is Form.JSON else stages_text(found)
    sys.stdout.write(text)
    if len(found) < len(Effort):
        return Exit.INCOMPLETE
    return exit_of_plan(found[-1].status) or Exit.DONE


def _earlier(path: Path, snapshot: "Snapshot") -> "Plan":
    """Read the plan to stay near to; ConfigError if it is of another cluster."""
    from model.errors import ConfigError
    from model.plan.plan import read_plan

    plan = read_plan(path)
    if plan.cluster_id != snapshot.header.cluster_id:
        raise ConfigError(
            f"--from-plan {path} is a plan for cluster {plan.cluster_id}, this is cluster "
            f"{snapshot.header.cluster_id}; give a plan of the same cluster"
        )
    return plan


def _warn_of_unknown_loads(snapshot: "Snapshot", goals: "Goals") -> None:
    from model.snapshot.snapshot import Count

    counted = any(isinstance(goal.resource, Count) for goal in goals.balance)
    if len(snapshot) and not snapshot.header.resources and not counted:
        sys.stderr.write(
            "plimsoll: no loads are known, so only moves that a rule requires are "
            "planned; give them with --loads FILE, or balance counts with --topic or "
            "--goals\n"
        )


def _write(plan: "Plan", out: Path | None, reassignment_json: Path | None) -> None:
    """Write the plan's files, and warn on stderr of what it leaves broken."""
    from model.exchange.reassignment import write_reassignment_json
    from model.plan.plan import write_plan
    from model.plan.remaining import remaining_text

    if out is not None:
        write_plan(out, plan)
    if reassignment_json is not None:
        write_reassignment_json(reassignment_json, plan)
    for warning in remaining_text(plan.over_limit, plan.rack_violations):
        sys.stderr.write(f"plimsoll: warning: {warning}\n")
