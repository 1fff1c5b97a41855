"""The poller: latest reports, their retention, and error messages."""

import math

import pyarrow as pa

from collector.reports.aggregate import MetricsResult, ReportBuilder
from collector.reports.poller import Poller
from collector.reports.report_columns import PROMETHEUS, REPORTS
from tests.support.collector.waiting import eventually

INTERVAL_S = 10.0


def reports(time_ms: int, *brokers: int) -> pa.Table:
    sheet = ReportBuilder()
    for broker in brokers:
        sheet.add(broker, {}, "cpu_cores", 1.0)
        sheet.add(broker, {"topic": "t"}, "bytes_in", 5.0)
    return sheet.table(time_ms)


class Script:
    """Returns one answer after the other, the last one forever."""

    place = "the lab"
    needed = 2

    def __init__(self, *answers: MetricsResult | Exception) -> None:
        self._left = list(answers)

    def read(self) -> MetricsResult:
        answer = self._left.pop(0) if len(self._left) > 1 else self._left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_unreported_figure_is_nan() -> None:
    table = reports(7, 3)
    assert table.schema == REPORTS
    of_broker, of_topic = table.to_pylist()
    assert (of_broker["cpu_cores"], of_topic["bytes_in"]) == (1.0, 5.0)
    assert of_broker["source"] == PROMETHEUS
    assert math.isnan(of_broker["bytes_in"])
    assert math.isnan(of_topic["cpu_cores"])


def test_there_are_no_reports_before_the_first_answer() -> None:
    poller = Poller(Script(MetricsResult(reports=reports(1), failures=())), INTERVAL_S)
    assert poller.reports().equals(REPORTS.empty_table())
    state = poller.state()
    assert (state.read_at_ms, state.brokers, state.failures) == (None, (), ())
    assert (state.source, state.place) == (PROMETHEUS, "the lab")


def test_reports_are_read_in_the_background_again_and_again() -> None:
    first = MetricsResult(reports=reports(1_000, 1, 2), failures=())
    second = MetricsResult(reports=reports(2_000, 1, 2), failures=("one is missing",))
    script = Script(first, second)
    with Poller(script, 0.01, lambda: 2.0) as poller:
        poller.start()
        eventually(lambda: 2_000 in poller.reports()["time_ms"].to_pylist())
        state = poller.state()
    assert state.read_at_ms == 2_000
    assert state.brokers == (1, 2)
    assert state.failures == ("one is missing",)


def test_an_error_in_a_poll_is_reported_and_the_next_poll_follows() -> None:
    script = Script(KeyError("hush"), MetricsResult(reports=reports(1_000, 4), failures=()))
    with Poller(script, 0.01, lambda: 1.0) as poller:
        poller.start()
        eventually(lambda: bool(poller.state().brokers))
    assert poller.state().failures == ()


def test_an_error_in_a_poll_is_reported_without_its_content() -> None:
    script = Script(KeyError("hush"))
    with Poller(script, 0.01) as poller:
        poller.start()
        eventually(lambda: bool(poller.state().failures))
        assert poller.state().failures == ("the lab was not read: KeyError.",)


def test_reports_are_returned_for_three_intervals() -> None:
    now_s = [1000.0]
    idle = Script(MetricsResult(reports=reports(0), failures=()))
    poller = Poller(idle, INTERVAL_S, lambda: now_s[0])

    def take(*brokers: int) -> list[int]:
        result = reports(int(1000 * now_s[0]), *brokers)
        poller.take(MetricsResult(reports=result, failures=()))
        now_s[0] += INTERVAL_S
        return sorted(set(poller.reports()["broker"].to_pylist()))

    assert take(1, 2) == [1, 2]
    assert [take(1) for _ in range(4)] == [[1, 2], [1, 2], [1, 2], [1]]
    assert poller.state().brokers == (1,)
    assert poller.reports().num_rows == 2 * 4
    assert [take() for _ in range(4)] == [[1], [1], [1], []]
    state = poller.state()
    assert (state.read_at_ms, state.brokers) == (1_040_000, ())


def test_it_is_settled_after_the_required_number_of_polls() -> None:
    failed = MetricsResult(reports=reports(0), failures=("nobody there",))
    poller = Poller(Script(failed), INTERVAL_S)
    settled = []
    for _ in range(3):
        settled.append(poller.is_settled)
        poller.take(failed)
    assert settled == [False, False, True]
