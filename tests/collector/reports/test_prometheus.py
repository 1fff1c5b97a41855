"""Reports from a Prometheus server: documented answers and all others."""

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.reports.aggregate import MetricsResult
from collector.reports.http import Access, MetricsClient
from collector.reports.prometheus import PrometheusServer, ServerSettings
from collector.reports.report_columns import REPORTS
from collector.reports.selectors import Figures, figures, selector
from tests.support.collector.http_pages import Page, pages, query_of, vector

CPU = 'sum by (id, topic, partition) (rate(cpu_total{id!=""}[120s]))'
SIZE = 'sum by (id, topic, partition) (size{kind="log",id!=""})'
FIGURES: Figures = {
    "cpu_cores": (selector("rate(cpu_total)"),),
    "size_bytes": (selector('size{kind="log"}'),),
}
NOW_S = 1_800_000_000.5


def server(url: str, **own: Any) -> PrometheusServer:
    values = {"figures": FIGURES, "broker_label": "id", **own}
    web = MetricsClient(Access(timeout_s=60))
    return PrometheusServer(ServerSettings(url=url, **values), web, lambda: NOW_S)


def read(answers: Callable[[str], Page] | Mapping[str, Page], **own: Any) -> MetricsResult:
    """Poll a server once that answers these queries, and others with nothing."""
    by_query = answers if callable(answers) else lambda q: answers.get(q, vector())
    with pages(lambda path: by_query(query_of(path))) as at:
        result = server(at.url, **own).read()
        return MetricsResult(
            reports=result.reports,
            failures=tuple(message.replace(at.url, "URL") for message in result.failures),
        )


def rows(answer: MetricsResult) -> list[dict[str, Any]]:
    """Reports without their absent figures."""
    assert answer.reports.schema == REPORTS
    return [
        {k: v for k, v in row.items() if not (isinstance(v, float) and math.isnan(v))}
        for row in answer.reports.to_pylist()
    ]


def report(broker: int, **figures: object) -> dict[str, object]:
    head = {"source": "prometheus", "time_ms": 1_800_000_000_500, "broker": broker}
    return {**head, "topic": None, "partition": -1, **figures}


def test_brokers_topics_and_partitions_become_reports() -> None:
    place = {"id": "2", "topic": "a.b_c"}
    result = read(
        {
            CPU: vector(({"id": "1"}, "1.5"), ({"id": "2"}, "0.25")),
            SIZE: vector(({"id": "2"}, "30"), (place, "20"), ({**place, "partition": "7"}, "1e1")),
        }
    )
    topic = {"topic": "a.b_c"}
    assert rows(result) == [
        report(1, cpu_cores=1.5),
        report(2, cpu_cores=0.25, size_bytes=30.0),
        report(2, size_bytes=20.0) | topic,
        report(2, size_bytes=10.0) | topic | {"partition": 7},
    ]
    assert result.failures == ()


def test_a_sum_with_a_failed_summand_is_absent() -> None:
    def answer(query: str) -> Page:
        return Page(status=503) if "fetch" in query else vector(({"id": "1"}, "3"))

    both = (selector("produce"), selector("fetch"))
    result = read(answer, figures={"requests": both, "cpu_cores": (selector("cpu"),)})
    assert rows(result) == [report(1, cpu_cores=3.0)]
    assert result.failures == ("URL/api/v1/query did not answer (HTTP 503).",)


def test_several_series_of_one_partition_are_summed() -> None:
    both = {"requests": (selector("produce"), selector("fetch"))}
    result = read(
        {
            'sum by (id, topic, partition) (produce{id!=""})': vector(
                ({"id": "1"}, "3"), ({"id": "2"}, "5")
            ),
            'sum by (id, topic, partition) (fetch{id!=""})': vector(({"id": "1"}, "4")),
        },
        figures=both,
    )
    assert rows(result) == [report(1, requests=7.0), report(2, requests=5.0)]
    assert result.failures == ()


def test_the_operators_labels_are_in_every_query() -> None:
    asked: list[str] = []

    def note(query: str) -> Page:
        asked.append(query)
        return vector(({"id": "1"}, "1"))

    read(note, labels={"cluster": 'the "big" one\\'}, rate_window_s=60)
    assert sorted(asked) == [
        "sum by (id, topic, partition) "
        r'(rate(cpu_total{cluster="the \"big\" one\\",id!=""}[60s]))',
        "sum by (id, topic, partition) "
        r'(size{kind="log",cluster="the \"big\" one\\",id!=""})',
    ]


def test_the_configured_pattern_extracts_broker_ids() -> None:
    cpu = vector(({"id": "kafka-0"}, "1"), ({"id": "kafka-12"}, "2"))
    result = read({CPU: cpu, SIZE: cpu}, broker_pattern=r"kafka-(\d+)")
    assert [row["broker"] for row in rows(result)] == [0, 12]


@pytest.mark.parametrize("label", ["kafka-0:9404", "", "-1", "9" * 12, "²"])
def test_a_label_that_is_not_an_id_is_named_and_never_guessed(label: str) -> None:
    result = read({CPU: vector(({"id": label}, "1"), ({"id": "3"}, "2"))})
    assert rows(result) == [report(3, cpu_cores=2.0)]
    assert result.failures[0] == (
        f"URL: cpu_total has id={json.dumps(label, ensure_ascii=False)}, which is not "
        "a broker's id; check broker_label and broker_pattern."
    )


