"""What reports add to load vectors."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from collector.reports import automq_metrics
from collector.reports.merge import Completed, complete
from collector.reports.report_columns import AUTOMQ, CRUISE_CONTROL, FIGURES, PROMETHEUS, REPORTS
from collector.spark.vectors import ASSUMED, NOBODY, ORIGINS, PROBE, VECTORS
from tests.collector.reports.test_automq_metrics import recorded
from tests.support.collector.report_rows import Row, automq, cruise, report, report_table
from tests.support.collector.sample_rows import START_MS, figures, load_table, vector

AUTOMQ_S = 60
"""Time for which reports of AutoMQ are fresh."""
UNMEASURED = {"in_measured": False, "in_by": PROBE}
NO_COMMITS = {"net_out": 0.0, "out_by": ASSUMED}


def seen(**other: Any) -> Row:
    """A partition with 100 kB/s in and 1,000 records/s by its offsets."""
    probed = {"net_in": 1e5, "net_out": 4e4, "records_in": 1000.0, "out_measured": True}
    by = dict.fromkeys(("in_by", "out_by", "total_by"), PROBE)
    return vector(**(probed | by | other))


def completed(
    vectors: list[Row], *reports: Row, cores: dict[int, float] | None = None
) -> Completed:
    return complete(load_table(vectors), report_table(reports), cores or {})


def rows(vectors: list[Row], *reports: Row) -> list[Row]:
    return figures(completed(vectors, *reports).vectors)


def row(seen: Row, *reports: Row) -> Row:
    (result,) = rows([seen], *reports)
    return result


def metered(bytes_in: float, bytes_out: float, **other: Any) -> tuple[Row, Row]:
    """AutoMQ's meter for a partition whose leader has led for a while."""
    rates = {"bytes_in": bytes_in, "bytes_out": bytes_out, **other}
    return automq(-20, bytes_in=0.0, bytes_out=0.0), automq(-10, **rates)


def by(result: Row, name: str) -> str:
    return ORIGINS[result[name]]


def test_without_reports_nothing_changes() -> None:
    given = [seen(), seen(partition=1, net_in=math.nan, in_by=NOBODY)]
    result = completed(given)
    assert figures(result.vectors) == figures(load_table(given))
    assert (result.passed_over, result.without_cores) == ({}, ())


def test_without_vectors_there_is_nothing_to_complete() -> None:
    result = complete(VECTORS.empty_table(), report_table([automq(0)]), {})
    assert result.vectors.equals(VECTORS.empty_table())
    assert complete(result.vectors, REPORTS.empty_table(), {}).passed_over == {}


# Bytes in.


def test_measured_offsets_take_precedence_over_every_reporter() -> None:
    result = row(seen(in_measured=True), *metered(5e4, 0.0))
    assert (result["net_in"], result["in_measured"]) == (1e5, True)
    assert by(result, "in_by") == "probe"


def test_a_rate_of_the_partition_takes_precedence_over_an_estimate_by_offsets() -> None:
    result = row(seen(**UNMEASURED), *metered(5e4, 0.0))
    assert (result["net_in"], result["in_measured"]) == (5e4, True)
    assert by(result, "in_by") == AUTOMQ
    assert result["automq_ms"] == START_MS - 10_000


def test_only_the_newest_report_counts() -> None:
    reports = [automq(s, bytes_in=1000.0 - s) for s in (-10, -30, 0, -20)]
    assert row(seen(**UNMEASURED), *reports)["net_in"] == 1000.0


def test_the_rate_of_a_topic_is_split_by_the_records_of_its_partitions() -> None:
    given = [seen(partition=p, records_in=r, **UNMEASURED) for p, r in ((0, 3), (1, 1))]
    result = rows(given, cruise(topic="orders", bytes_in=8e4))
    assert [r["net_in"] for r in result] == [6e4, 2e4]
    assert [r["in_measured"] for r in result] == [True, True]
    assert [by(r, "in_by") for r in result] == [CRUISE_CONTROL] * 2
    assert [r["cruise_control_ms"] for r in result] == [START_MS] * 2


def test_without_records_the_rate_of_a_topic_is_split_evenly_and_estimated() -> None:
    unseen = {"net_in": math.nan, "records_in": math.nan, **UNMEASURED}
    given = [seen(partition=0, **unseen), seen(partition=1, **UNMEASURED)]
    result = rows(given, cruise(topic="orders", bytes_in=8e4))
    # What the probe estimates is better than an even share.
    assert [r["net_in"] for r in result] == [4e4, 1e5]
    assert [r["in_measured"] for r in result] == [False, False]
    assert [by(r, "in_by") for r in result] == [CRUISE_CONTROL, "probe"]


def test_the_rate_of_a_topic_is_that_of_its_only_partition_on_a_broker() -> None:
    given = [seen(partition=p, broker=1 + p, records_in=math.nan, **UNMEASURED) for p in (0, 1)]
    result = rows(given, cruise(topic="orders", bytes_in=8e4))
    assert [(r["net_in"], r["in_measured"]) for r in result] == [(8e4, True), (1e5, False)]


def test_a_topic_without_a_meter_has_no_traffic_once_a_pass_is_complete() -> None:
    idle = seen(net_in=math.nan, records_in=math.nan, **UNMEASURED)
    given = [idle, seen(topic="other", in_measured=True)]
    size = cruise(-60, topic="orders", partition=0, size_bytes=9.0)
    assert row(idle, size)["net_in"] is None
    half = cruise(-60, topic="other", bytes_in=1.0)
    assert rows(given, size, half)[0]["net_in"] is None
    whole = cruise(0, topic="other", bytes_in=1.0)
    assert rows(given, size, half, whole)[0]["net_in"] == 0.0


# Bytes out.


def test_bytes_out_are_corrected_by_as_much_as_bytes_in_are_off() -> None:
    result = row(seen(in_measured=True), *metered(8e4, 3e4))
    assert result["net_out"] == pytest.approx(3e4 * 1e5 / 8e4)
    assert (by(result, "out_by"), result["out_measured"]) == (AUTOMQ, True)


def test_bytes_out_stay_as_reported_where_the_true_bytes_in_are_not_known() -> None:
    result = row(seen(**UNMEASURED), *metered(8e4, 3e4))
    assert (result["net_out"], result["out_measured"]) == (3e4, True)


def test_bytes_out_of_a_partition_without_writes_stay_as_reported() -> None:
    result = row(seen(net_in=0.0, in_measured=True), *metered(1023.0, 3e4))
    assert (result["net_out"], result["out_measured"]) == (3e4, True)


@pytest.mark.parametrize(("shown", "corrected"), [(1e4, 6e4), (5e5, 1.5e4), (0.0, 6e4)])
def test_a_rate_that_just_changed_is_corrected_up_to_the_limit_and_estimated(
    shown: float, corrected: float
) -> None:
    result = row(seen(in_measured=True, **NO_COMMITS), *metered(shown, 3e4))
    assert result["net_out"] == pytest.approx(corrected)
    assert (by(result, "out_by"), result["out_measured"]) == (AUTOMQ, False)


def test_commits_take_precedence_over_a_rate_that_just_changed() -> None:
    result = row(seen(in_measured=True), *metered(5e5, 3e4))
    assert (result["net_out"], by(result, "out_by")) == (4e4, "probe")


def test_the_first_report_of_a_leader_is_ignored_because_its_meter_starts_at_0() -> None:
    before = automq(-20, broker=2, bytes_in=1e5, bytes_out=7e4)
    first = automq(-10, bytes_in=0.0, bytes_out=0.0, size_bytes=3.0)
    later = automq(0, bytes_in=1e5, bytes_out=6e4)
    assert row(seen(), before, first)["net_out"] == 4e4
    assert row(seen(), before, first, later)["net_out"] == 6e4


def test_commits_take_precedence_over_a_topic_rate_that_must_be_split() -> None:
    reports = [cruise(topic="orders", bytes_out=9e4)]
    assert row(seen(), *reports)["net_out"] == 4e4
    result = row(seen(**NO_COMMITS), *reports)
    assert (result["net_out"], by(result, "out_by")) == (9e4, CRUISE_CONTROL)


