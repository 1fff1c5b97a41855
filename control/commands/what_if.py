"""`plimsoll what-if`: a plan of a cluster that is only supposed."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from control.commands.plan import EXITS
from control.exits import Exit
from control.form import Form
from control.judge import refuse_broken
from control.origin import Origin, goals_of
from control.render import json_text, plan_text
from control.settings import Settings
from model.errors import ConfigError
from model.files import write_document
from model.goals import Goals, SolveLimits
from model.ids import BrokerId
from model.names import Names
from model.scenario import (
    AddedBrokers,
    FewestBrokers,
    Scenario,
    Traffic,
    WhatIf,
    lost_partitions,
    suppose,
)
from model.snapshot import Snapshot
from model.units import count_text
from solver.fewest import fewest_brokers
from solver.result import Result
from solver.solve import solve


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the flags suppose, as they were typed."""

    add_broker: Sequence[str] = ()
    """`COUNT[:RACK]` each."""
    remove_broker: Sequence[int] = ()
    traffic: Sequence[str] = ()
    """`FACTOR[:PATTERN]` each."""
    lose_rack: Sequence[str] = ()
    fewest_brokers: bool = False

    def scenario(self) -> Scenario:
        """The scenario that the flags name.

        Raises
        ------
        ConfigError
            A flag cannot be read, or nothing is asked.
        """
        scenario = Scenario(
            add=tuple(_added(text) for text in self.add_broker),
            remove=tuple(sorted({BrokerId(b) for b in self.remove_broker})),
            traffic=tuple(_traffic(text) for text in self.traffic),
            lose_racks=tuple(sorted(set(self.lose_rack))),
        )
        if scenario == Scenario() and not self.fewest_brokers:
            raise ConfigError(
                "nothing is supposed; say --add-broker, --remove-broker, --traffic, "
                "--lose-rack or --fewest-brokers"
            )
        return scenario


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
    goals = goals_of(settings, goals_file)
    answer = _answer(origin.read(settings), scenario, goals, settings.solve, question)
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
        result = solve(supposed, goals, limits)
        return _judged(supposed, scenario, result, lost)
    fewest = fewest_brokers(supposed, goals, limits)
    result, reasons = fewest.result, fewest.result.reasons
    if fewest.answer is None:
        words = f"no number of brokers was found that can do; {fewest.need.words}"
        reasons = (words, *reasons)
    judged = _judged(fewest.snapshot, scenario, result, lost)
    told = {"fewest_brokers": fewest.answer, "reasons": reasons}
    return judged.model_copy(update=told)


def _judged(
    supposed: Snapshot, scenario: Scenario, result: Result, lost: int
) -> WhatIf:
    if result.best is not None:
        refuse_broken(supposed, result.best)
    return WhatIf(
        scenario=scenario,
        words=scenario.words(),
        lost=lost,
        status=result.status,
        reasons=result.reasons,
        plan=result.best,
    )


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


# ---- flags


def _added(text: str) -> AddedBrokers:
    count, colon, rack = text.partition(":")
    wrong = ConfigError(
        f"--add-broker {text!r} cannot be read; say a number of brokers from 1 on, "
        "and a rack if wanted: 2:RACK"
    )
    if not (count.isascii() and count.isdigit()) or (colon and not rack):
        raise wrong
    try:
        return AddedBrokers(count=int(count), rack=rack or None)
    except ValueError as exc:
        raise wrong from exc


def _traffic(text: str) -> Traffic:
    factor, colon, pattern = text.partition(":")
    try:
        topics = Names(regex=(pattern,)) if colon else None
        return Traffic(factor=float(factor), topics=topics)
    except ValueError as exc:
        raise ConfigError(
            f"--traffic {text!r} cannot be read; say a factor of 0 or more, and a "
            "regular expression of topics if wanted: 1.5:orders.*"
        ) from exc
