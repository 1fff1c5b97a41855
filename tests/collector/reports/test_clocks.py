"""Reports of brokers whose clocks are wrong."""

import pytest

from collector.reports.clocks import CONFIRMED, Clocks
from collector.reports.report_columns import AUTOMQ
from tests.support.collector.report_rows import Row, automq, report_table
from tests.support.collector.sample_rows import START_MS

SKEW_S = 300.0


def seconds(clocks: Clocks, arrived_s: float, *rows: Row) -> list[float]:
    """Times after the correction, in seconds after the start."""
    result = clocks.corrected(report_table(rows), START_MS + int(1000 * arrived_s))
    return [(t - START_MS) / 1000 for t in result["time_ms"].to_pylist()]


def test_reports_that_arrive_soon_keep_their_times() -> None:
    clocks = Clocks()
    for at in range(0, 60, 10):
        assert seconds(clocks, at + 3, automq(at)) == [at]
    assert clocks.ahead_ms == {}


def test_a_fast_clock_is_detected_with_its_first_report() -> None:
    clocks = Clocks()
    assert seconds(clocks, 12, automq(10 + SKEW_S), automq(10, broker=2)) == [12, 10]
    assert clocks.ahead_ms == {(AUTOMQ, 1): 298_000}


def test_the_report_that_arrives_soonest_measures_a_fast_clock_best() -> None:
    clocks = Clocks()
    seconds(clocks, 15, automq(10 + SKEW_S))
    seconds(clocks, 21, automq(20 + SKEW_S))
    assert seconds(clocks, 33, automq(30 + SKEW_S)) == [31]
    assert clocks.ahead_ms == {(AUTOMQ, 1): 299_000}


def test_a_slow_clock_is_detected_once_several_batches_are_equally_late() -> None:
    clocks = Clocks()
    for at in range(0, 10 * CONFIRMED, 10):
        assert clocks.ahead_ms == {}
        result = seconds(clocks, at + 1, automq(at - SKEW_S))
    assert clocks.ahead_ms == {(AUTOMQ, 1): -301_000}
    assert result == [at + 1]


def test_reports_that_waited_in_the_topic_do_not_indicate_a_slow_clock() -> None:
    """An hour of them is read in five batches."""
    clocks = Clocks()
    for batch in range(5):
        at = -3600 + 720 * batch
        assert seconds(clocks, batch, automq(at), automq(at + 700)) == [at, at + 700]
    assert clocks.ahead_ms == {}


def test_a_silent_broker_does_not_count_as_having_a_slow_clock() -> None:
    clocks = Clocks()
    seconds(clocks, 1, automq(-200, broker=3), automq(0))
    for at in range(10, 60, 10):
        seconds(clocks, at + 1, automq(at))
    assert clocks.ahead_ms == {}


def test_a_corrected_clock_is_trusted_again() -> None:
    clocks = Clocks()
    seconds(clocks, 11, automq(10 + SKEW_S))
    assert seconds(clocks, 21, automq(20)) == [20]
    assert clocks.ahead_ms == {}


def test_one_absurd_time_does_not_shift_others() -> None:
    clocks = Clocks()
    rows = [automq(10, partition=number) for number in range(3)]
    wild = automq(10**6)
    assert seconds(clocks, 12, *rows, wild) == [10, 10, 10, 10**6]
    assert clocks.ahead_ms == {}


@pytest.mark.parametrize("skew_s", [-29.0, 29.0])
def test_a_clock_that_is_off_by_seconds_is_not_corrected(skew_s: float) -> None:
    clocks = Clocks()
    for at in range(0, 50, 10):
        assert seconds(clocks, at, automq(at + skew_s)) == [at + skew_s]
    assert clocks.ahead_ms == {}


def test_no_reports_change_nothing() -> None:
    assert seconds(Clocks(), 1) == []


ABSURD_MS = (-(2**63), -1, 1 << 42, 2**63 - 1)


@pytest.mark.parametrize("time_ms", ABSURD_MS)
def test_an_absurd_time_does_not_affect_reports_of_others(time_ms: int) -> None:
    clocks = Clocks()
    rows = [automq(10), automq(10, broker=2) | {"time_ms": time_ms}]
    assert seconds(clocks, 12, *rows) == [10]
    assert seconds(clocks, 22, automq(20), automq(20, broker=2)) == [20, 20]
    assert clocks.ahead_ms == {}
