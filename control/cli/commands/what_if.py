"""`plimsoll what-if`: a plan of a cluster that is only supposed."""

import sys
from pathlib import Path

from control.cli.commands.plan import EXITS
from control.cli.exit_codes import Exit
from control.cli.input_source import (
    Origin,
    check_racks,
    goals_of,
    plannable,
    with_placements,
)
from control.cli.output_files import check_file
from control.cli.output_format import Form
from control.cli.progress_line import PLAN, shown
from control.planning.scenario_flags import Question, judged
from control.render.plan_text import json_text, plan_text
from control.settings.settings import Settings
from model.files import write_document
from model.goals.goals import Goals, SolveLimits
from model.snapshot.snapshot import Snapshot
from model.snapshot.what_if import (
    KIND,
    FewestBrokers,
    Scenario,
    WhatIf,
    lost_partitions,
    suppose,
)
from model.units import count_text
from solver.solve import solve
from solver.studies.min_brokers import fewest_brokers


def make(
    settings: Settings,
    origin: Origin,
    question: Question,
    *,
    goals_file: Path | None,
    out: Path | None,
    output: Form,
) -> int:
    """Plan what would be, and print or write the answer; changes nothing.

    Options: `--add-broker COUNT[:RACK]`, `--remove-broker ID`, `--traffic
    FACTOR[:PATTERN]`, `--lose-rack RACK`, each repeatable; `--fewest-brokers`; what
    `plan` takes for the cluster and its goals; `--out FILE`.
    """
    scenario = question.scenario()
    check_file(out, KIND)
    goals = goals_of(settings, goals_file, origin)
    snapshot = origin.read(settings)
    check_racks(snapshot, goals, None)
    answer = _answer(snapshot, scenario, goals, settings.solve, question)
    if out is not None:
        write_document(out, answer.model_dump(mode="json"))
    if output is Form.JSON:
        sys.stdout.write(json_text(answer.model_dump(mode="json")))
    else:
        sys.stdout.write(_text(answer))
    return EXITS.get(answer.status, Exit.DONE)


def _answer(
    snapshot: Snapshot,
    scenario: Scenario,
    goals: Goals,
    limits: SolveLimits,
    question: Question,
) -> WhatIf:
    supposed = suppose(snapshot, scenario)
    lost = len(lost_partitions(snapshot, supposed))
    if not question.fewest_brokers:
        goals = plannable(goals, supposed)
        result = shown(
            lambda observer: solve(supposed, goals, limits, observer), kept=PLAN
        )
        return judged(supposed, scenario, result, lost)
    # Brokers that are added may take what has no place now, so nothing is deferred.
    goals = with_placements(goals, supposed)
    fewest = shown(
        lambda observer: fewest_brokers(supposed, goals, limits, observer), kept=PLAN
    )
    result, reasons = fewest.result, fewest.result.reasons
    if fewest.answer is None:
        words = f"no number of brokers was found that can do; {fewest.need.words}"
        reasons = (words, *reasons)
    found = judged(fewest.snapshot, scenario, result, lost)
    if fewest.limited_by:
        reasons = (*reasons, f"search for fewer brokers: {fewest.limited_by}")
    told = {"fewest_brokers": fewest.answer, "reasons": reasons}
    return found.model_copy(update=told)


# ---- words


def _text(answer: WhatIf) -> str:
    lines = [f"what if: {answer.words}; hypothetical, nothing here can be applied"]
    if answer.lost:
        gone = count_text(answer.lost, "partition")
        lines.append(f"{gone} would have no replica left and stay offline")
    if answer.fewest_brokers is not None:
        lines += _fewest_words(answer.fewest_brokers)
    reasons = "; ".join(answer.reasons)
    if answer.plan is None:
        lines.append(f"{answer.status}: {reasons or 'no reason known'}")
        return "\n".join(lines) + "\n"
    summary = f"{answer.status}: {count_text(len(answer.plan.moves), 'move')}"
    if reasons:
        summary += f"; {reasons}"
    return "\n".join(lines) + "\n" + plan_text(answer.plan, summary)


def _fewest_words(found: FewestBrokers) -> list[str]:
    count = count_text(found.fewest, "broker")
    enough = f"{count} can carry it; there are {found.present}"
    if found.fewest == found.bound:
        proof = f"fewer cannot: {found.binding}"
    else:
        proof = f"fewer than {found.bound} cannot: {found.binding}"
    lines = [f"{enough}; {proof}"]
    if found.removed:
        lines.append(f"drained: {', '.join(map(str, found.removed))}")
    if found.added:
        lines.append(f"added: {', '.join(map(str, found.added))}")
    return lines
