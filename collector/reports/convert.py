"""Turn the records of metric topics into reports.

Spark's Python workers run this, so nothing but numpy and pyarrow is imported here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.record_columns import Decoded
from collector.reports import automq_metrics, cruise_control_metrics
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, REPORTS

_QUORUM: Final = "__cluster_metadata"
"""Every broker of AutoMQ reports its copy of it, which is no partition of clients."""
_KEYS: Final = ("time_ms", "broker", "topic", "partition")
_FIGURES: Final = {
    0: "bytes_in",
    1: "bytes_out",
    2: "bytes_in",
    3: "bytes_out",
    4: "size_bytes",
    5: "cpu_share",
    6: "replication_in",
}
"""By Cruise Control's metric id: of brokers, topics and partitions."""
_BROKER_REQUESTS: Final = (16, 17)
"""Of producers, and of consumers that fetch."""
_TOPIC_REQUESTS: Final = (13, 14)
"""The same of one topic: a request counts for each of its partitions, and fetches of
followers count, too."""
_TAKEN: Final = (*_FIGURES, *_BROKER_REQUESTS, *_TOPIC_REQUESTS)


def automq_reports(metrics: pa.Table) -> pa.Table:
    """Convert AutoMQ's metrics (`automq_metrics.METRICS`) to `REPORTS`, row by row.

    A broker's row has no figure that is used, but shows that the broker reports.
    """
    rows = metrics.filter(pc.not_equal(pc.fill_null(metrics["topic"], ""), _QUORUM))
    figures = {name: rows[name] for name in ("bytes_in", "bytes_out", "size_bytes")}
    return _reports(AUTOMQ, rows, figures)


def cruise_control_reports(metrics: pa.Table) -> pa.Table:
    """Convert Cruise Control's metrics (`cruise_control_metrics.METRICS`) to `REPORTS`.

    `BROKER_CPU_UTIL` (id 5) is a share, 0 to 1, of the broker's cores: `cpu_share`.
    Metrics of one broker, time and subject become one row: Cruise Control's
    reporter gives every record of a pass the same time. A figure that is there twice is
    averaged. A broker's requests are absent where one of their two parts is.
    """
    wide = _pivoted(metrics)
    means = {number: _floats(wide[_column(number)]) for number in _TAKEN}
    figures: dict[str, Any] = {}
    for number, name in _FIGURES.items():
        figures[name] = np.fmax(figures.get(name, np.nan), means[number])
    produced, fetched = (means[number] for number in _TOPIC_REQUESTS)
    # A topic has no meter for a kind of request it has not received yet.
    of_topic = np.where(np.isnan(produced), fetched, produced + np.nan_to_num(fetched))
    of_broker = means[_BROKER_REQUESTS[0]] + means[_BROKER_REQUESTS[1]]
    figures["requests"] = np.fmax(of_broker, of_topic)
    return _reports(CRUISE_CONTROL, wide, figures)


def _pivoted(metrics: pa.Table) -> pa.Table:
    """One row per broker, time and subject, with a column for each metric in use."""
    known = pa.array(_TAKEN, metrics.schema.field("metric").type)
    taken = metrics.filter(pc.is_in(metrics["metric"], known))
    for number in _TAKEN:
        own = pc.equal(taken["metric"], number)
        value = pc.if_else(own, taken["value"], pa.scalar(None, pa.float64()))
        taken = taken.append_column(_column(number), value)
    columns = [(_column(number), "mean") for number in _TAKEN]
    return (
        taken.group_by(_KEYS, use_threads=False)
        .aggregate(columns)
        .rename_columns([*_KEYS, *map(_column, _TAKEN)])
    )


def _column(number: int) -> str:
    return f"metric {number}"


def _floats(values: pa.ChunkedArray) -> Any:
    return pc.fill_null(values, np.nan).to_numpy()


def _reports(source: str, rows: pa.Table, figures: Mapping[str, Any]) -> pa.Table:
    absent = np.full(len(rows), np.nan)
    columns: dict[str, Sequence[Any]] = {
        "source": pa.array([source], pa.string()).take(np.zeros(len(rows), np.int8)),
        **{name: rows[name] for name in _KEYS},
    }
    return pa.table(
        [columns.get(name, figures.get(name, absent)) for name in REPORTS.names], schema=REPORTS
    )


def decode_automq(records: pa.Array) -> Decoded:
    """Decode AutoMQ's records, a binary array, into reports.

    Invalid records are skipped and counted by reason.
    """
    metrics, skipped = automq_metrics.decode(records)
    return Decoded(automq_reports(metrics), skipped)


def decode_cruise_control(records: pa.Array) -> Decoded:
    """Decode the records of Cruise Control's reporter, a binary array, into reports.

    Invalid records are skipped and counted by reason.
    """
    metrics, skipped = cruise_control_metrics.decode(records)
    return Decoded(cruise_control_reports(metrics), skipped)


DECODERS: Final[Mapping[str, Callable[[pa.Array], Decoded]]] = {
    AUTOMQ: decode_automq,
    CRUISE_CONTROL: decode_cruise_control,
}
"""By source."""
