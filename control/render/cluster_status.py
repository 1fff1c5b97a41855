"""A cluster as `status` prints it: loads, deviations and capacities by broker."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from collector.brokers.fan_out import Silence
from control.cli.output import Form, json_of
from control.cli.output_types import LoadedBroker, StatusAnswer
from control.render.forecast_text import forecast_lines
from control.render.text import json_text, load_cell, load_text, table, time_text
from model.evaluate import Evaluation, evaluate
from model.goals.goals import Goals
from model.goals.topic_placement import placement_warnings, with_topic_placements
from model.ids import NO_BROKER
from model.plan.outages import outage_notes
from model.plan.remaining import OverLimit, present_text
from model.printable import printable
from model.snapshot.capacities import Capacities, capacity_notes
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Broker, Resource, Snapshot
from model.units import count_text, seconds_text, share_text


def cluster_text(
    snapshot: Snapshot,
    goals: Goals,
    output: Form,
    *,
    now_ms: int,
    given: Capacities | None = None,
    silent: Sequence[Silence] = (),
    replication: Replication | None = None,
    notes: Sequence[str] = (),
    in_one_line: bool = False,
    partitions: bool = True,
) -> str:
    """A snapshot as `status` prints it at the time `now_ms`, a table or JSON.

    partitions: whether JSON lists them. given: capacities from the operator. silent: brokers that
    do not answer.
    replication: what metadata say of in-sync replicas; None where nobody was asked.
    notes: further sentences. in_one_line: JSON without line breaks, for `--watch`.
    """
    evaluation = evaluate(snapshot, with_topic_placements(goals, snapshot), ())
    all_notes = [
        *outage_notes(snapshot),
        *placement_warnings(goals, snapshot),
        *capacity_notes(snapshot, given),
        *map(silence_text, silent),
        *notes,
    ]
    if output is Form.TABLE:
        parts = (
            status_text(snapshot, evaluation, now_ms, replication),
            capacity_text(snapshot, evaluation),
            "".join(f"{words}\n" for words in all_notes),
        )
        return "\n".join(filter(None, parts))
    level = evaluation.within_band(goals)
    answer = status_answer(
        snapshot,
        evaluation,
        within_band=level,
        now_ms=now_ms,
        notes=all_notes,
        replication=replication,
        partitions=partitions,
    )
    if in_one_line:
        return json_of(answer.model_dump(mode="json"), sort_keys=True) + "\n"
    return json_text(answer)


def silence_text(silence: Silence) -> str:
    """A sentence about a broker that does not answer."""
    return (
        f"Broker {silence.broker} has not answered since {time_text(silence.since_ms)} "
        f"({silence.reason}); its partitions keep their last known loads for a minute."
    )


def status_answer(
    snapshot: Snapshot,
    evaluation: Evaluation,
    *,
    within_band: bool,
    now_ms: int,
    notes: Sequence[str],
    replication: Replication | None = None,
    partitions: bool = True,
) -> StatusAnswer:
    """The output of `status -o json`; unknown values are absent.

    partitions: whether they are listed; of thousands, they are most of it.
    """
    header, racks = snapshot.header, evaluation.rack_violations
    forecast = {} if header.forecast is None else {"forecast": header.forecast}
    return StatusAnswer.of(
        evaluation,
        cluster_id=header.cluster_id,
        taken_at=time_text(header.taken_at_ms),
        age_s=round((now_ms - header.taken_at_ms) / 1000, 1),
        sources=header.sources,
        notes=notes,
        offline=_offline(snapshot),
        **_in_sync(replication),
        within_band=within_band,
        over_limit=[_over_limit(over) for over in evaluation.over_limit],
        rack_violations={
            "count": len(racks),
            "movable": sum(not v.reason for v in racks),
            "partitions": racks,
        },
        brokers=[_broker(broker, evaluation) for broker in header.brokers],
        partitions=[_partition(snapshot, i) for i in range(len(snapshot) * partitions)],
        **forecast,
    )


def _offline(snapshot: Snapshot) -> int:
    return int(np.count_nonzero(snapshot.partitions.leader == NO_BROKER))


def _in_sync(found: Replication | None) -> dict[str, int]:
    """Counts of partitions that lack in-sync replicas; empty where they are not known."""
    if found is None:
        return {}
    return {"under_replicated": found.under_replicated, "below_min_isr": found.below_min_isr}


def replication_text(snapshot: Snapshot, found: Replication | None) -> str:
    """A line on partitions that are not whole, by what they lack; empty where all are."""
    offline = _offline(snapshot)
    words = [f"{offline:,} offline"] if offline else []
    if found is not None and found.under_replicated:
        words.append(f"{found.under_replicated:,} under-replicated")
    if found is not None and found.below_min_isr:
        words.append(f"{found.below_min_isr:,} below min.insync.replicas")
    return f"partitions: {', '.join(words)}" if words else ""


def _over_limit(over: OverLimit) -> dict[str, Any]:
    # Its own JSON has the units of files.
    found = over.model_dump(mode="json", exclude={"after"})
    return {"load": found.pop("before"), "capacity": None, **found}


def _broker(broker: Broker, evaluation: Evaluation) -> LoadedBroker:
    of_each = evaluation.deviations.items()
    deviation = {r: by[broker.id] for r, by in of_each if broker.id in by}
    return LoadedBroker.of(broker, load=evaluation.loads[broker.id], deviation=deviation)


def _partition(snapshot: Snapshot, index: int) -> dict[str, Any]:
    row, columns = snapshot.row(index), snapshot.partitions
    resources = snapshot.header.resources
    loads = zip(resources, columns.loads[index].tolist(), strict=True)
    known = {r: load for r, load in loads if load == load}
    measured = zip(resources, columns.measured[index].tolist(), strict=True)
    return {
        "topic": row.id.topic,
        "partition": row.id.partition,
        "leader": row.leader,
        "replicas": row.replicas,
        "storage": row.storage,
        "load": known,
        "measured": [r for r, is_measured in measured if is_measured and r in known],
    }


def status_text(
    snapshot: Snapshot, evaluation: Evaluation, now_ms: int, replication: Replication | None = None
) -> str:
    """The cluster as a table of brokers with loads and deviations."""
    header = snapshot.header
    age_s = (now_ms - header.taken_at_ms) / 1000
    lines = [
        f"cluster {printable(header.cluster_id)}, "
        f"{count_text(len(header.brokers), 'broker')}, "
        f"{count_text(len(snapshot), 'partition')}, loads {age_s:.1f} s old"
    ]
    lines += [
        f"source {s.name}: {count_text(s.samples, 'sample')} over "
        f"{seconds_text(s.window_s)}, {share_text(s.measured_share)} measured"
        for s in header.sources
    ]
    lines += filter(None, [replication_text(snapshot, replication)])
    lines += forecast_lines(header.forecast)
    lines += present_text(evaluation.over_limit, evaluation.rack_violations)
    brokers = [_broker(broker, evaluation) for broker in header.brokers]
    return "\n".join(lines) + "\n\n" + brokers_table(brokers, header.resources)


def brokers_table(
    brokers: Sequence[LoadedBroker], resources: Sequence[Resource], *, in_words: bool = False
) -> str:
    """The brokers with their loads and deviations.

    in_words: headings as on screens, rather than the names of resources in settings.
    """
    rows = [
        [
            str(b.id),
            b.rack or "-",
            b.state.value,
            *(load_cell(r, b.load, b.deviation) for r in resources),
        ]
        for b in brokers
    ]
    named = [r.words if in_words else r.value for r in resources]
    return table(["broker", "rack", "state", *named], rows)


# ---- capacities


def capacity_text(snapshot: Snapshot, evaluation: Evaluation) -> str:
    """A table of broker capacities and their use; empty if none is known."""
    brokers = snapshot.header.brokers
    shown = [r for r in Resource if any(r in b.capacity for b in brokers)]
    if not shown:
        return ""
    rows = [
        [str(b.id), *(_cell(b, r, evaluation.loads[b.id].get(r)) for r in shown)] for b in brokers
    ]
    return table(["broker", *(f"capacity {r}" for r in shown)], rows)


def capacity_cell(broker: Broker, resource: Resource) -> str:
    """A broker's capacity for a resource, and its source."""
    capacity = broker.capacity.get(resource)
    if capacity is None:
        return "unknown"
    words = load_text(resource, capacity)
    source = broker.capacity_from.get(resource)
    return f"{words} ({source})" if source else words


def _cell(broker: Broker, resource: Resource, load: float | None) -> str:
    words, capacity = capacity_cell(broker, resource), broker.capacity.get(resource)
    if load is None or capacity is None:
        return words
    return f"{share_text(load / capacity)} of {words}"
