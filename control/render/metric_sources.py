"""Metric sources of a cluster and the loads they provide, as text and as JSON."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

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


def info_answer(
    snapshot: Snapshot,
    vectors: "pa.Table",
    reporters: "Sequence[ReporterState]",
    polled: "Sequence[PollState]",
    *,
    silent: Sequence[int],
    now_ms: int,
    **others: Any,
) -> InfoAnswer:
    """The output of `info -o json`; unknown values are absent.

    vectors: load vectors, with the source of each figure. silent: ids of brokers that do
    not answer the probe. others: further fields of the answer.
    """
    from collector.reports.provenance import origins, why

    header = snapshot.header
    alive = [b.id for b in header.brokers if b.state is not BrokerState.DEAD]
    topics = [str(t.name) for t in header.topics if not t.internal]
    probe = LoadSource.of(
        name="probe",
        found=True,
        readable=True,
        why_not="",
        partitions=vectors.num_rows,
        silent_brokers=silent,
        **_age(now_ms, header.taken_at_ms),
    )
    return InfoAnswer.of(
        cluster_id=header.cluster_id,
        sources=[
            probe,
            *(_reporter(found, now_ms) for found in reporters),
            *(_polled(found, alive, now_ms) for found in polled),
        ],
        quantities=[
            {
                "quantity": quantity,
                "by": [
                    {"name": name, "partitions": count, "why": why(quantity, name)}
                    for name, count in counts.items()
                ],
            }
            for quantity, counts in origins(vectors, topics).items()
        ],
        brokers=header.brokers,
        **others,
    )


def _reporter(found: "ReporterState", now_ms: int) -> LoadSource:
    return LoadSource.of(
        found,
        name=found.source,
        place=found.topic,
        why_not=found.why,
        silent_brokers=found.silent,
        clocks_ahead_s={str(b): round(s, 1) for b, s in found.clocks_s.items()},
        **_age(now_ms, found.newest_ms),
    )


def _polled(found: "PollState", alive: Sequence[int], now_ms: int) -> LoadSource:
    return LoadSource.of(
        name=found.source,
        place=found.place,
        found=True,
        readable=found.read_at_ms is not None,
        why_not=" ".join(found.failures),
        silent_brokers=[b for b in alive if b not in found.brokers],
        **_age(now_ms, found.read_at_ms),
    )


def _age(now_ms: int, newest_ms: int | None) -> dict[str, float]:
    return {} if newest_ms is None else {"newest_age_s": round((now_ms - newest_ms) / 1000, 1)}


def info_text(answer: InfoAnswer, snapshot: Snapshot) -> str:
    """The sources, quantities and brokers as tables."""
    brokers = snapshot.header.brokers
    parts = [
        f"cluster {printable(answer.cluster_id)}, "
        f"{count_text(len(brokers), 'broker')}, "
        f"{count_text(len(snapshot), 'partition')}\n"
        f"history in {answer.folder}; Spark at {answer.spark_master}\n",
        table(
            ["source", "where", "state"],
            [[s.name, s.place or "-", _state(s)] for s in answer.sources],
        ),
        table(["quantity", "source", "partitions", "reason"], _quantity_rows(answer)),
        _brokers(brokers),
        "".join(f"{words}\n" for words in _remarks(answer)),
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


def _remarks(answer: InfoAnswer) -> list[str]:
    remarks = list(answer.notes)
    if answer.reports_passed_over:
        counts = ", ".join(f"{n:,} {why}" for why, n in answer.reports_passed_over.items())
        remarks.append(f"reports ignored: {counts}")
    if answer.brokers_without_cores:
        brokers = ", ".join(map(str, answer.brokers_without_cores))
        remarks.append(
            f"broker {brokers} reports CPU as a share of its cores; set the number of "
            "cores in [capacities] or in the capacity file"
        )
    return remarks
