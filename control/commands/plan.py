"""`plimsoll plan`: a plan and its proof; nothing is changed."""

import sys
from pathlib import Path

from control import compose
from control.commands.status import FIRST_LOADS_S
from control.exits import Exit
from control.form import Form
from control.judge import refuse_broken, with_recent_moves
from control.render import json_text, plan_text
from control.settings import Settings
from model.files import write_document
from model.plan import Plan, PlanStatus, write_plan
from model.reassignment import reassignment, rollback
from model.snapshot import Snapshot
from model.snapshot_file import read_snapshot
from solver.result import Result
from solver.solve import solve

EXITS = {
    PlanStatus.INFEASIBLE: Exit.INFEASIBLE,
    PlanStatus.NONE_IN_TIME: Exit.INCOMPLETE,
    PlanStatus.STOPPED: Exit.INCOMPLETE,
}


def make(
    settings: Settings,
    snapshot_file: Path | None,
    *,
    out: Path | None,
    stock: Path | None,
    output: Form,
) -> int:
    """Plan a recorded snapshot, or a live cluster, and print or write the answer."""
    snapshot = read_snapshot(snapshot_file) if snapshot_file else _live(settings)
    result = solve(snapshot, settings.goals, settings.solve)
    if result.best is not None:
        refuse_broken(snapshot, result.best)
        _write(result.best, out, stock)
    sys.stdout.write(_text(result, output))
    if result.best is not None and result.best.moves:
        return Exit.MOVES_PROPOSED
    return EXITS.get(result.status, Exit.DONE)


def _live(settings: Settings) -> Snapshot:
    with compose.observer(settings) as collector:
        snapshot = collector.wait(FIRST_LOADS_S)
    read = compose.recent_moves(settings)
    return with_recent_moves(snapshot, settings.goals, read)


def _write(plan: Plan, out: Path | None, stock: Path | None) -> None:
    if out is not None:
        write_plan(out, plan)
    if stock is not None:
        stock.mkdir(parents=True, exist_ok=True)
        write_document(stock / "reassignment.json", reassignment(plan))
        write_document(stock / "rollback.json", rollback(plan))


def _text(result: Result, output: Form) -> str:
    if output is Form.JSON:
        plan = result.best.model_dump(mode="json") if result.best else None
        document = {"status": result.status.value, "reasons": list(result.reasons)}
        return json_text(document | {"plan": plan})
    if result.best is None:
        return result.summary() + "\n"
    return plan_text(result.best, result.summary())
