"""Snapshots, plans and runs as text and as JSON documents; the same on any terminal."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from control.cli.output import json_of
from control.cli.output_format import Form
from control.render.forecast_text import forecast_lines, plan_lines
from model.evaluate import Evaluation
from model.files import rounded
from model.plan.plan import BrokerChange, Move, Plan
from model.plan.remaining import present_words, repaired_words
from model.printable import printable
from model.snapshot.snapshot import (
    Count,
    Resource,
    Snapshot,
    SnapshotHeader,
)
from model.snapshot.topic_skew import BrokerSkew, TopicSkew
from model.units import (
    bytes_text,
    count_text,
    percent_text,
    rate_text,
    seconds_text,
)

if TYPE_CHECKING:
    from executor.schedule.estimate import Forecast
    from executor.schedule.simulate import Peak


def json_text(document: Mapping[str, Any]) -> str:
    """Indented JSON with sorted keys and a newline at the end."""
    return json_of(document, indent=2, sort=True) + "\n"


def file_text(path: Path, output: Form) -> str:
    """What a command says that only wrote a file: in a table's place, nothing."""
    return json_text({"file": str(path)}) if output is Form.JSON else ""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; figures to the right."""
    cells = [[printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(headers))]
    right = [bool(rows) and _is_figure(rows[0][i]) for i in range(len(headers))]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines) + "\n"


def _is_figure(cell: str) -> bool:
    return cell[:1].lstrip("+-").isdigit() or cell[1:2].isdigit()


def time_text(at_ms: int) -> str:
    """UTC in ISO 8601, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def load_text(resource: Resource, value: float) -> str:
    """A load with its unit."""
    return measure_text(resource.value, value)


def measure_text(dimension: str, value: float) -> str:
    """A figure of a dimension of a plan, named as the plan names it, with its unit."""
    measure = dimension.partition("@")[0]
    if measure == Resource.DISK:
        return bytes_text(value)
    if measure in (Resource.NET_IN, Resource.NET_OUT, Count.LEADER_NET_IN):
        return rate_text(value)
    return f"{value:.4g}" if value < 9999.5 else f"{value:,.0f}"


# ---- a cluster


def status_document(
    snapshot: Snapshot,
    evaluation: Evaluation,
    *,
    within_band: bool,
    now_ms: int,
    notes: Sequence[str],
) -> dict[str, Any]:
    """The cluster as `status -o json` gives it; what is unknown is absent."""
    header = snapshot.header
    return {
        "cluster_id": header.cluster_id,
        "taken_at": time_text(header.taken_at_ms),
        "age_s": round((now_ms - header.taken_at_ms) / 1000, 1),
        "sources": [s.model_dump(mode="json") for s in header.sources],
        **_forecast(header),
        "notes": list(notes),
        "within_band": within_band,
        "over_limit": [
            {
                "broker": o.broker,
                "dimension": o.dimension,
                "load": o.before,
                "limit": o.limit,
                "capacity": o.capacity,
            }
            for o in evaluation.over_limit
        ],
        "rack_violations": {
            "count": len(evaluation.rack_violations),
            "movable": sum(not v.reason for v in evaluation.rack_violations),
            "partitions": [
                {"topic": v.topic, "partition": v.partition, "reason": v.reason}
                for v in evaluation.rack_violations
            ],
        },
        "objective": rounded(evaluation.objective),
        "levels": {str(r): rounded(v) for r, v in evaluation.levels.items()},
        "brokers": [
            {
                "id": b.id,
                "rack": b.rack,
                "state": b.state.value,
                "load": {str(r): rounded(v) for r, v in evaluation.loads[b.id].items()},
                "deviation": {
                    str(r): rounded(by_broker[b.id])
                    for r, by_broker in evaluation.deviations.items()
                    if b.id in by_broker
                },
                "capacity": {str(r): rounded(v) for r, v in b.capacity.items()},
                "capacity_from": {
                    str(r): source.value for r, source in b.capacity_from.items()
                },
            }
            for b in header.brokers
        ],
        "partitions": [_partition(snapshot, i) for i in range(len(snapshot))],
    }


def _forecast(header: SnapshotHeader) -> dict[str, Any]:
    told = header.forecast
    return {} if told is None else {"forecast": told.model_dump(mode="json")}


def _partition(snapshot: Snapshot, index: int) -> dict[str, Any]:
    row = snapshot.row(index)
    columns = snapshot.partitions
    loads = zip(
        snapshot.header.resources,
        columns.loads[index].tolist(),
        columns.measured[index].tolist(),
        strict=True,
    )
    known = [(r, load, measured) for r, load, measured in loads if load == load]
    return {
        "topic": row.id.topic,
        "partition": row.id.partition,
        "leader": row.leader,
        "replicas": list(row.replicas),
        "storage": row.storage.value,
        "load": {r.value: rounded(load) for r, load, _ in known},
        "measured": [r.value for r, _, measured in known if measured],
    }


