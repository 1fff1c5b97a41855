"""Load vectors completed from reports, partition by partition, as a reference.

The rules are in docs/explanation/loads.md.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from collector.reports.report_columns import FIGURES, SOURCES

Row = dict[str, Any]
Figure = tuple[float, int, bool]
"""Value, time of its report, measured."""
ORIGIN = {"automq": 2, "cruise-control": 3, "prometheus": 4}
FRESH_MS = {"automq": 60_000, "cruise-control": 180_000, "prometheus": 180_000}


def known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def of(report: Row) -> list[float]:
    return [report[name] for name in FIGURES]


def newest(reports: Iterable[Row], figure: str) -> Figure | None:
    reported = [(r["time_ms"], r[figure]) for r in reports if known(r[figure])]
    if not reported:
        return None
    time_ms, value = max(reported)
    return value, time_ms, True


class Source:
    """Reports of one source."""

    def __init__(self, name: str, rows: Sequence[Row], reports: Iterable[Row]) -> None:
        self.name, self.rows = name, rows
        self.reports = [r for r in reports if r["source"] == name]
        self.names = {r["topic"] for r in self.reports}

    def reported_name(self, topic: str) -> str | None:
        names = [n for n in (topic, topic.replace(".", "_")) if n in self.names]
        return names[0] if names else None

    def place(self, row: Row) -> tuple[str | None, int]:
        return self.reported_name(row["topic"]), row["partition"]

    def group(self, row: Row) -> list[Row]:
        """The rows that share a topic's rate on a broker."""
        name = self.reported_name(row["topic"])
        return [
            r
            for r in self.rows
            if r["broker"] == row["broker"] and self.reported_name(r["topic"]) == name
        ]

    def of_partition(self, row: Row) -> list[Row]:
        name, number = self.place(row)
        alike = [r for r in self.group(row) if r["partition"] == number]
        if name is None or len(alike) > 1:
            return []
        where = name, number, row["broker"]
        return [r for r in self.reports if (r["topic"], r["partition"], r["broker"]) == where]

    def rate(self, row: Row, figure: str) -> Figure | None:
        reports = self.of_partition(row)
        first = min((r["time_ms"] for r in reports), default=0)
        return newest((r for r in reports if r["time_ms"] > first), figure)

    def of_broker(self, broker: int, figure: str) -> Figure | None:
        reported = (r for r in self.reports if r["topic"] is None)
        return newest((r for r in reported if r["broker"] == broker), figure)

    def of_topic(self, row: Row, figure: str) -> Figure | None:
        name = self.reported_name(row["topic"])
        if name is None:
            return None
        own = [r for r in self.reports if r["broker"] == row["broker"]]
        rates = [r for r in own if r["topic"] is not None and r["partition"] < 0]
        result = newest((r for r in rates if r["topic"] == name), figure)
        if result is not None:
            return result
        sizes = [
            r["time_ms"]
            for member in self.group(row)
            for r in self.of_partition(member)
            if known(r["size_bytes"])
        ]
        heard = [r["time_ms"] for r in rates if self.is_led(r) and known(r[figure])]
        if sizes and heard and min(sizes) < max(heard):
            return 0.0, max(heard), True
        return None

    def is_led(self, report: Row) -> bool:
        """The broker leads partitions of the topic."""
        where = report["topic"], report["broker"]
        return where in {(self.reported_name(r["topic"]), r["broker"]) for r in self.rows}

    def split(self, row: Row, figure: str, weight: str) -> Figure | None:
        rate = self.of_topic(row, figure)
        if rate is None:
            return None
        group = self.group(row)
        value = rate[0] * share(row, group, [r[weight] for r in group])
        return value, rate[1], len(group) == 1 or rate[0] == 0

    def passed_over(self) -> Iterator[str]:
        for report in self.reports:
            rated = known(report["bytes_in"]) or known(report["bytes_out"])
            if rated and report["topic"] is not None:
                yield from self.why_not(report)

    def why_not(self, report: Row) -> Iterator[str]:
        whole = report["partition"] < 0
        where = report["topic"], report["partition"]
        places = [
            r
            for r in self.rows
            if self.reported_name(r["topic"]) == where[0] and (whole or r["partition"] == where[1])
        ]
        own = [r for r in places if r["broker"] == report["broker"]]
        if not places:
            yield "unknown partition"
        elif not own:
            yield "not the leader"
        elif len(own) > 1 and not whole:
            yield "shared name"


def share(row: Row, group: Sequence[Row], weights: Sequence[float]) -> float:
    if all(map(known, weights)) and sum(weights) > 0:
        at = next(i for i, r in enumerate(group) if r is row)
        return weights[at] / sum(weights)
    return 1 / len(group)


class World:
    """Vectors being completed."""

    def __init__(
        self, vectors: Sequence[Row], reports: Iterable[Row], cores: Mapping[int, float]
    ) -> None:
        self.rows = [dict(v) for v in vectors]
        self.cores = cores
        now_ms = max(r["time_ms"] for r in vectors)
        self.passed_over = Counter[str]()
        fresh = []
        for report in reports:
            faults = {
                "stale": now_ms - report["time_ms"] > FRESH_MS[report["source"]],
                "future": report["time_ms"] - now_ms > 30_000,
                "value": any(known(v) and not 0 <= v <= 1e18 for v in of(report)),
            }
            self.passed_over.update(reason for reason, is_so in faults.items() if is_so)
            if not any(faults.values()):
                fresh.append(report)
        self.sources = [Source(name, self.rows, fresh) for name in SOURCES]
        for source in self.sources:
            self.passed_over.update(source.passed_over())
        self.without_cores: list[int] = []

    def complete(self) -> None:
        steps = (self.bytes_in, self.bytes_out, self.size, self.requests, self.cpu)
        for step in steps:
            # A split uses the loads of all, as left by the previous step.
            for row, result in [(row, step(row)) for row in self.rows]:
                if result is not None:
                    self.take(row, result)
        self.assume("requests", 1.0, 1.0)
        self.assume("cpu", 0.7, 0.15)
        self.without_cores = sorted(
            b for b in {r["broker"] for r in self.rows} if self.is_without_cores(b)
        )

    def assume(self, quantity: str, per_in: float, per_out: float) -> None:
        """By its rate in bytes if that is known."""
        sized = [
            (row, per_in * row["net_in"] + per_out * row["net_out"])
            for row in self.rows
            if known(row["net_in"]) and known(row["net_out"])
        ]
        reported = [(row[quantity], weight) for row, weight in sized if known(row[quantity])]
        whole = sum(weight for _, weight in reported)
        for row, weight in sized:
            if whole > 0 and not known(row[quantity]):
                row[quantity] = weight * sum(value for value, _ in reported) / whole
                row[f"{quantity}_by"] = 1

    def take(self, row: Row, found: tuple[str, str, Source, Figure]) -> None:
        quantity, short, source, (value, time_ms, measured) = found
        row[quantity], row[f"{short}_by"] = value, ORIGIN[source.name]
        if f"{short}_measured" in row:
            row[f"{short}_measured"] = measured
        at = f"{source.name.replace('-', '_')}_ms"
        row[at] = max(row[at], time_ms)

    def bytes_in(self, row: Row) -> Any:
        if row["in_measured"]:
            return None
        for source in self.sources:
            if (result := source.rate(row, "bytes_in")) is not None:
                return "net_in", "in", source, result
        splits = [(s, self.by_records(s, row)) for s in self.sources]
        for source, result in splits:
            if result is not None and result[2]:
                return "net_in", "in", source, result
        for source, result in splits:
            if result is not None and not known(row["net_in"]):
                return "net_in", "in", source, result
        return None

    def by_records(self, source: Source, row: Row) -> Figure | None:
        result = source.split(row, "bytes_in", "records_in")
        if result is None:
            return None
        group = source.group(row)
        records = [r["records_in"] for r in group]
        split = all(map(known, records)) and sum(records) > 0
        lone = len({r["topic"] for r in group}) == 1
        return result[0], result[1], result[2] or (split and lone)

    def bytes_out(self, row: Row) -> Any:
        committed = row["out_by"] == 0
        rates = [(s, self.without_lag(s, row)) for s in self.sources]
        for source, result in rates:
            if result is not None and (result[2] or not committed):
                return "net_out", "out", source, result
        for source in self.sources:
            result = source.split(row, "bytes_out", "net_in")
            if result is not None and not committed:
                return "net_out", "out", source, result
        return None

    def without_lag(self, source: Source, row: Row) -> Figure | None:
        given = source.rate(row, "bytes_out")
        shown = source.rate(row, "bytes_in")
        if given is None or shown is None:
            return given
        true = row["net_in"] if row["in_measured"] and row["in_by"] == 0 else shown[0]
        if max(true, shown[0]) < 1024:
            return given
        lag = true / shown[0] if shown[0] > 0 else math.inf
        limited = min(max(lag, 0.5), 2.0)
        return given[0] * limited, given[1], lag == limited

    def size(self, row: Row) -> Any:
        result = newest(self.sources[0].of_partition(row), "size_bytes")
        if result is None or known(row["total_bytes"]):
            return None
        return "total_bytes", "total", self.sources[0], result

    def requests(self, row: Row) -> Any:
        for source in self.sources:
            result = newest(source.of_partition(row), "requests")
            if result is not None:
                return "requests", "requests", source, result
        for source in self.sources:
            if (result := self.requests_by_topic(source, row)) is not None:
                return "requests", "requests", source, result
        return None

    def requests_by_topic(self, source: Source, row: Row) -> Figure | None:
        led = [r for r in self.rows if r["broker"] == row["broker"]]
        whole = source.of_broker(row["broker"], "requests")
        if whole is None:
            return source.split(row, "requests", "net_in")
        parts = [source.split(r, "requests", "net_in") for r in led]
        weights = [0.0 if p is None else p[0] for p in parts]
        if sum(weights) == 0:
            loads = [(r["net_in"], r["net_out"]) for r in led]
            weights = [sum(x for x in pair if known(x)) for pair in loads]
        return whole[0] * share(row, led, weights), whole[1], False

    def cpu(self, row: Row) -> Any:
        result = self.cpu_of(row["broker"])
        if result is None:
            return None
        source, (value, time_ms, _) = result
        led = [r for r in self.rows if r["broker"] == row["broker"]]
        weights = {"bytes_in": 0.7, "bytes_out": 0.15}
        own = 0.7 * row["net_in"] + 0.15 * row["net_out"]
        whole = 0.15 * (self.first(row["broker"], "replication_in") or 0.0)
        for figure, name in (("bytes_in", "net_in"), ("bytes_out", "net_out")):
            summed = sum(r[name] for r in led if known(r[name]))
            reported = self.first(row["broker"], figure) or 0.0
            whole += weights[figure] * max(reported, summed)
        if not known(own):
            return None
        part = own / whole if whole > 0 else 0.0
        return "cpu", "cpu", source, (value * part, time_ms, False)

    def first(self, broker: int, figure: str) -> float | None:
        result = (s.of_broker(broker, figure) for s in self.sources)
        return next((f[0] for f in result if f is not None), None)

    def cpu_of(self, broker: int) -> tuple[Source, Figure] | None:
        for source in self.sources:
            if (used := source.of_broker(broker, "cpu_cores")) is not None:
                return source, used
        for source in self.sources:
            part = source.of_broker(broker, "cpu_share")
            if part is not None and broker in self.cores:
                value = min(part[0], 1.0) * self.cores[broker]
                return source, (value, part[1], True)
        return None

    def is_without_cores(self, broker: int) -> bool:
        is_reported = any(s.of_broker(broker, "cpu_share") for s in self.sources)
        return is_reported and self.cpu_of(broker) is None
