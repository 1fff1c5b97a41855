"""The report of a run as people read it."""

from control.render.plan_text import measure_text, table
from model.plan.remaining import deferred_words, remaining_words
from model.run import BrokerBalance, MoveReport, RunReport
from model.units import bytes_text, count_text, seconds_text


def run_text(report: RunReport) -> str:
    """What a run took, move by move, and how even it has left the brokers."""
    words = f"run {report.run_id} of plan {report.plan_hash[:12]}: {report.state}"
    if report.reason:
        words += f" ({report.reason})"
    lines = [words, _took(report), ""]
    told = "\n".join(lines) + "\n" + _moves(report) + _balance(report)
    told += _remaining(report)
    return told if report.rollback is None else f"{told}\n{run_text(report.rollback)}"


def _took(report: RunReport) -> str:
    words = f"took {seconds_text(report.duration_s)}"
    if report.preparation_s >= 0.05:
        words += f"; {seconds_text(report.preparation_s)} of preparation"
    if report.foreseen_s is not None:
        words += f"; {seconds_text(report.foreseen_s)} were foreseen for the moves"
    sizes = [m.bytes_copied for m in report.moves if m.bytes_copied is not None]
    if sizes:
        words += f"; {bytes_text(sum(sizes))} copied"
    stalls = [m.stall_at_most_s for m in report.moves if m.stall_at_most_s is not None]
    if stalls:
        words += f"; none without a leader for over {seconds_text(max(stalls))}"
    return words


def _moves(report: RunReport) -> str:
    rows = [
        [
            f"{m.topic}-{m.partition}",
            f"{_list(m.replicas_before)} -> {_list(m.replicas_after)}",
            m.state.value,
            "-" if m.duration_s is None else seconds_text(m.duration_s),
            _stall(m),
            "-" if m.bytes_copied is None else bytes_text(m.bytes_copied),
            _requests(m),
            m.note,
        ]
        for m in report.moves
    ]
    columns = ("state", "time", "no leader", "copied", "requests", "note")
    return table(["partition", "brokers", *columns], rows)


def _stall(move: MoveReport) -> str:
    """What the looks at the metadata prove, to what they leave open."""
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
    """Each broker's load before, as planned, and as the run has left it."""
    counted = dict.fromkeys(d for b in report.brokers for d in b.deviation_planned)
    if not counted:
        return ""
    rows = [
        [str(b.id), *(cell for d in counted for cell in _loads(b, d))]
        for b in report.brokers
    ]
    headers = [h for d in counted for h in (f"{d} before", "planned", "achieved")]
    return "\n" + table(["broker", *headers], rows)


def _loads(broker: BrokerBalance, dimension: str) -> tuple[str, str, str]:
    def cell(loads: dict[str, float], deviations: dict[str, float]) -> str:
        if dimension not in loads:
            return "-"
        told = measure_text(dimension, loads[dimension])
        if dimension in deviations:
            told += f" ({100 * deviations[dimension]:+.0f} %)"
        return told

    return (
        cell(broker.before, broker.deviation_before),
        cell(broker.planned, broker.deviation_planned),
        cell(broker.achieved, broker.deviation_achieved),
    )


def _remaining(report: RunReport) -> str:
    """What the run leaves broken, a line each."""
    warnings = [
        *remaining_words(report.over_limit, report.rack_violations),
        *deferred_words(report.deferred),
    ]
    lines = "".join(f"warning: {w}\n" for w in warnings)
    return f"\n{lines}" if lines else ""


def _list(brokers: tuple[int, ...]) -> str:
    return ",".join(map(str, brokers))