def status_text(snapshot: Snapshot, evaluation: Evaluation, now_ms: int) -> str:
    """The cluster as people read it."""
    header = snapshot.header
    age_s = (now_ms - header.taken_at_ms) / 1000
    lines = [
        f"cluster {printable(header.cluster_id)}, "
        f"{count_text(len(header.brokers), 'broker')}, "
        f"{count_text(len(snapshot), 'partition')}, loads {age_s:.1f} s old"
    ]
    lines += [
        f"source {s.name}: {count_text(s.samples, 'sample')} over "
        f"{seconds_text(s.window_s)}, {percent_text(s.measured_share)} measured"
        for s in header.sources
    ]
    lines += forecast_lines(header.forecast)
    lines += present_words(evaluation.over_limit, evaluation.rack_violations)
    resources = header.resources
    rows = [
        [
            str(b.id),
            b.rack or "-",
            b.state.value,
            *(
                f"{load_text(r, evaluation.loads[b.id][r])}"
                + _deviation(evaluation, r, b.id)
                for r in resources
            ),
        ]
        for b in header.brokers
    ]
    names = [r.value for r in resources]
    return "\n".join(lines) + "\n\n" + table(["broker", "rack", "state", *names], rows)


def _deviation(evaluation: Evaluation, resource: Resource, broker: int) -> str:
    deviations = {int(b): v for b, v in evaluation.deviations.get(resource, {}).items()}
    if broker not in deviations:
        return ""
    return f" ({100 * deviations[broker]:+.0f} %)"


# ---- a plan


def plan_text(plan: Plan, summary: str) -> str:
    """The plan as people read it: verdict, brokers now and after, moves and why."""
    gap = f"{plan.gap:.3g} ({percent_text(plan.gap_share)} of what can be gained)"
    by = "" if plan.bound_method == "none" else f" by {plan.bound_method}"
    ended = f"; {plan.limited_by}" if plan.limited_by else ""
    lines = [
        summary,
        f"objective {plan.objective_before:.6g} -> {plan.objective:.6g}; proved bound "
        f"{plan.bound:.6g}{by}; gap {gap}{ended}",
        f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to "
        f"copy, {count_text(plan.leader_changes, 'leader change')}; a move costs "
        f"{plan.move_price:.3g}; plan {plan.hash[:12]}",
        *_leaders_only(plan),
        *(f"warning: {words}" for words in plan.warnings),
        *plan_lines(plan),
        *repaired_words(plan.over_limit, plan.rack_violations),
    ]
    text = "\n".join(lines) + "\n\n" + _brokers_text(plan)
    return text + ("\n" + _moves_text(plan.moves) if plan.moves else "")


def _leaders_only(plan: Plan) -> Iterator[str]:
    if plan.leaders_only_words:
        yield f"{plan.leaders_only_words}; plan --leaders-only plans such changes only"


def _brokers_text(plan: Plan) -> str:
    shown = {d for b in plan.brokers for d in b.deviation_before}
    # Forecast hours are many; their largest deviations are listed with them.
    counted = [d for d in plan.levels if d in shown and "@" not in d]
    rows = [
        [
            str(b.id),
            b.rack or "-",
            *(cell for r in counted for cell in _now_and_after(b, r)),
            f"{b.replicas_before} -> {b.replicas_after}",
        ]
        for b in plan.brokers
    ]
    headers = [h for r in counted for h in (f"{r} now", "after")]
    return table(["broker", "rack", *headers, "replicas"], rows)


def _now_and_after(broker: BrokerChange, dimension: str) -> tuple[str, str]:
    def cell(loads: dict[str, float], deviations: dict[str, float]) -> str:
        parts = []
        if dimension in loads:
            parts.append(measure_text(dimension, loads[dimension]))
        if dimension in deviations:
            parts.append(f"({100 * deviations[dimension]:+.0f} %)")
        return " ".join(parts) or "-"

    return (
        cell(broker.before, broker.deviation_before),
        cell(broker.after, broker.deviation_after),
    )


def _moves_text(moves: Sequence[Move]) -> str:
    rows = [
        [
            str(m.id),
            f"{_list(m.replicas_before)} -> {_list(m.replicas_after)}",
            bytes_text(m.bytes_to_copy),
            f"{m.gain:.4g}",
            m.reason,
        ]
        for m in moves
    ]
    return table(["partition", "brokers", "copies", "gain", "why"], rows)


