"""`plimsoll plan`: a plan and its proof; nothing is changed."""

import sys
from collections.abc import Sequence
from pathlib import Path

from control import compose
from control.cli.exit_codes import Exit
from control.cli.input_source import (
    Origin,
    check_racks,
    goals_of,
    plannable,
)
from control.cli.output_files import check_file, check_folder
from control.cli.output_format import Form
from control.cli.progress_line import PLAN, shown
from control.planning.topic_mode import SkewChange, goals_for, skew_changes
from control.planning.validate import refuse_broken
from control.render.plan_text import (
    json_text,
    plan_text,
    skew_document,
    skew_text,
)
from control.settings.settings import Settings
from model.exchange.reassignment import write_reassignment_json
from model.goals.goals import Goals, without_replica_moves
from model.plan.outages import outage_notes
from model.plan.plan import KIND, Plan, PlanStatus, write_plan
from model.plan.remaining import remaining_words
from model.snapshot.snapshot import Count, Snapshot, has_shared
from solver.report.result import Result
from solver.solve import solve

EXITS = {
    PlanStatus.INFEASIBLE: Exit.INFEASIBLE,
    PlanStatus.NONE_IN_TIME: Exit.INCOMPLETE,
    PlanStatus.STOPPED: Exit.INCOMPLETE,
}


def make(
    settings: Settings,
    origin: Origin,
    *,
    goals_file: Path | None,
    topics: Sequence[str],
    leaders_only: bool,
    out: Path | None,
    reassignment_json: Path | None,
    output: Form,
) -> int:
    """Plan a live cluster or one in files, and print or write the answer."""
    check_file(out, KIND)
    check_folder(reassignment_json)
    goals = goals_of(settings, goals_file, origin)
    snapshot = origin.read(settings)
    goals = plannable(goals, snapshot)
    if topics:
        goals = goals_for(goals, snapshot, topics)
    if leaders_only:
        goals = without_replica_moves(goals)
    check_racks(snapshot, goals, reassignment_json)
    _warn_of_unknown_loads(snapshot, goals)
    result = shown(
        lambda observer: solve(snapshot, goals, settings.solve, observer), kept=PLAN
    )
    if result.best is not None:
        refuse_broken(snapshot, result.best)
        _write(result.best, out, reassignment_json)
        _warn_of_what_remains(result.best)
    skew = skew_changes(snapshot, result.best, topics)
    notes = [*outage_notes(snapshot)]
    if origin.is_live:
        notes += compose.rebalancers(settings, shared=has_shared(snapshot))
    sys.stdout.write(_text(result, skew, output, notes))
    found = result.best is not None and result.best.moves
    if found and result.status is not PlanStatus.STOPPED:
        return Exit.MOVES_PROPOSED
    return EXITS.get(result.status, Exit.DONE)


def _warn_of_unknown_loads(snapshot: Snapshot, goals: Goals) -> None:
    counted = any(isinstance(goal.resource, Count) for goal in goals.balance)
    if len(snapshot) and not snapshot.header.resources and not counted:
        sys.stderr.write(
            "plimsoll: no loads are known, so nothing but forced moves is planned; "
            "say --loads FILE, or level counts by --topic or --goals\n"
        )


def _warn_of_what_remains(plan: Plan) -> None:
    for words in remaining_words(plan.over_limit, plan.rack_violations):
        sys.stderr.write(f"plimsoll: warning: {words}\n")


def _write(plan: Plan, out: Path | None, reassignment_json: Path | None) -> None:
    if out is not None:
        write_plan(out, plan)
    if reassignment_json is not None:
        write_reassignment_json(reassignment_json, plan)


def _text(
    result: Result, skew: Sequence[SkewChange], output: Form, notes: Sequence[str]
) -> str:
    if output is Form.JSON:
        notes_or_none = {"notes": list(notes)} if notes else {}
        return json_text(_document(result, skew) | notes_or_none)
    text = result.summary() + "\n"
    if result.best is not None:
        text = plan_text(result.best, result.summary())
    text += "".join("\n" + skew_text(s.before, s.after) for s in skew)
    return text + "".join(f"\n{words}\n" for words in notes)


def _document(result: Result, skew: Sequence[SkewChange]) -> dict[str, object]:
    plan = result.best.model_dump(mode="json") if result.best else None
    document = {"status": result.status.value, "reasons": list(result.reasons)}
    spread = {s.before.topic: skew_document(s.before, s.after) for s in skew}
    return document | {"plan": plan} | ({"skew": spread} if skew else {})
