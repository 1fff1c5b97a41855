"""The table of a fleet as text."""

from typing import Final

from control.cli.output_types import FleetAnswer, FleetClusterAnswer, WorstBrokerAnswer
from control.render.text import table
from control.service.member_state import MemberState
from model.snapshot.snapshot import BrokerState, dimension_words
from model.units import deviation_text, seconds_text

MOST_WORDS: Final = 70
"""Characters of a reason or message in a cell."""
_HEADERS: Final = ("cluster", "service", "worst broker", "data age", "run", "decision")


def fleet_text(answer: FleetAnswer) -> str:
    """A row for each cluster."""
    return table(_HEADERS, [_row(cluster) for cluster in answer.clusters])


def _row(row: FleetClusterAnswer) -> list[str]:
    return [
        row.name,
        f"{row.service}, paused" if row.paused else row.service,
        _worst(row),
        "-" if row.data_age_s is None else seconds_text(row.data_age_s),
        _run(row),
        _words(row),
    ]


def _worst(row: FleetClusterAnswer) -> str:
    worst = row.worst_broker
    if worst is None:
        return "-"
    if worst.deviation is None or worst.resource is None:
        return f"broker {worst.broker} {trouble_words(worst)}"
    name = dimension_words(worst.resource)
    return f"broker {worst.broker} {name} {deviation_text(worst.deviation)}"


def _run(row: FleetClusterAnswer) -> str:
    run = row.run
    if run is None:
        return "-"
    left = "" if run.left_s is None else f", {seconds_text(run.left_s)} left"
    return f"{run.done} of {run.moves} moves{left}"


def _words(row: FleetClusterAnswer) -> str:
    words = decision_words(row)
    return words if len(words) <= MOST_WORDS else f"{words[: MOST_WORDS - 3]}..."


def decision_words(row: FleetClusterAnswer) -> str:
    """The decision with its reason, or why there is none."""
    if row.service is not MemberState.RUNNING or row.decision is None:
        return row.message
    return ": ".join(filter(None, (row.decision, row.reason or row.message)))


def trouble_words(worst: WorstBrokerAnswer) -> str:
    """What is wrong with the worst broker of a cluster: `dead`, `disk failed`, `slow`."""
    is_dead = worst.state is BrokerState.DEAD
    return "disk failed" if worst.disk_failed and not is_dead else worst.state.words