def _list(brokers: Sequence[int]) -> str:
    return ",".join(map(str, brokers))


# ---- a topic's spread

_SHARES = {
    "brokers skewed": "brokers_skewed",
    "leaders skewed": "leaders_skewed",
    "spread": "spread",
    "preferred leaders": "preferred_leaders",
}
"""Kafka Manager's words for the shares of a `TopicSkew`."""


def skew_text(before: TopicSkew, after: TopicSkew) -> str:
    """How a topic is spread now and after a plan, as people read it."""
    shares = [
        f"{words} {percent_text(getattr(before, share))} -> "
        f"{percent_text(getattr(after, share))}"
        for words, share in _SHARES.items()
    ]
    lines = [
        f"topic {before.topic}, {count_text(before.partitions, 'partition')}: the "
        f"optimum is {_range(before.optimum)} replicas and "
        f"{_range(before.leader_optimum)} leaders per broker",
        ", ".join(shares),
    ]
    later = {b.id: b for b in after.brokers}
    now = {b.id: b for b in before.brokers}
    rows = [
        [
            str(b),
            *_skew_cells(now.get(b), "replicas", "skewed"),
            *_skew_cells(later.get(b), "replicas", "skewed"),
            *_skew_cells(now.get(b), "leaders", "leader_skewed"),
            *_skew_cells(later.get(b), "leaders", "leader_skewed"),
        ]
        for b in sorted(now | later)
    ]
    headers = ["broker", "replicas now", "after", "leaders now", "after"]
    return "\n".join(lines) + "\n\n" + table(headers, rows)


def _skew_cells(broker: BrokerSkew | None, count: str, skewed: str) -> list[str]:
    if broker is None:
        return ["0"]
    words = " skewed" if getattr(broker, skewed) else ""
    return [f"{getattr(broker, count)}{words}"]


def _range(bounds: tuple[int, int]) -> str:
    low, high = bounds
    return str(low) if low == high else f"{low} to {high}"


def skew_document(before: TopicSkew, after: TopicSkew) -> dict[str, Any]:
    """The same for programs."""
    return {"before": _skew_figures(before), "after": _skew_figures(after)}


def _skew_figures(skew: TopicSkew) -> dict[str, Any]:
    return {
        "partitions": skew.partitions,
        "optimum": list(skew.optimum),
        "leader_optimum": list(skew.leader_optimum),
        **{share: rounded(getattr(skew, share)) for share in _SHARES.values()},
        "brokers": [
            {
                "id": b.id,
                "replicas": b.replicas,
                "leaders": b.leaders,
                "skewed": b.skewed,
                "leader_skewed": b.leader_skewed,
            }
            for b in skew.brokers
        ],
    }


# ---- a run


def forecast_text(told: "Forecast") -> str:
    """What a run will take, in a sentence, and what each broker carries meanwhile."""
    by = (
        f"{count_text(told.known, 'move')} of before" if told.known else "usual figures"
    )
    quicker = (
        f"takes less than {seconds_text(told.least_s)}"
        if told.seconds > 1.005 * told.least_s
        else "is quicker"
    )
    words = (
        f"will take about {seconds_text(told.seconds)} and copy "
        f"{bytes_text(told.bytes_to_copy)} (by {by}); no order of the moves "
        f"{quicker}\n"
    )
    if told.unknown:
        words += (
            f"the size of {count_text(told.unknown, 'move')} is unknown and left out: "
            "it will take longer, and copy more\n"
        )
    if told.unfit:
        more = f", and {len(told.unfit) - 1} more" if len(told.unfit) > 1 else ""
        words += f"not all will be made: {told.unfit[0]}{more}\n"
    peaks = {b: p for b, p in told.peaks.items() if p.copied_bytes}
    if not peaks:
        return words
    headers = ["broker", "disk at most", "in", "at most", "out", "at most"]
    inside = any(p.inside_bytes for p in peaks.values())
    rows = [
        _peak_cells(broker, peak, told.free_bytes.get(broker))
        + ([bytes_text(peak.inside_bytes)] if inside else [])
        for broker, peak in peaks.items()
    ]
    return f"{words}\n{table([*headers, *(['inside'] if inside else [])], rows)}"


def _peak_cells(broker: int, peak: "Peak", free: int | None) -> list[str]:
    room = f" of {bytes_text(free)} free" if free and free > 0 else ""
    return [
        str(broker),
        f"+{bytes_text(peak.more_bytes)}{room}",
        bytes_text(peak.in_bytes),
        rate_text(peak.in_per_s),
        bytes_text(peak.out_bytes),
        rate_text(peak.out_per_s),
    ]
