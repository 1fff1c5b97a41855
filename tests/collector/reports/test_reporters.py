"""Discovery and reading of metric topics, and messages about them."""

import logging
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

from collector.reports.metric_topics import AUTOMQ_TOPIC, DECODERS, metric_topics
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, REPORTS
from collector.reports.reporters import ASIDE_S, Reporters, ReporterState
from collector.spark.arrow_transfer import Unpacked, packer, unpack
from collector.spark.vectors import ORIGINS, Window, load_vectors
from tests.collector.reports.test_automq_metrics import AUTOMQ_PARTITION, CRUISE_BROKER
from tests.support.collector import reporter_records
from tests.support.collector.report_rows import automq, report_table
from tests.support.collector.sample_rows import START_MS, cluster, sample, table, topic

ORDERS = topic("orders", [[1], [2], [3]])
METRICS = topic(AUTOMQ_TOPIC, [[1]])


@dataclass
class Seen:
    """Reporters with a clock set by the test."""

    now_s: float = START_MS / 1000
    reporters: Reporters = field(init=False)

    def __post_init__(self) -> None:
        self.reporters = Reporters(metric_topics(), lambda: self.now_s)

    def see(self, *topics: dict[str, Any]) -> None:
        self.reporters.see(cluster(ORDERS, *topics))

    def state(self, source: str = AUTOMQ) -> ReporterState:
        (result,) = [s for s in self.reporters.states() if s.source == source]
        return result

    def read(self) -> list[str]:
        return [reading.name for reading in self.reporters.to_read()]

    def begin(self) -> None:
        self.reporters.begin(self.reporters.to_read())

    def take(self, *rows: dict[str, Any], **left_out: int) -> None:
        tables = [report_table(rows)]
        self.reporters.take(
            AUTOMQ, Unpacked(tables, len(rows) + sum(left_out.values()), Counter(left_out))
        )


def test_a_topic_is_read_while_it_exists() -> None:
    seen = Seen()
    seen.see()
    assert seen.read() == []
    assert seen.state().why == f"the cluster has no topic {AUTOMQ_TOPIC}"
    assert not seen.state().found
    seen.see(METRICS)
    assert seen.read() == [AUTOMQ_TOPIC]
    seen.see()
    assert seen.read() == []


def test_a_recreated_topic_is_a_different_one() -> None:
    seen = Seen()
    seen.see(METRICS)
    before = seen.reporters.to_read()
    seen.see({**METRICS, "topic_id": "another"})
    assert seen.reporters.to_read() != before


def test_the_topic_of_cruise_control_may_have_another_name() -> None:
    reporters = Reporters(metric_topics("ops.metrics"))
    reporters.see(cluster(ORDERS, topic("ops.metrics", [[2]])))
    assert [(r.source, r.name) for r in reporters.to_read()] == [(CRUISE_CONTROL, "ops.metrics")]


def test_a_missing_right_to_read_is_named(caplog: pytest.LogCaptureFixture) -> None:
    seen = Seen()
    with caplog.at_level(logging.WARNING, "plimsoll.collector"):
        for _ in range(2):
            seen.see({**METRICS, "authorized_operations": ["DESCRIBE"]})
    assert seen.read() == []
    assert (seen.state().found, seen.state().readable) == (True, False)
    assert "lacks the right READ on the topic __auto_b" in seen.state().why
    assert len(caplog.messages) == 1


def test_a_topic_that_is_hidden_needs_another_right() -> None:
    seen = Seen()
    state = replace(cluster(ORDERS), unreadable={AUTOMQ_TOPIC: "DESCRIBE"})
    seen.reporters.see(state)
    assert "lacks the right DESCRIBE" in seen.state().why
    assert seen.state().found


def test_a_topic_without_a_leader_is_neither_started_nor_dropped() -> None:
    seen = Seen()
    lost = topic(AUTOMQ_TOPIC, [[1]], leaders=[-1])
    seen.see(lost)
    assert seen.read() == []
    assert "1 partition of the topic __auto_balancer_metrics without" in (seen.state().why)
    seen.see(METRICS)
    seen.begin()
    seen.see(lost)
    assert seen.read() == [AUTOMQ_TOPIC]


def test_a_failing_topic_is_suspended_for_a_while_and_the_other_is_read() -> None:
    seen = Seen()
    both = METRICS, topic("__CruiseControlMetrics", [[1]])
    seen.see(*both)
    assert not seen.reporters.set_aside("nothing is read yet", "")
    seen.begin()
    assert seen.reporters.set_aside(f"no partition {AUTOMQ_TOPIC}-0", "it is gone")
    assert seen.read() == ["__CruiseControlMetrics"]
    assert seen.state().why == "set aside for a while: it is gone"
    seen.now_s += ASIDE_S
    assert len(seen.read()) == 2


def test_a_failure_without_a_topic_suspends_all() -> None:
    seen = Seen()
    seen.see(METRICS, topic("__CruiseControlMetrics", [[1]]))
    seen.begin()
    assert seen.reporters.set_aside("timed out", "timed out")
    assert seen.read() == []