def test_bytes_out_of_a_topic_are_split_by_bytes_in_and_estimated() -> None:
    given = [seen(partition=p, net_in=1e5 * p, in_measured=True, **NO_COMMITS) for p in (1, 3)]
    result = rows(given, cruise(topic="orders", bytes_out=8e4))
    assert [r["net_out"] for r in result] == [2e4, 6e4]
    assert [r["out_measured"] for r in result] == [False, False]


def test_a_partition_that_a_real_automq_moved_has_its_rate_from_the_second_report() -> None:
    """Its new leader reports 0, then 799,485 B/s; the old one reports nothing more."""
    result = automq_metrics.decode(pa.array(list(recorded()))).table
    own = result.filter((pc.field("topic") == "ab2") & (pc.field("partition") == 0))
    first_ms, second_ms, *_ = own.filter(pc.field("broker") == 0)["time_ms"].to_pylist()
    rates = []
    for now_ms in (first_ms, second_ms):
        moved = seen(topic="ab2", broker=0, time_ms=now_ms, **UNMEASURED)
        so_far = result.filter(pc.field("time_ms") <= now_ms)
        now = complete(load_table([moved]), so_far, {})
        rates += now.vectors["net_in"].to_pylist()
        assert now.passed_over["not the leader"] == 3
    assert rates == [1e5, pytest.approx(799_485.4)]


# Sizes.


def test_automq_reports_the_size_that_log_directories_do_not() -> None:
    unsized = seen(total_bytes=math.nan, total_by=NOBODY)
    reports = automq(0, size_bytes=7.0), cruise(0, topic="orders", partition=0)
    assert by(row(unsized, *reports), "total_by") == AUTOMQ
    assert row(unsized, *reports)["total_bytes"] == 7.0
    assert row(seen(), *reports)["total_bytes"] == 9000.0


def test_a_size_on_the_leaders_disk_is_not_taken_for_the_whole_log() -> None:
    unsized = seen(total_bytes=math.nan, total_by=NOBODY)
    reports = cruise(0, topic="orders", partition=0, size_bytes=7.0)
    assert row(unsized, reports)["total_bytes"] is None


# Requests.


def test_requests_of_a_broker_are_split_by_those_of_topics_and_by_bytes() -> None:
    given = [
        seen(partition=0, net_in=3e5, in_measured=True),
        seen(partition=1, net_in=1e5, in_measured=True),
        seen(topic="other", partition=0),
    ]
    of_topics = (cruise(topic="orders", requests=400.0), cruise(topic="other", requests=100.0))
    result = rows(given, cruise(requests=50.0), *of_topics)
    assert [r["requests"] for r in result] == [30.0, 10.0, 10.0]
    assert [r["requests_measured"] for r in result] == [False] * 3
    assert [by(r, "requests_by") for r in result] == [CRUISE_CONTROL] * 3
    result = rows(given, *of_topics)
    assert [r["requests"] for r in result] == [300.0, 100.0, 100.0]


def test_without_requests_of_topics_those_of_a_broker_are_split_by_bytes() -> None:
    given = [seen(partition=p, net_in=1e5, net_out=1e5 * p, in_measured=True) for p in (0, 2)]
    result = rows(given, report(PROMETHEUS, 0, requests=80.0))
    assert [r["requests"] for r in result] == [20.0, 60.0]
    idle = [seen(partition=p, net_in=0.0, net_out=0.0) for p in (0, 1)]
    result = rows(idle, report(PROMETHEUS, 0, requests=80.0))
    assert [r["requests"] for r in result] == [40.0, 40.0]


def test_requests_of_a_partition_are_measured() -> None:
    own = report(PROMETHEUS, 0, topic="orders", partition=0, requests=3.0)
    result = row(seen(), cruise(requests=80.0), own)
    assert (result["requests"], result["requests_measured"]) == (3.0, True)
    assert by(result, "requests_by") == PROMETHEUS


# CPU.


