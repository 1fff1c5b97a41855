"""`plimsoll frontier`: what balance can be had for how many moves."""

import sys
from pathlib import Path
from typing import Final

from control.cli.exit_codes import Exit
from control.cli.input_source import (
    Origin,
    check_racks,
    goals_of,
    plannable,
    warn_of_ignored,
)
from control.cli.output_files import SVG, check_file
from control.cli.output_format import Form
from control.cli.progress_line import FRONTIER, shown
from control.planning.frontier_points import checked, with_plan
from control.planning.validate import refuse_broken
from control.render.frontier_svg import frontier_svg, marks
from control.render.plan_text import json_text, table
from control.settings.settings import Settings
from model.errors import ConfigError
from model.files import replace_file, write_document
from model.goals.goals import Goals, SolveLimits
from model.plan.frontier import (
    KIND,
    Frontier,
    FrontierPoint,
    undominated,
)
from model.snapshot.snapshot import Snapshot
from model.units import bytes_text, count_text
from solver.search.observer import SolveObserver
from solver.solve import solve
from solver.studies.trace_frontier import trace_plans

TRACE_SHARE: Final = 0.25
"""Share of the search budget that the other points have, whatever the plan took."""


def make(
    settings: Settings,
    origin: Origin,
    *,
    goals_file: Path | None,
    out: Path | None,
    svg: Path | None,
    output: Form,
) -> int:
    """Trace the frontier, and print or write it; changes nothing.

    Options: what `plan` takes for the cluster and its goals; `--out FILE` for the
    JSON, `--svg FILE` for the picture.
    """
    check_file(out, KIND)
    check_file(svg, SVG)
    goals = goals_of(settings, goals_file, origin)
    snapshot = origin.read(settings)
    goals = plannable(goals, snapshot)
    check_racks(snapshot, goals, None)
    warn_of_ignored(snapshot, goals)
    frontier, stopped = shown(
        lambda observer: (
            trace_around_plan(snapshot, goals, settings.solve, observer),
            observer.stops(),
        ),
        kept=FRONTIER,
    )
    document = frontier.model_dump(mode="json")
    if out is not None:
        write_document(out, document)
    if svg is not None:
        _write(svg, frontier_svg(frontier))
    if output is Form.JSON:
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write(_text(frontier))
    if stopped:
        return Exit.INCOMPLETE
    return Exit.DONE if frontier.points else Exit.INFEASIBLE


def trace_around_plan(
    snapshot: Snapshot, goals: Goals, limits: SolveLimits, observer: SolveObserver
) -> Frontier:
    """The frontier around the plan that `solve` makes of equal arguments.

    The plan has the whole search budget, or it would be another one; the other points
    have what it leaves of that, and `TRACE_SHARE` of it at least.
    """
    result = solve(snapshot, goals, limits, observer)
    if result.best is not None:
        refuse_broken(snapshot, result.best)
    work = max(limits.work - result.work, TRACE_SHARE * limits.work)
    rest = limits.model_copy(update={"work": work})
    frontier, answers = trace_plans(snapshot, goals, rest, observer)
    whole = frontier.model_copy(update={"limits": limits, "chosen": None})
    return with_plan(checked(snapshot, whole, answers), result).frontier


def _write(path: Path, text: str) -> None:
    try:
        replace_file(path, text.encode(), shared=True)
    except OSError as exc:
        raise ConfigError(f"cannot write {path}: {exc.strerror}") from exc


def _text(frontier: Frontier) -> str:
    if not frontier.points:
        return f"no frontier: {'; '.join(frontier.reasons) or 'no plan was found'}\n"
    what = {
        "deviation": "unevenness is the weighted squared deviations from the level",
        "excess": "unevenness is the excess over the bands, in levels",
    }
    count = count_text(len(frontier.points), "plan")
    lines = [f"{count} in order of price; {what[frontier.measure]}"]
    if len(undominated(frontier.points)) < len(frontier.points):
        lines.append(
            "another point is cheaper and more even than the plan, within its gap"
        )
    if frontier.limited_by:
        lines.append(f"limited by: {frontier.limited_by}; solve.work allows more")
    if frontier.knee is not None:
        point = frontier.points[frontier.knee]
        lines.append(
            f"the knee is at {count_text(point.moves, 'move')}: before it a move buys "
            "much, after it little"
        )
    return "\n".join(lines) + "\n\n" + _table(frontier)


def _table(frontier: Frontier) -> str:
    rows = [
        [str(at + 1), *_cells(point), _named(marks(frontier, at))]
        for at, point in enumerate(frontier.points)
    ]
    headers = [
        "point",
        "moves",
        "leaders",
        "copies",
        "price in moves",
        "unevenness",
        "proved bound",
        "at move price",
        "",
    ]
    return table(headers, rows)


def _named(words: list[str]) -> str:
    return f"({', '.join(words)})" if words else ""


def _cells(point: FrontierPoint) -> list[str]:
    return [
        str(point.moves),
        str(point.leader_changes),
        bytes_text(point.bytes_to_copy),
        f"{point.cost:.4g}",
        f"{point.balance:.4g}",
        f"{point.bound:.4g}",
        f"{point.move_price:.3g}",
    ]
