"""`plimsoll frontier`: how much balance each number of moves buys."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from control.cli.exit_codes import Exit
from control.cli.options import GoalsFile, Output, output_file
from control.cli.output import Form
from model.errors import ConfigError

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings
    from model.goals.goals import Goals, SolveLimits
    from model.plan.frontier import Frontier
    from model.snapshot.snapshot import Snapshot
    from solver.search.observer import SolveObserver
    from solver.studies.solve_tasks import SolveAll

TRACE_SHARE: Final = 0.25
"""Least share of the search budget that the points beside the plan get."""


def frontier(
    *,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: Annotated[
        Path | None, output_file(help="Write the frontier here (.json, .json.gz).")
    ] = None,
    svg: Annotated[Path | None, output_file(help="Draw the frontier here (.svg).")] = None,
    output: Output = Form.TABLE,
) -> int:
    """Trace the frontier around the plan; print, draw or write it."""
    from control import compose
    from control.cli.input_source import (
        check_racks,
        goals_of,
        plannable,
        snapshot_of,
        warn_of_ignored,
    )
    from control.cli.output_files import SVG, check_file
    from control.cli.progress_line import FRONTIER, shown
    from control.render.frontier_svg import frontier_svg
    from control.render.frontier_table import frontier_text
    from control.render.text import answer_text
    from model.files import write_document
    from model.plan.frontier import KIND

    check_file(out, KIND)
    check_file(svg, SVG)
    wanted = goals_of(settings, goals, origin)
    snapshot = snapshot_of(settings, origin)
    wanted = plannable(wanted, snapshot)
    check_racks(snapshot, wanted, None)
    warn_of_ignored(snapshot, wanted)
    with compose.solves(settings) as solve_all:
        found, stopped = shown(
            lambda observer: (
                trace_around_plan(snapshot, wanted, settings.solve.limits, observer, solve_all),
                observer.stops(),
            ),
            kept=FRONTIER,
        )
    if out is not None:
        write_document(out, found.model_dump(mode="json"))
    if svg is not None:
        _write(svg, frontier_svg(found))
    sys.stdout.write(answer_text(found, frontier_text, output))
    if stopped:
        return Exit.INCOMPLETE
    return Exit.DONE if found.points else Exit.INFEASIBLE


def trace_around_plan(
    snapshot: "Snapshot",
    goals: "Goals",
    limits: "SolveLimits",
    observer: "SolveObserver",
    solve_all: "SolveAll",
) -> "Frontier":
    """The frontier around the plan that `solve` makes of the same arguments.

    The plan gets the whole search budget, so that it is the same plan; the other points
    get what it leaves of the budget, and at least `TRACE_SHARE` of it.
    """
    from control.planning.frontier_points import checked, with_plan
    from control.planning.validate import refuse_broken
    from solver.solve import solve
    from solver.studies.trace_frontier import trace_plans

    result = solve(snapshot, goals, limits, observer)
    refuse_broken(snapshot, result.best)
    work = max(limits.work - result.work, TRACE_SHARE * limits.work)
    rest = limits.model_copy(update={"work": work})
    frontier, answers = trace_plans(snapshot, goals, rest, observer, solve_all)
    whole = frontier.model_copy(update={"limits": limits, "chosen": None})
    return with_plan(checked(snapshot, whole, answers), result).frontier


def _write(path: Path, text: str) -> None:
    from model.files import replace_file

    try:
        replace_file(path, text.encode(), shared=True)
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc
