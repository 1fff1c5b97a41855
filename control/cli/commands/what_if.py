"""`plimsoll what-if`: a plan for a hypothetical cluster."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from control.cli.exit_codes import Exit, exit_of_plan
from control.cli.options import GoalsFile, Output, output_option
from control.cli.output_format import Form

if TYPE_CHECKING:
    from control.cli.input_source import Origin
    from control.settings.settings import Settings
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
    settings: "Settings",
    origin: "Origin",
    goals: GoalsFile = None,
    out: Annotated[
        Path | None, output_option(metavar="FILE", help="Write the answer here (.json, .json.gz).")
    ] = None,
    output: Output = Form.TABLE,
) -> int:
    """Plan for the cluster after the given changes; print or write the answer."""
    from control.cli.input_source import check_racks, goals_of
    from control.cli.output_files import check_file
    from control.planning.scenario_flags import ScenarioFlags
    from control.render.text import json_text
    from control.render.what_if_answer import answer_text
    from model.files import write_document
    from model.snapshot.what_if import KIND

    scenario = ScenarioFlags(
        add_broker=add_broker or (),
        remove_broker=remove_broker or (),
        traffic=traffic or (),
        lose_rack=lose_rack or (),
        fewest_brokers=fewest_brokers,
    ).scenario()
    check_file(out, KIND)
    wanted = goals_of(settings, goals, origin)
    snapshot = origin.read(settings)
    check_racks(snapshot, wanted, None)
    ask = _fewest_brokers if fewest_brokers else _plan
    answer = ask(snapshot, scenario, wanted, settings.solve)
    document = answer.model_dump(mode="json")
    if out is not None:
        write_document(out, document)
    text = json_text(document) if output is Form.JSON else answer_text(answer)
    sys.stdout.write(text)
    return exit_of_plan(answer.status) or Exit.DONE


def _plan(
    snapshot: "Snapshot", scenario: "Scenario", goals: "Goals", limits: "SolveLimits"
) -> "WhatIf":
    from control.cli.input_source import plannable
    from control.cli.progress_line import PLAN, shown
    from control.planning.scenario_flags import judged
    from model.snapshot.what_if import lost_partitions, suppose
    from solver.solve import solve

    changed = suppose(snapshot, scenario)
    goals = plannable(goals, changed)
    result = shown(lambda observer: solve(changed, goals, limits, observer), kept=PLAN)
    return judged(changed, scenario, result, len(lost_partitions(snapshot, changed)))


def _fewest_brokers(
    snapshot: "Snapshot", scenario: "Scenario", goals: "Goals", limits: "SolveLimits"
) -> "WhatIf":
    from control.cli.input_source import with_placements
    from control.cli.progress_line import PLAN, shown
    from control.planning.scenario_flags import judged
    from model.snapshot.what_if import lost_partitions, suppose
    from solver.studies.min_brokers import fewest_brokers

    changed = suppose(snapshot, scenario)
    # Added brokers may take partitions that fit nowhere now, so nothing is deferred.
    goals = with_placements(goals, changed)
    fewest = shown(lambda observer: fewest_brokers(changed, goals, limits, observer), kept=PLAN)
    reasons = fewest.result.reasons
    if fewest.answer is None:
        found_none = f"no sufficient number of brokers was found; {fewest.need.words}"
        reasons = (found_none, *reasons)
    if fewest.limited_by:
        reasons = (*reasons, f"search for fewer brokers: {fewest.limited_by}")
    lost = len(lost_partitions(snapshot, changed))
    answer = judged(fewest.snapshot, scenario, fewest.result, lost)
    return answer.model_copy(update={"fewest_brokers": fewest.answer, "reasons": reasons})