def test_series_without_the_label_are_absent_and_reported() -> None:
    result = read({SIZE: vector(({"id": "1"}, "4"))}, labels={})
    assert rows(result) == [report(1, size_bytes=4.0)]
    assert result.failures == (
        "URL has no series cpu_total with a label id, so cpu_cores is absent; check "
        "preset, metrics, labels and broker_label.",
    )


def test_invalid_figures_are_absent_and_counted() -> None:
    odd = [({"id": str(i)}, text) for i, text in enumerate(["NaN", "+Inf", "-1", "2"])]
    partition = {"id": "3", "topic": "t", "partition": "x"}
    result = read({CPU: vector(*odd), SIZE: vector((partition, "1"))})
    assert rows(result) == [report(3, cpu_cores=2.0)]
    assert result.failures == (
        "3 values of cpu_cores were left out: NaN, infinite, negative, or of no partition.",
        "1 values of size_bytes were left out: NaN, infinite, negative, or of no partition.",
    )


def test_silent_brokers_are_missing_and_named_for_an_hour() -> None:
    alive = {str(i) for i in range(6)}
    now_s = [NOW_S]

    def answer(_: str) -> Page:
        return vector(*(({"id": i}, "1") for i in sorted(alive)))

    with pages(lambda path: answer(query_of(path))) as at:
        settings = ServerSettings(url=at.url, figures=FIGURES, broker_label="id")
        source = PrometheusServer(settings, MetricsClient(Access()), lambda: now_s[0])
        assert source.read().failures == ()
        alive -= {"1", "3", "5"}
        now_s[0] += 15
        result = source.read()
        assert result.reports["broker"].to_pylist() == [0, 2, 4]
        message = f"{at.url} no longer has figures of broker 1, 3, 5."
        assert result.failures == (message,)
        now_s[0] += 3600
        assert source.read().failures == ()


def test_one_failed_figure_does_not_affect_the_others() -> None:
    def answer(query: str) -> Page:
        failed = {"status": "error", "errorType": "execution", "error": "too many"}
        if query == CPU:
            return Page(json.dumps(failed).encode(), 422)
        return vector(({"id": "1"}, "4"))

    result = read(answer)
    assert rows(result) == [report(1, size_bytes=4.0)]
    assert result.failures == ("URL/api/v1/query did not answer (HTTP 422: too many).",)


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_of_all_queries_is_reported_once(status: int) -> None:
    result = read(lambda _: Page(status=status))
    assert rows(result) == []
    (message,) = result.failures
    assert f"HTTP {status}" in message


def test_warnings_of_a_server_are_reported() -> None:
    partial = vector(({"id": "1"}, "4"), warnings=["one store did not answer"])
    result = read({CPU: partial, SIZE: vector(({"id": "1"}, "1"))})
    assert result.failures == ("URL/api/v1/query warns: one store did not answer.",)
    assert rows(result) == [report(1, cpu_cores=4.0, size_bytes=1.0)]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>log in</html>",
        b"[1]",
        b"null",
        b"{",
        b"[" * 100_000,
        b"\xff",
        b'{"status":"success","data":null}',
        b'{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[{"metric":{}}]}}',
        b'{"status":"success","data":{"resultType":"vector","result":[7]}}',
        b'{"data":{"resultType":"vector","result":[{"metric":[],"value":[1,"2"]}]}}',
        b'{"data":{"resultType":"vector","result":[{"metric":{},"value":[1,"x"]}]}}',
        b'{"data":{"resultType":"vector","result":[]},"warnings":7}',
    ],
)
def test_an_answer_that_is_not_a_vector_is_reported(body: bytes) -> None:
    result = read(lambda _: Page(body))
    assert rows(result) == []
    assert result.failures == (
        "URL/api/v1/query did not answer as a Prometheus does; is it the address of one?",
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["metric", "value", "id"]), inner, max_size=3)
    ),
    max_leaves=8,
)


class Fixed(MetricsClient):
    """Answers every query with one document."""

    document: object = None

    def get(self, url: str, accept: str) -> bytes:
        return json.dumps(self.document).encode()


FIXED = Fixed(Access())


@given(result=JSON)
def test_no_answer_breaks_the_reader(result: object) -> None:
    FIXED.document = {"data": {"resultType": "vector", "result": result}}
    settings = ServerSettings(url="http://x", figures=FIGURES, broker_label="id")
    actual = PrometheusServer(settings, FIXED).read()
    assert actual.reports.schema == REPORTS
    assert actual.failures


def test_every_preset_queries_by_the_label_and_only_for_figures_of_reports() -> None:
    asked: list[str] = []

    def note(query: str) -> Page:
        asked.append(query)
        return vector()

    for preset in ("jmx", "strimzi", "automq"):
        result = read(note, figures=figures(preset, {}))
        assert result.failures
        assert set(figures(preset, {})) < set(REPORTS.names)
    assert all('id!=""' in query for query in asked)


def test_the_address_may_have_a_path() -> None:
    with pages(lambda _: vector(({"id": "1"}, "1"))) as at:
        server(f"{at.url}/prometheus/").read()
        assert all(p.startswith("/prometheus/api/v1/query?") for p, _ in at.asked)
