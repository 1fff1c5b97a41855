"""Simulated policies as text: a table to compare them, and what held each back."""

from typing import TYPE_CHECKING

from control.render.text import table, time_text
from model.units import bytes_text, count_text, percent_text, seconds_text

if TYPE_CHECKING:
    from control.cli.output_types import SimulateAnswer, TrialAnswer

HEADERS = (
    "policy",
    "outside",
    "imbalance",
    "regret",
    "runs/day",
    "moves/day",
    "copied/day",
    "undone",
    "worst hour",
    "deviation",
)


def simulation_text(answer: "SimulateAnswer") -> str:
    """The policies side by side, and the rules that held each back."""
    head = (
        f"{answer.cluster_id}: {count_text(answer.brokers, 'broker')}, "
        f"{count_text(answer.partitions, 'partition')}, {count_text(answer.days, 'day')} from "
        f"{time_text(answer.begin_ms)}\n\n"
    )
    rows = [_row(trial, answer.days) for trial in answer.policies]
    held = "".join(_held(trial) for trial in answer.policies)
    return head + table(HEADERS, rows) + held


def _row(trial: "TrialAnswer", days: int) -> tuple[str, ...]:
    undone = trial.undone / trial.moves if trial.moves else 0.0
    return (
        trial.policy,
        percent_text(trial.outside),
        f"{trial.imbalance:.4f}",
        f"{trial.regret:+.4f}",
        f"{trial.runs / days:.1f}",
        f"{trial.moves / days:.1f}",
        bytes_text(round(trial.bytes_copied / days)),
        f"{trial.undone} ({undone:.1%})",
        time_text(trial.worst.at_ms),
        percent_text(trial.worst.deviation),
    )


def _held(trial: "TrialAnswer") -> str:
    if not trial.held:
        return f"\n{trial.policy}: no rule held an action back\n"
    rows = [
        (rule, str(held.times), seconds_text(held.seconds))
        for rule, held in sorted(trial.held.items(), key=lambda item: -item[1].seconds)
    ]
    return f"\n{trial.policy}:\n" + table(("held back by", "times", "for"), rows)
