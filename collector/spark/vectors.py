"""Windows of samples become load vectors, one per partition.

Spark's Python workers run `load_vectors`, so nothing but numpy and pyarrow is imported here.

Rates are sums over the steps from one sample to the next, so that a step that cannot
be trusted leaves both sums and bends nothing:

- a topic that was created again starts again
- records in: latest offset; a step back (unclean election) is left out
- bytes per record: growth of the local log / growth of the offset, over steps with the
  same leader in which nothing was deleted; else local bytes / local offsets; else the
  topic's mean
- records out: slope of the groups' summed commits, which come in bursts; a step in
  which a group joined, left or was reset is left out
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from collector.samples import NEW

LEAST_SAMPLES: Final = 3
LEAST_SPAN_MS: Final = 4000
"""A vector needs this many samples over this long."""

RECENT_WINDOWS: Final = 4
"""A local log with no more records than so many windows brought holds recent ones alone."""

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

ORIGINS: Final = ("probe", "assumed", "automq", "cruise-control", "prometheus")
"""Sources of figures.

probe: samples. assumed: bytes out without commits to derive them from, as bytes in times
the fan-out, or 0 where no group has committed; CPU and requests of a broker that reports
none, as much per byte as at the others. The rest are metrics reporters.
"""
PROBE, ASSUMED, NOBODY = 0, 1, -1
"""Positions in `ORIGINS`, and what stands where a figure is not known."""

VECTORS: Final = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("time_ms", pa.int64()),
        pa.field("broker", pa.int32()),
        pa.field("samples", pa.int32()),
        pa.field("span_ms", pa.int64()),
        pa.field("net_in", pa.float64()),
        pa.field("net_out", pa.float64()),
        pa.field("disk", pa.float64()),
        pa.field("total_bytes", pa.float64()),
        pa.field("in_measured", pa.bool_()),
        pa.field("out_measured", pa.bool_()),
        pa.field("records_in", pa.float64()),
        pa.field("cpu", pa.float64()),
        pa.field("requests", pa.float64()),
        pa.field("requests_measured", pa.bool_()),
        pa.field("in_by", pa.int8()),
        pa.field("out_by", pa.int8()),
        pa.field("total_by", pa.int8()),
        pa.field("cpu_by", pa.int8()),
        pa.field("requests_by", pa.int8()),
        pa.field("automq_ms", pa.int64()),
        pa.field("cruise_control_ms", pa.int64()),
        pa.field("prometheus_ms", pa.int64()),
    ]
)
"""Load vectors as columns, one row per partition; NaN where unknown.

time_ms, broker: of the newest sample. samples, span_ms: what the rates stand on.
net_in, net_out: bytes/s. disk: bytes in the leader's directories. total_bytes: with
the remote tier. records_in: records/s. cpu: cores; always estimated. requests: per
second. in_by to requests_by: positions in `ORIGINS`. automq_ms and its like: time of
the newest report behind any of the figures, by the collector's clock; -1 for none.
"""

BY: Final = {
    "net_in": "in_by",
    "net_out": "out_by",
    "total_bytes": "total_by",
    "cpu": "cpu_by",
    "requests": "requests_by",
}
"""Columns of figures, and those that say who reported each."""
MEASURED: Final = {
    "net_in": "in_measured",
    "net_out": "out_measured",
    "requests": "requests_measured",
}
"""Columns of figures, and those that say whether each was measured."""

_SINCE: Final[dict[str, Any]] = {
    "records_in": np.nan,
    "cpu": np.nan,
    "requests": np.nan,
    "requests_measured": False,
    "in_by": PROBE,
    "out_by": PROBE,
    "total_by": PROBE,
    "cpu_by": NOBODY,
    "requests_by": NOBODY,
    "automq_ms": -1,
    "cruise_control_ms": -1,
    "prometheus_ms": -1,
}
"""Columns that older files lack, and what they stand for there."""
OLDEST: Final = tuple(name for name in VECTORS.names if name not in _SINCE)
"""Columns that every file of vectors has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The span over which samples become rates, and the fan-out assumed."""

    window_ms: int
    fan_out: float = 1.0
    """Bytes out per byte in where the groups' commits cannot be seen."""


