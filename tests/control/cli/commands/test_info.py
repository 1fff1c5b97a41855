"""The sources listed by `plimsoll info`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from collector.reports.metric_topics import AUTOMQ_TOPIC
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, PROMETHEUS
from collector.reports.reporters import ReporterState
from collector.spark.vectors import ORIGINS, Window, load_vectors
from control.cli.output_types import InfoAnswer
from control.render.metric_sources import info_answer, info_text
from model.snapshot.snapshot import Resource, Snapshot
from tests.support.collector.sample_rows import sample, table
from tests.support.control.loop_parts import MB, cluster

NOW_MS = 1_700_000_010_000


def reporter(source: str = AUTOMQ, **other: Any) -> ReporterState:
    fields: dict[str, Any] = {
        "topic": AUTOMQ_TOPIC,
        "found": True,
        "readable": True,
        "why": "",
        "newest_ms": NOW_MS - 4000,
        "records": 120,
        "left_out": {},
        "silent": (),
        "clocks_s": {},
    }
    return ReporterState(source=source, **fields | other)


def vectors(by: Mapping[str, str]) -> pa.Table:
    """Vectors of two partitions, with the given source for each named column."""
    samples = [sample(s, partition=p) for s in range(6) for p in range(2)]
    result = load_vectors(table(samples), Window(window_ms=15_000))
    for column, origin in by.items():
        at = result.schema.get_field_index(column)
        codes = pa.array([ORIGINS.index(origin)] * 2, pa.int8())
        result = result.set_column(at, column, codes)
    return result


STATE = cluster([1, 2], [MB, MB])


def info(
    *reporters: ReporterState, polled: Sequence[Any] = (), state: Snapshot = STATE, **other: Any
) -> InfoAnswer:
    fields: dict[str, Any] = {
        "silent": (),
        "reports_passed_over": {},
        "brokers_without_cores": (),
        "folder": Path("/state/clusters/c1"),
        "spark_master": "local[2]",
        "notes": (),
    }
    by_source = vectors({"out_by": AUTOMQ})
    return info_answer(state, by_source, reporters, polled, now_ms=NOW_MS, **fields | other)


def shown(answer: InfoAnswer) -> str:
    return info_text(answer, STATE)


def line(text: str, start: str) -> str:
    (result,) = [row for row in text.splitlines() if row.startswith(start)]
    return result


def test_each_source_has_its_findings_or_the_reason_for_none() -> None:
    missing = reporter(
        CRUISE_CONTROL,
        topic="ops",
        found=False,
        readable=False,
        why="the cluster has no topic ops",
        newest_ms=None,
        records=0,
    )
    probe, automq, cruise = info(reporter(), missing).sources
    assert (probe.name, probe.readable) == ("probe", True)
    assert (automq.place, automq.newest_age_s) == (AUTOMQ_TOPIC, 4.0)
    assert cruise.why_not == "the cluster has no topic ops"
    assert "newest_age_s" not in cruise.model_dump()
    text = shown(info(reporter(), missing))
    assert line(text, "automq").endswith("read; newest 4.00 s old; 120 records")
    assert line(text, "cruise-control").endswith(
        "ops                      the cluster has no topic ops"
    )


def test_each_quantity_has_its_source_and_the_reason() -> None:
    result = info(reporter()).quantities
    by = {q.quantity: {b.name: b.partitions for b in q.by} for q in result}
    assert by["net_in"] == {"probe": 2}
    assert by["net_out"] == {"automq": 2}
    assert by["cpu"] == {"nobody": 2}
    assert all(b.why for q in result for b in q.by)
    words = line(shown(info(reporter())), "net_out").split()
    assert words[:4] == ["net_out", "automq", "100.0", "%"]
    assert " ".join(words[4:]) == "its meter of the partition, less its lag"


def test_programs_get_a_capacity_for_cpu_in_percent_of_a_core() -> None:
    state = cluster([1], [MB])
    broker = state.header.brokers[0].model_copy(update={"capacity": {Resource.CPU: 4.0}})
    header = state.header.model_copy(update={"brokers": (broker, *state.header.brokers[1:])})
    answer = info(state=Snapshot(header, state.partitions))
    assert answer.model_dump(mode="json")["brokers"][0]["capacity"] == {"cpu": 400.0}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"left_out": {"version": 3}}, "3 of a newer format"),
        ({"left_out": {"short": 2}}, "2 ignored: short"),
        ({"silent": (2, 3)}, "silent: broker 2, 3"),
        ({"clocks_s": {1: 300.0}}, "clock of broker 1 5 min 00 s ahead"),
        ({"clocks_s": {1: -300.0}}, "clock of broker 1 5 min 00 s behind"),
    ],
)
def test_anomalies_are_reported_with_their_source(other: dict[str, Any], message: str) -> None:
    assert message in line(shown(info(reporter(**other))), "automq")


def test_cpu_that_is_a_share_of_unknown_cores_is_named_with_the_remedy() -> None:
    text = shown(info(reports_passed_over={"stale": 4}, brokers_without_cores=(1, 2)))
    assert "reports ignored: 4 stale" in text
    assert "broker 1, 2 reports CPU as a share of its cores; set the number" in text


def test_brokers_that_do_not_answer_the_probe_are_named() -> None:
    assert line(shown(info(silent=(3,))), "probe").endswith("silent: broker 3")


def test_the_history_folder_and_the_spark_master_are_shown() -> None:
    text = shown(info())
    assert "history in /state/clusters/c1; Spark at local[2]" in text


@dataclass(frozen=True)
class Asked:
    """A polled reporter, as the collector reports it."""

    read_at_ms: int | None
    brokers: tuple[int, ...]
    failures: tuple[str, ...] = ()
    source: str = PROMETHEUS
    place: str = "http://prometheus:9090"


def test_sources_that_are_queried_are_listed_beside_the_topics() -> None:
    good = shown(info(polled=(Asked(NOW_MS - 2000, (1, 2)),)))
    assert line(good, "prometheus").endswith("read; newest 2.00 s old; silent: broker 3")
    bad = info(polled=(Asked(None, (), ("It does not answer.",)),))
    (result,) = bad.sources[1:]
    assert (result.readable, result.why_not) == (False, "It does not answer.")
    assert "It does not answer.; silent" in line(shown(bad), "prometheus")
