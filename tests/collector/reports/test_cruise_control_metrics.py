"""Metrics of Cruise Control become reports."""

import struct

import pyarrow as pa
import pytest

from collector.reports.cruise_control_metrics import decode_reports
from collector.reports.report_columns import REPORTS
from tests.collector.reports.test_automq_metrics import CRUISE
from tests.support.collector.report_rows import cruise
from tests.support.collector.sample_rows import START_MS, figures

BROKER, TOPIC, PARTITION = range(3)


def record(
    scope: int, metric: int, value: float, *, topic: str = "orders", second: int = 0
) -> bytes:
    """Metrics of broker 1, and of partition 7 if they belong to a partition."""
    head = struct.pack(">BBBqi", scope, 0, metric, START_MS + 1000 * second, 1)
    named = struct.pack(">i", len(topic)) + topic.encode() if scope else b""
    number = struct.pack(">i", 7) if scope == PARTITION else b""
    return head + named + number + struct.pack(">d", value)


def reports(*records: bytes) -> pa.Table:
    return decode_reports(pa.array(records, pa.binary())).table


def expected(*rows: dict[str, object]) -> list[dict[str, object]]:
    return figures(pa.Table.from_pylist(list(rows), schema=REPORTS))


def test_golden_records_of_cruise_control() -> None:
    assert figures(reports(*CRUISE.golden)) == expected(
        cruise(broker=3, cpu_share=0.4375),
        cruise(broker=3, topic="orders.v1", bytes_in=1_048_576.0),
        cruise(broker=3, topic="orders.v1", partition=7, size_bytes=1.5e9),
    )


def test_values_of_a_broker_with_one_time_form_one_report() -> None:
    result = reports(
        record(BROKER, 0, 5.0),
        record(BROKER, 1, 6.0),
        record(BROKER, 6, 7.0),
        record(BROKER, 16, 30.0),
        record(BROKER, 17, 12.0),
        record(TOPIC, 2, 1.0),
        record(TOPIC, 3, 2.0),
        record(TOPIC, 2, 3.0, second=60),
    )
    assert figures(result) == expected(
        cruise(bytes_in=5.0, bytes_out=6.0, replication_in=7.0, requests=42.0),
        cruise(topic="orders", bytes_in=1.0, bytes_out=2.0),
        cruise(60, topic="orders", bytes_in=3.0),
    )


def test_values_with_the_same_time_are_averaged() -> None:
    (row,) = figures(reports(record(TOPIC, 2, 1.0), record(TOPIC, 2, 4.0)))
    assert row["bytes_in"] == 2.5


@pytest.mark.parametrize("metric", [16, 17])
def test_requests_of_a_broker_are_unknown_if_one_summand_is(metric: int) -> None:
    (row,) = figures(reports(record(BROKER, metric, 30.0)))
    assert row["requests"] is None


@pytest.mark.parametrize(("metrics", "requests"), [((13,), 1.0), ((14,), 1.0), ((13, 14), 2.0)])
def test_a_topic_only_written_or_only_read_has_requests(
    metrics: tuple[int, ...], requests: float
) -> None:
    (row,) = figures(reports(*(record(TOPIC, metric, 1.0) for metric in metrics)))
    assert row["requests"] == requests


def test_figures_unrelated_to_load_give_no_report() -> None:
    idle_handlers, queue = record(BROKER, 19, 0.9), record(BROKER, 20, 4.0)
    assert len(reports(idle_handlers, queue)) == 0


def test_no_metrics_give_no_reports() -> None:
    assert reports().equals(REPORTS.empty_table())