@dataclass(frozen=True, slots=True)
class SampleSteps:
    """Samples in order of partition and time, and where each partition begins."""

    columns: dict[str, NDArray[Any]]
    """(n,) each, of the samples' numeric columns."""
    topic: NDArray[Any]
    """(n,) codes of the topics."""
    names: list[str]
    first: NDArray[np.int64]
    """(groups,) row of each partition's oldest sample."""
    starts: Bools
    """(n,) True in those rows, which have no step before them."""

    def step(self, name: str) -> NDArray[np.int64]:
        """(n,) change of a column since the previous sample of the same partition.

        0 in a partition's first row.
        """
        values = self.columns[name].astype(np.int64)
        change = np.diff(values, prepend=values[:1])
        change[self.starts] = 0
        return change

    def total(self, values: NDArray[Any]) -> Floats:
        """(groups,) sums of (n,) values per partition."""
        return np.add.reduceat(values.astype(np.float64), self.first)


def load_vectors(samples: pa.Table, window: Window) -> pa.Table:
    """Compute load vectors, schema `VECTORS`, over the newest `window_ms` of samples.

    samples: schema `SAMPLES`, in any order, duplicates allowed; those without a leader
    are ignored. Rates are bytes/s and records/s, sizes bytes; NaN where unknown. The
    result is sorted by topic and partition. Time is that of the samples.
    """
    steps = _in_order(samples, window.window_ms)
    if steps is None:
        return VECTORS.empty_table()
    count = np.diff(np.append(steps.first, len(steps.starts)))
    span_ms = steps.total(steps.step("time_ms"))
    enough = (count >= LEAST_SAMPLES) & (span_ms >= LEAST_SPAN_MS)
    last = {name: column[steps.first + count - 1] for name, column in steps.columns.items()}
    topic = steps.topic[steps.first]
    records_in = _records_in(steps)
    record_bytes, seen = _bytes_per_record(steps, last, topic, records_in * span_ms / 1000)
    records_out = _records_out(steps)
    net_in = _product(records_in, record_bytes)
    net_out, out_seen = _net_out(net_in, records_out, record_bytes, last, window)
    total_bytes = _total_bytes(last, record_bytes)
    out_by = np.where(last["groups"] > 0, PROBE, ASSUMED)
    columns: dict[str, Any] = {
        "topic": np.asarray(steps.names, object)[topic],
        **{name: last[name] for name in ("partition", "time_ms", "broker")},
        "samples": count.astype(np.int32),
        "span_ms": span_ms.astype(np.int64),
        "net_in": net_in,
        "net_out": net_out,
        "disk": _known(last["local_bytes"]),
        "total_bytes": total_bytes,
        "in_measured": ~np.isnan(net_in) & (seen | (records_in == 0)),
        "out_measured": out_seen & (seen | (records_out == 0)),
        "records_in": records_in,
        "in_by": _known_by(net_in, PROBE),
        "out_by": _known_by(net_out, out_by),
        "total_by": _known_by(total_bytes, PROBE),
    }
    return as_vectors(pa.table({n: c[enough] for n, c in columns.items()}))


def as_vectors(table: pa.Table) -> pa.Table:
    """Cast a table to the schema `VECTORS`; columns that older files lack are added.

    Raises ValueError where it lacks more.
    """
    present = {n: table[n] for n in table.schema.names if n in VECTORS.names}
    lacking = {n: pa.repeat(value, len(table)) for n, value in _SINCE.items()}
    columns = lacking | present
    ordered = {n: columns[n] for n in VECTORS.names if n in columns}
    return pa.table(ordered).cast(VECTORS)


