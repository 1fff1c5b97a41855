"""Metric sources of a cluster and the loads they provide, as text and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from control.cli.output_types import InfoAnswer, LoadSource
from control.render.cluster_status import capacity_cell
from control.render.text import table
from model.printable import printable
from model.snapshot.snapshot import Broker, BrokerState, Resource, Snapshot
from model.units import count_text, percent_text, seconds_text

if TYPE_CHECKING:
    import pyarrow as pa

    from collector.reports.poller import PollState
    from collector.reports.reporters import ReporterState


@dataclass(frozen=True, slots=True, kw_only=True)
class Info:
    """Metric sources, loads and capacities that were detected on a cluster."""

    snapshot: Snapshot
    vectors: "pa.Table"
    """Load vectors, with the source of each figure."""
    reporters: "Sequence[ReporterState]"
    polled: "Sequence[PollState]"
    silent: Sequence[int]
    """Ids of brokers that do not answer the probe."""
    passed_over: Mapping[str, int]
    """Reports that the newest load vectors could not use, by reason."""
    without_cores: Sequence[int]
    """Brokers that report CPU as a share of an unknown number of cores."""
    folder: Path | None
    spark_master: str
    notes: Sequence[str]
    now_ms: int


def info_answer(info: Info) -> InfoAnswer:
    """The output of `info -o json`; unknown values are absent."""
    from collector.reports.provenance import origins, why

    header = info.snapshot.header
    topics = [str(t.name) for t in header.topics if not t.internal]
    return InfoAnswer.of(
        info,
        cluster_id=header.cluster_id,
        sources=[
            _probe(info),
            *(_reporter(info, found) for found in info.reporters),
            *(_polled(info, found) for found in info.polled),
        ],
        quantities=[
            {
                "quantity": quantity,
                "by": [
                    {"name": name, "partitions": count, "why": why(quantity, name)}
                    for name, count in counts.items()
                ],
            }
            for quantity, counts in origins(info.vectors, topics).items()
        ],
        reports_passed_over=info.passed_over,
        brokers_without_cores=info.without_cores,
        brokers=header.brokers,
    )


def _probe(info: Info) -> LoadSource:
    """The agentless probe, which is always available."""
    return LoadSource.of(
        name="probe",
        found=True,
        readable=True,
        why_not="",
        partitions=info.vectors.num_rows,
        silent_brokers=info.silent,
        **_age(info, info.snapshot.header.taken_at_ms),
    )


def _reporter(info: Info, found: "ReporterState") -> LoadSource:
    return LoadSource.of(
        found,
        name=found.source,
        place=found.topic,
        why_not=found.why,
        silent_brokers=found.silent,
        clocks_ahead_s={str(b): round(s, 1) for b, s in found.clocks_s.items()},
        **_age(info, found.newest_ms),
    )


def _polled(info: Info, found: "PollState") -> LoadSource:
    alive = [b.id for b in info.snapshot.header.brokers if b.state is not BrokerState.DEAD]
    return LoadSource.of(
        name=found.source,
        place=found.place,
        found=True,
        readable=found.read_at_ms is not None,
        why_not=" ".join(found.failures),
        silent_brokers=[b for b in alive if b not in found.brokers],
        **_age(info, found.read_at_ms),
    )


def _age(info: Info, newest_ms: int | None) -> dict[str, float]:
    if newest_ms is None:
        return {}
    return {"newest_age_s": round((info.now_ms - newest_ms) / 1000, 1)}


def info_text(info: Info) -> str:
    """The sources, quantities and brokers as tables."""
    answer = info_answer(info)
    brokers = info.snapshot.header.brokers
    parts = [
        f"cluster {printable(answer.cluster_id)}, "
        f"{count_text(len(brokers), 'broker')}, "
        f"{count_text(len(info.snapshot), 'partition')}\n"
        f"history in {answer.folder}; Spark at {answer.spark_master}\n",
        table(
            ["source", "where", "state"],
            [[s.name, s.place or "-", _state(s)] for s in answer.sources],
        ),
        table(["quantity", "source", "partitions", "reason"], _quantity_rows(answer)),
        _brokers(brokers),
        "".join(f"{words}\n" for words in _remarks(info)),
    ]
    return "\n".join(filter(None, parts))


def _state(source: LoadSource) -> str:
    """The state of one source in one line."""
    parts = [source.why_not or "read"]
    if source.newest_age_s is not None:
        parts.append(f"newest {seconds_text(source.newest_age_s)} old")
    if source.records:
        parts.append(count_text(source.records, "record"))
    for reason, count in source.left_out.items():
        named = "of a newer format" if reason == "version" else f"ignored: {reason}"
        parts.append(f"{count:,} {named}")
    if source.silent_brokers:
        parts.append(f"silent: broker {', '.join(map(str, source.silent_brokers))}")
    for broker, ahead_s in source.clocks_ahead_s.items():
        direction = "ahead" if ahead_s > 0 else "behind"
        parts.append(f"clock of broker {broker} {seconds_text(abs(ahead_s))} {direction}")
    return "; ".join(parts)


def _quantity_rows(answer: InfoAnswer) -> list[list[str]]:
    rows = []
    for known in answer.quantities:
        total = sum(by.partitions for by in known.by)
        rows += [
            [known.quantity, by.name, percent_text(by.partitions / total), by.why]
            for by in known.by
        ]
    return rows


def _brokers(brokers: Sequence[Broker]) -> str:
    shown = [r for r in Resource if any(r in b.capacity for b in brokers)]
    rows = [
        [str(b.id), b.rack or "-", b.state.value, *(capacity_cell(b, r) for r in shown)]
        for b in brokers
    ]
    heads = [f"capacity {r}" for r in shown]
    return table(["broker", "rack", "state", *heads], rows)


def _remarks(info: Info) -> list[str]:
    remarks = list(info.notes)
    if info.passed_over:
        counts = ", ".join(f"{n:,} {why}" for why, n in info.passed_over.items())
        remarks.append(f"reports ignored: {counts}")
    if info.without_cores:
        brokers = ", ".join(map(str, info.without_cores))
        remarks.append(
            f"broker {brokers} reports CPU as a share of its cores; set the number of "
            "cores in [capacities] or in the capacity file"
        )
    return remarks
