"""Complete the probe's load vectors with metrics reports.

Which source goes before which, quantity by quantity, is in docs/explanation/loads.md.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from collector.reports.matching import (
    Bools,
    Floats,
    LedPartitions,
    MatchedReports,
    ReportedFigures,
    is_lone,
    shares,
    weighed,
)
from collector.reports.report_columns import AHEAD_MS, AUTOMQ, FIGURES, FRESH_MS, SOURCES
from collector.spark.vectors import ASSUMED, BY, MEASURED, ORIGINS, PROBE, VECTORS

MOST: Final = 1e18
"""No figure of any report is more: not the bytes of a log, and no rate."""
NEGLIGIBLE: Final = 1024.0
"""Bytes/s: a lower rate does not show how far a meter lags."""
MOST_LAG: Final = 2.0
"""A meter that is off by more than this factor is not corrected further."""

_LEADER_IN: Final = 0.7
_LEADER_OUT: Final = 0.15
_FOLLOWER_IN: Final = 0.15
"""What a byte weighs in a broker's CPU (Cruise Control's `ModelParameters`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """Completed load vectors, and the reports that could not be used."""

    vectors: pa.Table
    """Schema `VECTORS`, in the order they came in."""
    passed_over: Mapping[str, int]
    """Reports of the last minutes that were of no use, by reason: stale, future,
    value, not the leader, unknown partition, shared name."""
    without_cores: tuple[int, ...]
    """Brokers that report the share of their CPU in use but not the number of cores, and
    whose capacity in cores is unknown, too: the share cannot be used."""


def complete(vectors: pa.Table, reports: pa.Table, cores: Mapping[int, float]) -> Completed:
    """Complete load vectors with the reports of the current leaders.

    Parameters
    ----------
    vectors
        Schema `VECTORS`, as samples gave them; the newest sample is now.
    reports
        Schema `REPORTS`, in any order, each once or more, by the collector's clock
        (`clocks.Clocks`). Of several reports of one thing the newest counts.
    cores
        Of brokers, by id, where they are known.
    """
    if not len(vectors):
        return Completed(vectors=vectors, passed_over={}, without_cores=())
    led = LedPartitions.of(vectors)
    fresh, passed_over = _fresh(reports, pc.max(vectors["time_ms"]).as_py())
    matched = {
        source: MatchedReports.of(led, fresh.filter(pc.equal(fresh["source"], source)))
        for source in SOURCES
        if source in fresh["source"].unique().to_pylist()
    }
    if not matched:
        return Completed(vectors=vectors, passed_over=passed_over, without_cores=())
    loads = _Loads(vectors, led)
    _bytes_in(loads, matched)
    _bytes_out(loads, matched)
    if AUTOMQ in matched:
        # Others report what lies on the leader's disk, without the remote tier.
        size = matched[AUTOMQ].of_partitions("size_bytes")
        loads.give("total_bytes", AUTOMQ, size, np.isnan(loads["total_bytes"]))
    _requests(loads, matched)
    without_cores = _cpu(loads, matched, cores)
    loads.assume("requests", loads["net_in"] + loads["net_out"])
    loads.assume("cpu", _weight(loads["net_in"], loads["net_out"]))
    for reported in matched.values():
        passed_over.update(reported.passed_over)
    return Completed(vectors=loads.table(), passed_over=passed_over, without_cores=without_cores)


class _Loads:
    """Load vectors being completed; a known load is not replaced."""

    def __init__(self, vectors: pa.Table, led: LedPartitions) -> None:
        self.led = led
        self._vectors = vectors
        self._columns: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        """(n,) a column."""
        if name not in self._columns:
            self._columns[name] = self._vectors[name].to_numpy().copy()
        return self._columns[name]

    def give(self, quantity: str, source: str, given: ReportedFigures, where: Bools) -> Bools:
        """(n,) True for the rows that took the figure: of these, where it is known."""
        rows: Bools = where & ~np.isnan(given.values)
        self[quantity][rows] = given.values[rows]
        self[BY[quantity]][rows] = ORIGINS.index(source)
        if quantity in MEASURED:
            self[MEASURED[quantity]][rows] = given.measured[rows]
        times = self[f"{source.replace('-', '_')}_ms"]
        times[rows] = np.maximum(times[rows], given.times[rows])
        return rows

    def assume(self, quantity: str, weights: Floats) -> None:
        """Fill in unknown loads: as much per weight as the known ones have.

        A broker without reports would look idle beside those with reports.
        """
        values = self[quantity]
        known = ~np.isnan(values) & ~np.isnan(weights)
        rows = np.isnan(values) & ~np.isnan(weights)
        whole = weights[known].sum()
        if whole > 0:
            values[rows] = weights[rows] * (values[known].sum() / whole)
            self[BY[quantity]][rows] = ASSUMED

    def table(self) -> pa.Table:
        """Schema `VECTORS`."""
        columns = [self._columns.get(n, self._vectors[n]) for n in VECTORS.names]
        return pa.table(columns, schema=VECTORS)


def _fresh(reports: pa.Table, now_ms: int) -> tuple[pa.Table, Counter[str]]:
    """Reports that still count, and the numbers of others by reason."""
    time_ms = reports["time_ms"].to_numpy()
    source = reports["source"].combine_chunks().dictionary_encode()
    lasting = [FRESH_MS.get(name, 0) for name in source.dictionary.to_pylist()]
    values = np.stack([reports[name].to_numpy() for name in FIGURES])
    absurd = ~(np.isnan(values) | ((values >= 0) & (values <= MOST))).all(axis=0)
    stale = now_ms - time_ms > np.array([*lasting, 0])[source.indices.to_numpy()]
    future = time_ms - now_ms > AHEAD_MS
    faults = {"stale": stale, "future": future, "value": absurd}
    found = {reason: int(rows.sum()) for reason, rows in faults.items()}
    valid = reports.filter(pa.array(~stale & ~future & ~absurd))
    return valid, +Counter(found)


def _bytes_in(loads: _Loads, matched: Mapping[str, MatchedReports]) -> None:
    missing = ~loads["in_measured"]
    for source, reported in matched.items():
        given = reported.rates_of_partitions("bytes_in")
        missing &= ~loads.give("net_in", source, given, missing)
    records = loads["records_in"]
    by_topic = {s: _by_records(r, records) for s, r in matched.items()}
    for source, given in by_topic.items():
        missing &= ~loads.give("net_in", source, given, missing & given.measured)
    for source, given in by_topic.items():
        loads.give("net_in", source, given, np.isnan(loads["net_in"]))


def _by_records(matched: MatchedReports, records: Floats) -> ReportedFigures:
    """(n,) bytes in of topics, by the records that came into each partition.

    That is as good as measured unless two topics share the rate: their records may
    differ in size.
    """
    given = matched.split("bytes_in", records)
    all_weighed = weighed(matched.pair_of, len(matched.pair_broker), records)
    lone = is_lone(matched.pair_of, len(matched.pair_broker), matched.led.topic)
    known = ~np.isnan(given.values)
    measured = given.measured | (known & all_weighed & lone)
    return ReportedFigures(given.values, given.times, measured)


def _bytes_out(loads: _Loads, matched: Mapping[str, MatchedReports]) -> None:
    missing = np.ones(len(loads.led.partition), np.bool_)
    committed = loads["out_by"] == PROBE
    for source, reported in matched.items():
        given = _without_lag(loads, reported)
        # What is a guess goes behind what groups have committed.
        missing &= ~loads.give("net_out", source, given, missing & (given.measured | ~committed))
    missing &= ~committed
    for source, reported in matched.items():
        given = reported.split("bytes_out", loads["net_in"])
        missing &= ~loads.give("net_out", source, given, missing)


def _without_lag(loads: _Loads, matched: MatchedReports) -> ReportedFigures:
    """(n,) bytes out as the leader's meter shows them, corrected.

    A meter's mean lags behind by a minute, in and out alike. So bytes out are as far
    off as bytes in, whose true value the offsets give, as long as consumers read
    what comes in. Where bytes in are off by more than `MOST_LAG`, the rate has just
    changed, and how far consumers have followed is not known.
    """
    shown = matched.rates_of_partitions("bytes_in").values
    given = matched.rates_of_partitions("bytes_out")
    true = np.where(loads["in_measured"] & (loads["in_by"] == PROBE), loads["net_in"], shown)
    significant = np.fmax(shown, true) >= NEGLIGIBLE
    lag = np.ones(len(shown))
    np.divide(true, shown, out=lag, where=significant & (shown > 0))
    lag[significant & (shown == 0)] = np.inf
    limited = np.clip(lag, 1 / MOST_LAG, MOST_LAG)
    return ReportedFigures(given.values * limited, given.times, given.measured & (lag == limited))


def _requests(loads: _Loads, matched: Mapping[str, MatchedReports]) -> None:
    missing = np.ones(len(loads.led.partition), np.bool_)
    for source, reported in matched.items():
        given = reported.of_partitions("requests")
        missing &= ~loads.give("requests", source, given, missing)
    for source, reported in matched.items():
        given = _requests_of_topics(loads, reported)
        missing &= ~loads.give("requests", source, given, missing)


def _requests_of_topics(loads: _Loads, matched: MatchedReports) -> ReportedFigures:
    """(n,) a topic's requests by bytes in; all together as many as the broker's own.

    A request is for many partitions and counts once for the broker, yet for each of its
    topics. If no topic reports requests, those of the broker are split by bytes.
    """
    given = matched.split("requests", loads["net_in"])
    led = matched.led
    whole = matched.of_brokers("requests").of(led.broker)
    by_topic = led.total(given.values)[led.broker] > 0
    traffic = np.nan_to_num(loads["net_in"]) + np.nan_to_num(loads["net_out"])
    weights = np.where(by_topic, np.nan_to_num(given.values), traffic)
    share = shares(led.broker, len(led.brokers), weights)
    scaled = ~np.isnan(whole.values)
    return ReportedFigures(
        np.where(scaled, whole.values * share, given.values),
        np.where(scaled, whole.times, given.times),
        given.measured & ~scaled,
    )


def _cpu(
    loads: _Loads, matched: Mapping[str, MatchedReports], cores: Mapping[int, float]
) -> tuple[int, ...]:
    """Give partitions their CPU; return the brokers whose share cannot be used."""
    led = loads.led
    cores_of = np.array([cores.get(b, np.nan) for b in led.brokers.tolist()])
    used = [(s, r.of_brokers("cpu_cores")) for s, r in matched.items()]
    shares = [(s, r.of_brokers("cpu_share")) for s, r in matched.items()]
    for source, share in shares:
        in_use = np.minimum(share.values, 1.0) * cores_of
        used.append((source, ReportedFigures(in_use, share.times, share.measured)))
    part = _part_of_cpu(loads, matched)
    known = np.zeros(len(led.brokers), np.bool_)
    for source, whole in used:
        given = whole.of(led.broker)
        estimate = ReportedFigures(given.values * part, given.times, np.zeros_like(given.measured))
        loads.give("cpu", source, estimate, ~known[led.broker])
        known |= ~np.isnan(whole.values)
    reporting = np.any([share.measured for _, share in shares], axis=0)
    return tuple(led.brokers[reporting & np.isnan(cores_of) & ~known].tolist())


def _part_of_cpu(loads: _Loads, matched: Mapping[str, MatchedReports]) -> Floats:
    """(n,) what leading a partition takes of its broker's CPU, as a share.

    Cruise Control's `ModelUtils.estimateLeaderCpuUtil`, without the bytes that leaders
    send to followers. The broker's totals are what it reports, or what its partitions
    add up to where that is more: the former lags, the latter lacks unknown partitions.
    """
    first = {
        name: _first([r.of_brokers(name).values for r in matched.values()])
        for name in ("bytes_in", "bytes_out", "replication_in")
    }
    led = loads.led
    taken = np.fmax(first["bytes_in"], led.total(loads["net_in"]))
    sent = np.fmax(first["bytes_out"], led.total(loads["net_out"]))
    copied = np.nan_to_num(first["replication_in"])
    whole = _weight(taken, sent) + _FOLLOWER_IN * copied
    own = _weight(loads["net_in"], loads["net_out"])
    # A broker without any traffic spends nothing on partitions.
    return own / np.where(whole > 0, whole, 1.0)[led.broker]


def _weight(taken: Floats, sent: Floats) -> Floats:
    return _LEADER_IN * taken + _LEADER_OUT * sent


def _first(columns: Sequence[Floats]) -> Floats:
    """(n,) the first known value of several columns."""
    found = columns[0]
    for other in columns[1:]:
        found = np.where(np.isnan(found), other, found)
    return found