def _in_order(samples: pa.Table, window_ms: int) -> SampleSteps | None:
    """The window's samples, each once; None where there are none."""
    topics = samples["topic"].combine_chunks().dictionary_encode()
    names = topics.dictionary.to_pylist()
    # Codes in the order of the names, so that partitions come out sorted.
    rank = np.argsort(np.argsort(np.asarray(names, object)))
    topic = rank[topics.indices.to_numpy()] if names else np.zeros(0, np.int64)
    columns = {name: samples[name].to_numpy() for name in samples.column_names if name != "topic"}
    keep = _newest(columns["time_ms"], columns["broker"] >= 0, window_ms)
    order = np.lexsort((columns["time_ms"], columns["partition"], topic))
    order = order[keep[order]]
    if not len(order):
        return None
    keys = np.stack([topic[order], columns["partition"][order], columns["time_ms"][order]])
    changed = np.diff(keys, axis=1) != 0
    once = np.append(True, changed.any(axis=0))
    starts = np.append(True, changed[:2].any(axis=0))
    once &= _since_new(columns["flags"][order] & NEW, np.flatnonzero(starts))
    order = order[once]
    starts = np.append(True, np.diff(np.cumsum(starts)[once]) != 0)
    return SampleSteps(
        {name: column[order] for name, column in columns.items()},
        topic[order],
        sorted(names),
        np.flatnonzero(starts),
        starts,
    )


def _since_new(new: NDArray[Any], first: NDArray[np.int64]) -> Bools:
    """(n,) False for samples of an earlier topic of the same name."""
    rows = np.arange(len(new))
    begin = np.maximum.reduceat(np.where(new, rows, 0), first)
    return rows >= np.repeat(begin, np.diff(np.append(first, len(new))))


def _newest(time_ms: NDArray[np.int64], led: Bools, window_ms: int) -> Bools:
    """(n,) True for samples that had a leader, in the newest window of these."""
    newest_ms = time_ms[led].max(initial=0)
    kept: Bools = led & (time_ms >= newest_ms - window_ms)
    return kept


def _records_in(steps: SampleSteps) -> Floats:
    """(groups,) records per second; NaN where no step can be trusted."""
    records = steps.step("latest")
    forward = (records >= 0) & ~steps.starts
    seconds = steps.total(steps.step("time_ms") * forward) / 1000
    return quotient(steps.total(records * forward), seconds)


def _bytes_per_record(
    steps: SampleSteps, last: dict[str, NDArray[Any]], topic: NDArray[Any], new: Floats
) -> tuple[Floats, Bools]:
    """(groups,) bytes per record, NaN where unknown; and True where measured.

    `new`: (groups,) records of the window. A whole local log is as good a measure as
    its growth where little is in it but those.
    """
    clean = _clean(steps)
    grown_bytes = steps.total(steps.step("local_bytes") * clean)
    grown_records = steps.total(steps.step("latest") * clean)
    grown = (grown_bytes > 0) & (grown_records > 0)
    by_log = _bytes_by_log(steps)
    size = np.where(grown, quotient(grown_bytes, grown_records), by_log)
    log_records = last["latest"] - _known(last["earliest_local"])
    recent = ~np.isnan(by_log) & (log_records <= RECENT_WINDOWS * new)
    return np.where(np.isnan(size), _mean_by(topic, size), size), grown | recent


def _bytes_by_log(steps: SampleSteps) -> Floats:
    """(groups,) bytes per record of the local log, mean over the window's samples.

    One sample is not enough: its log may just have been truncated to nothing.
    """
    size, start = steps.columns["local_bytes"], steps.columns["earliest_local"]
    known = (size > 0) & (start >= 0)
    records = (steps.columns["latest"] - start) * known
    return quotient(steps.total(size * known), steps.total(records))


def _clean(steps: SampleSteps) -> Bools:
    """(n,) True where the local log grew by just what was appended.

    Size and offsets are not read at one instant, so a deletion may show in the size
    one step after it shows in the earliest offset: that step is not clean either.
    """
    sized = steps.columns["local_bytes"] >= 0
    same = (steps.step("earliest_local") == 0) & (steps.step("broker") == 0)
    same_before = np.append(True, same[:-1]) | steps.starts
    sized_before = np.append(True, sized[:-1])
    forward = (steps.step("latest") >= 0) & (steps.step("local_bytes") >= 0)
    clean: Bools = forward & same & same_before & sized & sized_before & ~steps.starts
    return clean


