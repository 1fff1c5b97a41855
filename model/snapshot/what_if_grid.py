"""Answers to many what-if questions at once, side by side."""

from typing import Final, Literal

from model.files import FileModel, VersionedModel
from model.goals.goals import SolveLimits
from model.plan.plan import Plan, PlanStatus
from model.snapshot.what_if import Scenario

KIND: Final = "plimsoll.what-if-grid"
SCHEMA_VERSION: Final = "1.0"


class GridCell(FileModel):
    """The answer for one scenario of a grid."""

    scenario: Scenario
    words: str
    """The scenario in words."""
    lost: int
    """Partitions that the scenario leaves without any live replica."""
    status: PlanStatus
    reasons: tuple[str, ...] = ()
    """Why there is no plan, or what a plan has to leave unchanged."""
    objective_before: float | None = None
    """F after the scenario and before the plan; None without a plan, as all that follows."""
    objective: float | None = None
    """F after the plan, with the cost of its moves."""
    bound: float | None = None
    """No allowed plan has an F below this."""
    moves: int | None = None
    leader_changes: int | None = None
    bytes_to_copy: int | None = None
    """None, too, if a size is unknown."""
    worst_deviation: float | None = None
    """Largest deviation from the average after the plan, of any broker and resource; 0.08 is
    8 % of the average."""
    over_limit: int | None = None
    """Brokers over a limit after the plan."""


class WhatIfGrid(VersionedModel):
    """One answer for each scenario of a grid. No command executes such a file."""

    kind: Literal["plimsoll.what-if-grid"] = KIND
    schema_version: str = SCHEMA_VERSION
    hypothetical: Literal[True] = True
    limits: SolveLimits
    """Of each solve; every scenario has the whole search budget."""
    cells: tuple[GridCell, ...]


def cell_of(
    scenario: Scenario, lost: int, status: PlanStatus, reasons: tuple[str, ...], plan: Plan | None
) -> GridCell:
    """Summarise the answer for one scenario; `plan` is None where there is none."""
    cell = GridCell(
        scenario=scenario, words=scenario.words(), lost=lost, status=status, reasons=reasons
    )
    if plan is None:
        return cell
    deviations = (abs(d) for b in plan.brokers for d in b.deviation_after.values())
    over = {o.broker for o in plan.over_limit if o.remains}
    return cell.model_copy(
        update={
            "objective_before": plan.objective_before,
            "objective": plan.objective,
            "bound": plan.bound,
            "moves": len(plan.moves),
            "leader_changes": plan.leader_changes,
            "bytes_to_copy": plan.bytes_to_copy,
            "worst_deviation": max(deviations, default=0.0),
            "over_limit": len(over),
        }
    )
