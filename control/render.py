"""Snapshots, plans and runs as text and as JSON documents; the same on any terminal."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from model.evaluate import Evaluation
from model.files import rounded
from model.plan import BrokerChange, Move, Plan
from model.run import RunReport
from model.snapshot import Resource, Snapshot
from model.units import (
    bytes_text,
    count_text,
    percent_text,
    rate_text,
    seconds_text,
)


def json_text(document: Mapping[str, Any]) -> str:
    """Indented JSON with sorted keys and a newline at the end."""
    return json.dumps(document, indent=2, sort_keys=True, allow_nan=False) + "\n"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded to their widest cell; figures to the right."""
    cells = [list(headers), *(list(row) for row in rows)]
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
    return bytes_text(value) if resource is Resource.DISK else rate_text(value)


# ---- a cluster


def status_document(
    snapshot: Snapshot, evaluation: Evaluation, *, within_band: bool, now_ms: int
) -> dict[str, Any]:
    """The cluster as `status -o json` gives it; an unknown load is absent."""
    header = snapshot.header
    return {
        "cluster_id": header.cluster_id,
        "taken_at": time_text(header.taken_at_ms),
        "age_s": round((now_ms - header.taken_at_ms) / 1000, 1),
        "sources": [s.model_dump(mode="json") for s in header.sources],
        "within_band": within_band,
        "objective": rounded(evaluation.objective),
        "levels": {r.value: rounded(v) for r, v in evaluation.levels.items()},
        "brokers": [
            {
                "id": b.id,
                "rack": b.rack,
                "state": b.state.value,
                "load": {
                    r.value: rounded(v) for r, v in evaluation.loads[b.id].items()
                },
                "deviation": {
                    r.value: rounded(by_broker[b.id])
                    for r, by_broker in evaluation.deviations.items()
                    if b.id in by_broker
                },
            }
            for b in header.brokers
        ],
        "partitions": [_partition(snapshot, i) for i in range(len(snapshot))],
    }


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
        f"cluster {header.cluster_id}, {count_text(len(header.brokers), 'broker')}, "
        f"{count_text(len(snapshot), 'partition')}, loads {age_s:.1f} s old"
    ]
    lines += [
        f"source {s.name}: {count_text(s.samples, 'sample')} over "
        f"{seconds_text(s.window_s)}, {percent_text(s.measured_share)} measured"
        for s in header.sources
    ]
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
    lines = [
        summary,
        f"objective {plan.objective_before:.6g} -> {plan.objective:.6g}; proved bound "
        f"{plan.bound:.6g}; gap {gap}",
        f"{count_text(len(plan.moves), 'move')}, {bytes_text(plan.bytes_to_copy)} to "
        f"copy, {count_text(plan.leader_changes, 'leader change')}; a move costs "
        f"{plan.move_price:.3g}; plan {plan.hash[:12]}",
    ]
    text = "\n".join(lines) + "\n\n" + _brokers_text(plan)
    return text + ("\n" + _moves_text(plan.moves) if plan.moves else "")


def _brokers_text(plan: Plan) -> str:
    counted = list(plan.levels)
    rows = [
        [
            str(b.id),
            b.rack or "-",
            *(cell for r in counted for cell in _now_and_after(b, r)),
            f"{b.replicas_before} -> {b.replicas_after}",
        ]
        for b in plan.brokers
    ]
    headers = [h for r in counted for h in (f"{r.value} now", "after")]
    return table(["broker", "rack", *headers, "replicas"], rows)


def _now_and_after(broker: BrokerChange, resource: Resource) -> tuple[str, str]:
    def cell(loads: dict[Resource, float], deviations: dict[Resource, float]) -> str:
        text = load_text(resource, loads[resource])
        if resource in deviations:
            text += f" ({100 * deviations[resource]:+.0f} %)"
        return text

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


# ---- a run


def run_text(report: RunReport) -> str:
    """A run as people read it."""
    words = f"run {report.run_id} of plan {report.plan_hash[:12]}: {report.state}"
    if report.reason:
        words += f" ({report.reason})"
    rows = [
        [
            f"{m.topic}-{m.partition}",
            f"{_list(m.replicas_before)} -> {_list(m.replicas_after)}",
            m.state.value,
            "-" if m.duration_s is None else seconds_text(m.duration_s),
            "-" if m.bytes_copied is None else bytes_text(m.bytes_copied),
            m.note,
        ]
        for m in report.moves
    ]
    headers = ["partition", "brokers", "state", "time", "copied", "note"]
    preparation = (
        f"; {seconds_text(report.preparation_s)} of preparation"
        if report.preparation_s >= 0.05
        else ""
    )
    took = f"took {seconds_text(report.duration_s)}{preparation}"
    return f"{words}\n{took}\n\n" + table(headers, rows)