def _mean_by(topic: NDArray[Any], values: Floats) -> Floats:
    """Each row's mean over its topic's known values."""
    known = ~np.isnan(values)
    size = int(topic.max()) + 1
    sums = np.bincount(topic[known], values[known], size)
    counts = np.bincount(topic[known], minlength=size)
    means: Floats = quotient(sums, counts)[topic]
    return means


def _records_out(steps: SampleSteps) -> Floats:
    """(groups,) records read per second, by least squares over the summed commits."""
    read = steps.step("group_offsets")
    seen = (steps.columns["groups"] > 0) & (steps.columns["group_offsets"] >= 0)
    seen_before = np.append(False, seen[:-1])
    good = (read >= 0) & (steps.step("groups") == 0) & seen & seen_before & ~steps.starts
    seconds = _running(steps, steps.step("time_ms") * good) / 1000
    records = _running(steps, read * good)
    # The points are the ends of good steps, and the beginning of the first one.
    point = good | np.append(good[1:] & ~steps.starts[1:], False)
    return _slope(steps, seconds, records, point)


def _running(steps: SampleSteps, values: NDArray[np.int64]) -> Floats:
    """(n,) running sum of each partition's values.

    In integers, so that it does not depend on the partitions that stand before it.
    """
    summed = np.cumsum(values)
    length = np.diff(np.append(steps.first, len(values)))
    return (summed - np.repeat(summed[steps.first], length)).astype(np.float64)


def _slope(steps: SampleSteps, x: Floats, y: Floats, point: Bools) -> Floats:
    """(groups,) slope of the straight line through the points; NaN without a span."""
    n = steps.total(point)
    length = np.diff(np.append(steps.first, len(x)))
    x = x - np.repeat(quotient(steps.total(x * point), n), length)
    y = y - np.repeat(quotient(steps.total(y * point), n), length)
    x, y = np.where(point, x, 0), np.where(point, y, 0)
    return quotient(steps.total(x * y), steps.total(x * x))


def _net_out(
    net_in: Floats,
    records_out: Floats,
    record_bytes: Floats,
    last: dict[str, NDArray[Any]],
    window: Window,
) -> tuple[Floats, Bools]:
    """(groups,) bytes/s out, and True where commits were seen.

    0 where no group has committed, yet only as an estimate, for readers need not commit.
    Bytes in times the fan-out where groups cannot be seen.
    """
    groups = last["groups"]
    net_out = np.select(
        [groups > 0, groups == 0],
        [_product(records_out, record_bytes), np.zeros(len(groups))],
        net_in * window.fan_out,
    )
    return net_out, (groups > 0) & ~np.isnan(net_out)


def _total_bytes(last: dict[str, NDArray[Any]], record_bytes: Floats) -> Floats:
    """(groups,) as sampled; else the local log and the offsets before it."""
    tiered = _known(last["earliest_local"]) - _known(last["earliest"])
    reckoned = _known(last["local_bytes"]) + _product(tiered, record_bytes)
    sampled = _known(last["total_bytes"])
    return np.where(np.isnan(sampled), reckoned, sampled)


def _known_by(values: Floats, origin: Any) -> NDArray[np.int64]:
    return np.where(np.isnan(values), NOBODY, origin)


def _known(values: NDArray[Any]) -> Floats:
    return np.where(values >= 0, values, np.nan).astype(np.float64)


def _product(count: Floats, size: Floats) -> Floats:
    """Multiply; 0 where the count is 0, even if the size is unknown."""
    return np.where(count == 0, 0.0, count * size)


def quotient(above: NDArray[Any], below: NDArray[Any]) -> Floats:
    """Divide element by element; NaN where `below` is not positive."""
    above, below = np.asarray(above, np.float64), np.asarray(below, np.float64)
    out = np.full(above.shape, np.nan)
    np.divide(above, below, out=out, where=below > 0)
    return out


def concatenate(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables of one schema into one chunk; empty where there are none."""
    return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