def test_the_cpu_of_a_leader_follows_cruise_controls_model() -> None:
    """a = 0.7, s = 0.15, c = 0.15, of wire-formats.md 2.5."""
    given = [seen(in_measured=True), seen(partition=1, net_in=3e5, net_out=0.0)]
    whole = cruise(cpu_share=0.5, bytes_in=4e5, bytes_out=2e5, replication_in=1e5, requests=1.0)
    result = completed(given, whole, cores={1: 8.0})
    model = 0.7 * 4e5 + 0.15 * 2e5 + 0.15 * 1e5
    assert [r["cpu"] for r in figures(result.vectors)] == pytest.approx(
        [0.5 * 8 * (0.7 * 1e5 + 0.15 * 4e4) / model, 0.5 * 8 * (0.7 * 3e5) / model]
    )
    assert {by(r, "cpu_by") for r in figures(result.vectors)} == {CRUISE_CONTROL}


def test_partitions_never_take_more_cpu_than_their_broker() -> None:
    """Its totals lag behind its offsets."""
    given = [seen(partition=p, net_in=1e6, in_measured=True) for p in range(3)]
    whole = report(PROMETHEUS, 0, cpu_cores=3.0, bytes_in=1.0, bytes_out=1.0)
    result = rows(given, whole)
    assert sum(r["cpu"] for r in result) == pytest.approx(3.0)


def test_cores_in_use_take_precedence_over_a_share_of_them() -> None:
    reports = cruise(cpu_share=0.5), report(PROMETHEUS, -10, cpu_cores=3.0)
    result = completed([seen()], *reports, cores={1: 8.0})
    (only,) = figures(result.vectors)
    assert (only["cpu"], by(only, "cpu_by")) == (pytest.approx(3.0), PROMETHEUS)


def test_a_cpu_share_without_known_cores_is_ignored_and_its_broker_named() -> None:
    given = [seen(), seen(partition=1, broker=2), seen(partition=2, broker=3)]
    shares = [cruise(broker=b, cpu_share=0.5) for b in (1, 2)]
    result = completed(given, *shares, cores={2: 4.0})
    assert result.without_cores == (1,)
    assert result.vectors["cpu"].to_pylist() == pytest.approx([2.0, 2.0, 2.0])
    origins = [by(r, "cpu_by") for r in figures(result.vectors)]
    assert origins == ["assumed", CRUISE_CONTROL, "assumed"]
    alone = completed([seen()], cruise(cpu_share=0.5))
    assert (alone.without_cores, figures(alone.vectors)[0]["cpu"]) == ((1,), None)


def test_a_share_over_1_is_the_whole_broker() -> None:
    result = completed([seen()], cruise(cpu_share=1.7), cores={1: 2.0})
    assert result.vectors["cpu"].to_pylist() == pytest.approx([2.0])


def test_an_idle_partition_takes_no_cpu() -> None:
    idle = seen(net_in=0.0, net_out=0.0)
    assert row(idle, report(PROMETHEUS, 0, cpu_cores=1.0))["cpu"] == 0.0


def test_cpu_stays_unknown_where_bytes_are() -> None:
    unknown = seen(net_in=math.nan, in_by=NOBODY, **{"in_measured": False})
    assert row(unknown, report(PROMETHEUS, 0, cpu_cores=1.0))["cpu"] is None


# Bad input.


def test_late_reports_of_a_former_leader_are_omitted_and_counted() -> None:
    former = [automq(s, broker=2, bytes_in=1.0, bytes_out=9.0) for s in (-20, -10, 0)]
    result = completed([seen(**UNMEASURED)], *former, *metered(5e4, 0.0))
    assert result.vectors["net_in"].to_pylist() == [5e4]
    assert result.passed_over == {"not the leader": 3}


def test_sizes_reported_by_followers_are_not_a_fault() -> None:
    followers = cruise(broker=2, topic="orders", partition=0, size_bytes=5.0)
    assert completed([seen()], followers).passed_over == {}


def test_reports_of_deleted_partitions_and_topics_are_counted() -> None:
    gone = automq(0, partition=7, bytes_in=1.0), cruise(topic="gone", bytes_in=1.0)
    result = completed([seen()], *gone)
    assert result.passed_over == {"unknown partition": 2}
    assert figures(result.vectors) == figures(load_table([seen()]))


