"""`plimsoll what-if`: a plan for a hypothetical cluster."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit, exit_of_plan
from control.cli.options import GoalsFile, Output, PlanEffort, output_file
from control.cli.output import Form

if TYPE_CHECKING:
    from control.cli.invocation import Origin
    from control.settings.settings import Settings
    from model.goals.effort import Effort
    from model.goals.goals import Goals, SolveLimits
    from model.snapshot.snapshot import Snapshot
    from model.snapshot.what_if import Scenario, WhatIf


def what_if(
    *,
    add_broker: Annotated[
        list[str] | None,
        typer.Option(metavar="COUNT[:RACK]", help="Add this many brokers. Repeatable."),
    ] = None,
    remove_broker: Annotated[
        list[int] | None, typer.Option(metavar="ID", help="Remove this broker. Repeatable.")
    ] = None,
    traffic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACTOR[:PATTERN]", help="Multiply the traffic of topics. Repeatable."
        ),
    ] = None,
    lose_rack: Annotated[
        list[str] | None, typer.Option(metavar="RACK", help="Lose this rack. Repeatable.")
    ] = None,
    fewest_brokers: Annotated[
        bool,
        typer.Option("--fewest-brokers", help="Find the smallest sufficient number of brokers."),
    ] = False,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            metavar="AXIS=VALUE,...",
            help="Answer for each value: of add-broker, remove-broker, traffic or lose-rack, or "
            "none. Repeatable: all combinations. Executors of --spark-master share the work.",
        ),
    ] = None,
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    effort: PlanEffort = None,
    out: Annotated[
        Path | None, output_file(help="Write the answer here (.json, .json.gz).")
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Plan for the cluster after the given changes; print or write the answer."""
    from control.cli.input_source import check_racks, goals_of, snapshot_of
    from control.cli.output_files import check_file
    from control.planning.scenario_flags import scenario_of
    from control.planning.scenario_grid import grid_of
    from control.render.text import answer_text
    from control.render.what_if_answer import what_if_text
    from control.settings.solve_table import limits_at
    from model.errors import ConfigError
    from model.files import write_document
    from model.goals.effort import Effort
    from model.snapshot.what_if import KIND
    from model.snapshot.what_if_grid import KIND as GRID_KIND

    scenario = scenario_of(
        add_broker=add_broker or (),
        remove_broker=remove_broker or (),
        traffic=traffic or (),
        lose_rack=lose_rack or (),
        fewest_brokers=fewest_brokers,
        grid=bool(grid),
    )
    if grid and fewest_brokers:
        raise ConfigError("--grid and --fewest-brokers exclude each other; use only one")
    effort = effort or settings.solve.effort
    if effort is Effort.QUICK and (grid or fewest_brokers):
        raise ConfigError(
            f"{'--grid' if grid else '--fewest-brokers'} needs replica moves, and the effort quick "
            "makes none; give --effort good"
        )
    cells = grid_of(grid, scenario) if grid else ()
    check_file(out, GRID_KIND if grid else KIND)
    wanted = goals_of(settings, goals, origin)
    snapshot = snapshot_of(settings, origin)
    check_racks(snapshot, wanted, None)
    if cells:
        return _grid(snapshot, cells, wanted, settings, effort, out, output)
    limits = limits_at(settings.solve, effort)
    answer = _answer(snapshot, scenario, wanted, limits, effort, fewest=fewest_brokers)
    if out is not None:
        write_document(out, answer.model_dump(mode="json"))
    sys.stdout.write(answer_text(answer, what_if_text, output))
    return exit_of_plan(answer.status) or Exit.DONE


def _grid(
    snapshot: "Snapshot",
    cells: "tuple[Scenario, ...]",
    goals: "Goals",
    settings: "Settings",
    effort: "Effort",
    out: Path | None,
    output: Form,
) -> int:
    """Solve a grid of scenarios; print or write the answers."""
    from control import compose
    from control.cli.input_source import with_placements
    from control.cli.progress_line import GRID, shown
    from control.planning.scenario_grid import solve_grid
    from control.render.text import answer_text
    from control.render.what_if_answer import grid_text
    from control.settings.solve_table import limits_at
    from model.files import write_document

    goals = with_placements(goals, snapshot)
    limits = limits_at(settings.solve, effort)
    with compose.solves(settings) as solve_all:
        answer = shown(
            lambda observer: solve_grid(snapshot, cells, goals, limits, observer, solve_all),
            kept=GRID,
        )
    if out is not None:
        write_document(out, answer.model_dump(mode="json"))
    sys.stdout.write(answer_text(answer, grid_text, output))
    return Exit.DONE if len(answer.cells) == len(cells) else Exit.INCOMPLETE


def _answer(
    snapshot: "Snapshot",
    scenario: "Scenario",
    goals: "Goals",
    limits: "SolveLimits",
    effort: "Effort",
    *,
    fewest: bool,
) -> "WhatIf":
    from control.cli.input_source import plannable, with_placements
    from control.cli.progress_line import PLAN, shown
    from control.planning.efforts import goals_at
    from control.planning.scenario_flags import judged
    from model.snapshot.what_if import lost_partitions, suppose
    from solver.solve import solve
    from solver.studies.min_brokers import fewest_brokers

    changed = suppose(snapshot, scenario)
    lost = len(lost_partitions(snapshot, changed))
    if not fewest:
        at = goals_at(changed, plannable(goals, changed), effort)
        result = shown(lambda observer: solve(changed, at.goals, limits, observer), kept=PLAN)
        answer = judged(changed, scenario, result, lost)
        return answer.model_copy(update={"reasons": (*at.notes, *answer.reasons)})
    # Added brokers may take partitions that fit nowhere now, so nothing is deferred.
    goals = with_placements(goals, changed)
    found = shown(lambda observer: fewest_brokers(changed, goals, limits, observer), kept=PLAN)
    reasons = found.result.reasons
    if found.answer is None:
        found_none = f"no sufficient number of brokers was found; {found.need.words}"
        reasons = (found_none, *reasons)
    if found.limited_by:
        reasons = (*reasons, f"search for fewer brokers: {found.limited_by}")
    answer = judged(found.snapshot, scenario, found.result, lost)
    return answer.model_copy(update={"fewest_brokers": found.answer, "reasons": reasons})
