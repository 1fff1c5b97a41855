"""The report of a run as people read it."""

from control.render.text import ids_text, load_cell, table
from model.plan.remaining import deferred_text, remaining_text
from model.run import BrokerBalance, MoveReport, RunReport
from model.units import bytes_text, count_text, seconds_text


def run_text(report: RunReport) -> str:
    """Duration, moves, balance achieved and remaining violations of a run."""
    heading = f"run {report.run_id} of plan {report.plan_hash[:12]}: {report.state}"
    if report.reason:
        heading += f" ({report.reason})"
    text = f"{heading}\n{_took(report)}\n\n{_moves(report)}"
    text += _balance(report) + _remaining(report)
    return text if report.rollback is None else f"{text}\n{run_text(report.rollback)}"


def _took(report: RunReport) -> str:
    text = f"took {seconds_text(report.duration_s)}"
    if report.preparation_s >= 0.05:
        text += f"; {seconds_text(report.preparation_s)} of preparation"
    if report.foreseen_s is not None:
        text += f"; moves were estimated at {seconds_text(report.foreseen_s)}"
    sizes = [m.bytes_copied for m in report.moves if m.bytes_copied is not None]
    if sizes:
        text += f"; {bytes_text(sum(sizes))} copied"
    stalls = [m.stall_at_most_s for m in report.moves if m.stall_at_most_s is not None]
    if stalls:
        text += f"; no partition without a leader for over {seconds_text(max(stalls))}"
    return text


def _moves(report: RunReport) -> str:
    rows = [
        [
            f"{m.topic}-{m.partition}",
            f"{ids_text(m.replicas_before)} -> {ids_text(m.replicas_after)}",
            m.state.value,
            "-" if m.duration_s is None else seconds_text(m.duration_s),
            _stall(m),
            "-" if m.bytes_copied is None else bytes_text(m.bytes_copied),
            _requests(m),
            m.note,
        ]
        for m in report.moves
    ]
    columns = ("state", "time", "no leader", "copied", "requests", "reason")
    return table(["partition", "brokers", *columns], rows)


def _stall(move: MoveReport) -> str:
    """Time without a leader: the least and the most that the polls allow."""
    least, most = move.stall_at_least_s, move.stall_at_most_s
    if least is None or most is None:
        return "-"
    if not most:
        return "0 s"
    return f"{least:.2f} to {seconds_text(most)}"


def _requests(move: MoveReport) -> str:
    if not move.retries:
        return str(move.requests)
    return f"{move.requests}, {count_text(move.retries, 'retry', 'retries')}"


def _balance(report: RunReport) -> str:
    """Load and deviation of each broker: before, planned and achieved."""
    counted = dict.fromkeys(d for b in report.brokers for d in b.deviation_planned)
    if not counted:
        return ""
    # One row per load keeps the table narrow enough for a terminal.
    rows = [[str(b.id), d, *_loads(b, d)] for d in counted for b in report.brokers]
    headers = ["broker", "load", "before", "planned", "achieved"]
    return "\n" + table(headers, rows)


def _loads(broker: BrokerBalance, dimension: str) -> tuple[str, str, str]:
    def cell(loads: dict[str, float], deviations: dict[str, float]) -> str:
        return load_cell(dimension, loads, deviations) if dimension in loads else "-"

    return (
        cell(broker.before, broker.deviation_before),
        cell(broker.planned, broker.deviation_planned),
        cell(broker.achieved, broker.deviation_achieved),
    )


def _remaining(report: RunReport) -> str:
    """Limits and rack rules that are still broken, one line each."""
    warnings = [
        *remaining_text(report.over_limit, report.rack_violations),
        *deferred_text(report.deferred),
    ]
    lines = "".join(f"warning: {w}\n" for w in warnings)
    return f"\n{lines}" if lines else ""