@pytest.mark.parametrize(("second", "reason"), [(-AUTOMQ_S - 0.001, "stale"), (30.001, "future")])
def test_reports_that_are_too_old_or_in_the_future_are_counted(second: float, reason: str) -> None:
    result = completed([seen(**UNMEASURED)], automq(second - 9), automq(second))
    assert result.passed_over[reason] >= 1
    assert result.vectors["in_by"].to_pylist() == [PROBE]


@pytest.mark.parametrize("value", [-1.0, math.inf, 1.1e18])
@pytest.mark.parametrize("figure", FIGURES)
def test_a_report_with_an_impossible_figure_is_counted(figure: str, value: float) -> None:
    result = completed([seen()], cruise(topic="orders", **{figure: value}))
    assert result.passed_over == {"value": 1}
    assert figures(result.vectors) == figures(load_table([seen()]))


def test_a_broker_without_reports_is_estimated_like_the_others_and_not_idle() -> None:
    given = [seen(), seen(partition=1, net_in=2e5, net_out=8e4, broker=2)]
    result = rows(given, report(PROMETHEUS, 0, cpu_cores=1.5, requests=30.0))
    assert [r["cpu"] for r in result] == pytest.approx([1.5, 3.0])
    assert [r["requests"] for r in result] == pytest.approx([30.0, 60.0])
    assert [by(result[1], n) for n in ("cpu_by", "requests_by")] == ["assumed"] * 2
    assert result[1]["prometheus_ms"] == -1


def test_a_broker_without_reports_keeps_the_loads_of_the_probe() -> None:
    given = [seen(), seen(partition=1, broker=2)]
    result = rows(given, cruise(topic="orders", bytes_in=0.0, bytes_out=0.0))
    assert (result[1]["net_in"], result[1]["net_out"]) == (1e5, 4e4)
    assert result[1]["cruise_control_ms"] == -1


# Names.


def test_a_topic_is_found_under_its_name_with_underscores() -> None:
    dotted = seen(topic="orders.v1", **UNMEASURED)
    result = row(dotted, cruise(topic="orders_v1", bytes_in=8e4))
    assert (result["net_in"], result["in_measured"]) == (8e4, True)


def test_topics_that_share_a_name_share_its_rate_as_an_estimate() -> None:
    names = ("a.b", "a_b")
    given = [
        seen(topic=t, net_in=math.nan, records_in=r, in_measured=False, in_by=NOBODY)
        for t, r in zip(names, (1.0, 3.0), strict=True)
    ]
    result = rows(given, cruise(topic="a_b", bytes_in=8e4))
    assert [r["net_in"] for r in result] == [2e4, 6e4]
    assert [r["in_measured"] for r in result] == [False, False]


def test_topics_reported_by_their_own_names_share_nothing() -> None:
    given = [seen(topic=t, **UNMEASURED) for t in ("a.b", "a_b")]
    rates = {"a.b": 1e3, "a_b": 2e3}
    reports = [automq(s, topic=t, bytes_in=v) for t, v in rates.items() for s in (0, 1)]
    assert [r["net_in"] for r in rows(given, *reports)] == [1e3, 2e3]


def test_partitions_with_the_same_name_are_distinguished_by_their_leaders() -> None:
    """As reporters of AutoMQ before 1.3 send them."""
    given = [seen(topic=t, broker=b, **UNMEASURED) for t, b in (("a.b", 1), ("a_b", 2))]
    reports = [automq(s, topic="a_b", broker=b, bytes_in=1e3 * b) for b in (1, 2) for s in (0, 1)]
    assert [r["net_in"] for r in rows(given, *reports)] == [1e3, 2e3]


def test_partitions_with_the_same_name_and_leader_are_omitted_and_counted() -> None:
    given = [seen(topic=t, **UNMEASURED) for t in ("a.b", "a_b")]
    result = completed(given, *(automq(s, topic="a_b", bytes_in=1.0) for s in (0, 1)))
    assert result.vectors["in_by"].to_pylist() == [PROBE, PROBE]
    assert result.passed_over == {"shared name": 2}