def test_an_empty_topic_is_distinguished_from_a_stale_one() -> None:
    seen = Seen()
    seen.see(METRICS)
    seen.begin()
    seen.reporters.see_samples(table([sample(0, topic=AUTOMQ_TOPIC)]))
    assert f"the topic {AUTOMQ_TOPIC} is empty" in seen.state().why
    seen.reporters.see_samples(table([sample(9, topic=AUTOMQ_TOPIC)]))
    assert seen.state().why == f"the topic {AUTOMQ_TOPIC} was not read long enough yet"
    seen.now_s += 11
    assert seen.state().why == f"no record came into the topic {AUTOMQ_TOPIC} for 60.0 s"


def test_a_broker_is_silent_after_three_intervals_and_never_idle() -> None:
    seen = Seen()
    seen.see(METRICS)
    seen.begin()
    assert seen.state().silent == ()
    seen.take(automq(0, broker=1), automq(0, broker=2), automq(0, broker=3))
    assert seen.state().silent == ()
    seen.now_s += 61
    seen.take(automq(61, broker=1), automq(61, broker=3))
    assert seen.state().silent == (2,)
    assert seen.state().why == ""
    seen.reporters.set_aside("timed out", "timed out")
    assert seen.state().silent == ()


def test_a_clock_that_is_ahead_is_reported_and_its_reports_count() -> None:
    seen = Seen()
    seen.see(METRICS)
    rates = {"bytes_in": 100_000.0, "bytes_out": 300_000.0}
    seen.take(automq(300, **rates), automq(0, broker=2))
    assert seen.state().clocks_s == {1: 300.0}
    seen.now_s += 10
    seen.take(automq(310, **rates))
    samples = table(sample(s, groups=0, group_offsets=0) for s in range(6, 12))
    vectors = load_vectors(samples, Window(window_ms=15_000))
    assert seen.reporters.complete(vectors)["net_out"].to_pylist() == [300_000.0]
    assert seen.reporters.passed_over == {}


def test_invalid_records_are_counted_and_newer_versions_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen = Seen()
    seen.see(METRICS)
    with caplog.at_level(logging.WARNING, "plimsoll.collector"):
        seen.take(automq(0), version=3, short=1)
        seen.take(automq(0), version=3)
    state = seen.state()
    assert (state.records, state.left_out) == (9, {"version": 6, "short": 1})
    assert len(caplog.messages) == 1
    assert "4 of 5 records of the topic __auto" in caplog.text
    assert "3 of a newer format" in caplog.text


def test_reports_from_a_long_absence_are_dropped() -> None:
    seen = Seen()
    seen.see(METRICS)
    seen.take(*(automq(-second) for second in range(35, 3605, 10)))
    vectors = load_vectors(table(map(sample, range(6))), Window(window_ms=15_000))
    seen.reporters.complete(vectors)
    assert seen.reporters.passed_over == {}
    assert seen.state().records == 357


def test_it_is_settled_once_reports_have_arrived_or_none_will() -> None:
    seen = Seen()
    seen.see()
    assert seen.reporters.are_settled()
    seen.see(METRICS)
    assert not seen.reporters.are_settled()
    seen.begin()
    assert not seen.reporters.are_settled()
    seen.take(automq(0))
    assert seen.reporters.are_settled()


def test_reports_complete_the_vectors_of_their_leader() -> None:
    seen = Seen()
    seen.see(METRICS)
    seen.now_s += 6
    samples = table(sample(s, groups=0, group_offsets=0) for s in range(6))
    vectors = load_vectors(samples, Window(window_ms=15_000))
    rates = {"bytes_in": 100_000.0, "bytes_out": 300_000.0}
    # A leader's first report may be made before its meter has run.
    seen.take(automq(2, **rates), automq(4, **rates))
    (result,) = seen.reporters.complete(vectors).to_pylist()
    assert result["net_out"] == pytest.approx(300_000.0)
    assert ORIGINS[result["out_by"]] == AUTOMQ
    assert ORIGINS[result["in_by"]] == "probe"


def test_tables_pass_through_spark_unchanged() -> None:
    time_ms = START_MS
    records = [AUTOMQ_PARTITION, b"", b"\x00\x07" * 20]
    records.append(reporter_records.automq_partition(time_ms, 2, "größe", 7, {0: 1.5}))
    batch = pa.record_batch([pa.array(records, pa.binary())], ["value"])
    packed = pa.Table.from_batches(packer(AUTOMQ, DECODERS[AUTOMQ])(iter([batch] * 2)))
    result = unpack(packed)[AUTOMQ]
    assert (result.records, result.left_out) == (8, {"short": 2, "version": 2})
    rows = pa.concat_tables(result.tables).to_pylist()
    assert [(r["topic"], r["partition"]) for r in rows] == [("t", 3), ("größe", 7)] * 2


def test_each_topic_has_the_decoder_of_its_reporter() -> None:
    result, left_out = DECODERS[CRUISE_CONTROL](pa.array([CRUISE_BROKER, b"x"]))
    assert result.schema == REPORTS
    assert (result["cpu_share"].to_pylist(), left_out) == ([0.4375], {"short": 1})
