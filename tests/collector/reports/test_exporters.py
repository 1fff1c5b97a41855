"""Reports from brokers' exporters: rates between two scrapes, and failures."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest

from collector.reports.exporters import Exporters, ExporterSettings, parse
from collector.reports.http import Access, MetricsClient
from collector.reports.report_columns import FIGURES as ALL
from collector.reports.selectors import Figures, figures, selector
from model.errors import MetricsUnreachable

RECORDED = Path(__file__).with_name("recorded")
FIGURES: Figures = {
    "bytes_in": (selector('rate(traffic_total{way="in"})'),),
    "size_bytes": (selector("size"),),
}


class Brokers(MetricsClient):
    """Pages by address; None if the connection is refused."""

    def __init__(self, texts: Mapping[str, str | None]) -> None:
        super().__init__(Access())
        self.texts = dict(texts)
        self.now_s = 1000.0

    def get(self, url: str, accept: str) -> bytes:
        text = self.texts[url]
        if text is None:
            raise MetricsUnreachable(f"{url} was not read: nobody.")
        return text.encode()

    def exporters(self, figures: Figures = FIGURES) -> Exporters:
        settings = ExporterSettings(urls={int(url): url for url in self.texts}, figures=figures)
        return Exporters(settings, self, lambda: 7.0, lambda: self.now_s)

    def later(self, seconds: float, **texts: str | None) -> None:
        self.now_s += seconds
        self.texts |= {url.removeprefix("_"): text for url, text in texts.items()}


def page_with(size: float, **traffic: float) -> str:
    lines = [f'traffic_total{{topic="{t}",way="in"}} {v}' for t, v in traffic.items()]
    return "\n".join(["# TYPE traffic_total counter", *lines, f"size {size}", ""])


def rows(exporters: Exporters, *failures: str) -> list[dict[str, Any]]:
    """Reports without absent figures; asserts that only `failures` failed."""
    answer = exporters.read()
    assert answer.failures == failures
    named = ("broker", "topic", "partition", *ALL)
    return [
        {
            k: row[k]
            for k in named
            if row[k] is not None and not (isinstance(row[k], float) and math.isnan(row[k]))
        }
        for row in answer.reports.to_pylist()
    ]


def broker(number: int, **figures: object) -> dict[str, object]:
    return {"broker": number, "partition": -1, **figures}


def test_counters_become_rates_from_the_second_scrape() -> None:
    brokers = Brokers({"1": page_with(5, a=100, b=7), "2": page_with(6, a=50)})
    exporters = brokers.exporters()
    assert rows(exporters) == [broker(1, size_bytes=5.0), broker(2, size_bytes=6.0)]
    brokers.later(20, _1=page_with(8, a=300, b=7), _2=page_with(6, a=60))
    assert rows(exporters) == [
        broker(1, size_bytes=8.0),
        broker(1, topic="a", bytes_in=10.0),
        broker(1, topic="b", bytes_in=0.0),
        broker(2, size_bytes=6.0),
        broker(2, topic="a", bytes_in=0.5),
    ]


def test_a_counter_that_was_reset_has_no_rate_for_one_scrape() -> None:
    brokers = Brokers({"1": page_with(1, a=100, b=100)})
    exporters = brokers.exporters()
    exporters.read()
    brokers.later(10, _1=page_with(1, a=40, b=200))
    assert rows(exporters)[1:] == [broker(1, topic="b", bytes_in=10.0)]
    brokers.later(10, _1=page_with(1, a=90, b=200))
    assert rows(exporters)[1] == broker(1, topic="a", bytes_in=5.0)


def test_a_sum_with_a_reset_summand_is_absent() -> None:
    def page(produced: int, one: int, other: int) -> str:
        return (
            f'produced {produced}\nfetched{{version="1"}} {one}\nfetched{{version="2"}} {other}\n'
        )

    brokers = Brokers({"1": page(0, 10, 10)})
    both = (selector("rate(produced)"), selector("rate(fetched)"))
    exporters = brokers.exporters({"requests": both})
    exporters.read()
    brokers.later(10, _1=page(10, 30, 5))
    assert rows(exporters) == []
    brokers.later(10, _1=page(10, 50, 15))
    assert rows(exporters) == [broker(1, requests=3.0)]


def test_a_new_series_waits_for_its_second_scrape() -> None:
    brokers = Brokers({"1": page_with(1)})
    exporters = brokers.exporters({"bytes_in": (selector("rate(traffic_total)"),)})
    missing = "broker 1: 1 has no series for bytes_in (traffic_total); check preset"
    assert rows(exporters, f"{missing} and metrics.") == []
    brokers.later(10, _1=page_with(1, a=1_000_000))
    assert rows(exporters) == []
    brokers.later(10, _1=page_with(1, a=1_000_010))
    assert rows(exporters) == [broker(1, topic="a", bytes_in=1.0)]


def test_an_increase_over_a_long_silence_gives_no_rate() -> None:
    brokers = Brokers({"1": page_with(1, a=0)})
    exporters = brokers.exporters()
    exporters.read()
    brokers.later(600, _1=page_with(1, a=600))
    assert rows(exporters) == [broker(1, size_bytes=1.0)]


def test_brokers_that_do_not_answer_do_not_affect_the_others() -> None:
    brokers = Brokers({str(i): page_with(i) for i in range(6)})
    exporters = brokers.exporters({"size_bytes": (selector("size"),)})
    brokers.later(1, _0=None, _2="<html>log in</html>\n", _4=page_with(4)[:-2])
    result = rows(
        exporters,
        "broker 0: 0 was not read: nobody.",
        "broker 2: 2 has no series for size_bytes (size); check preset and metrics.",
        "broker 4: 4 did not answer in Prometheus' text format; is it the address of an exporter?",
    )
    assert [row["broker"] for row in result] == [1, 3, 5]


def test_invalid_figures_are_absent_and_counted() -> None:
    page = 'size NaN\nsize{topic="t"} -1\nsize{topic="u"} +Inf\nsize{topic="v"} 2\n'
    exporters = Brokers({"1": page}).exporters({"size_bytes": (selector("size"),)})
    message = "3 values of size_bytes were left out: NaN, infinite, negative, or of no "
    assert rows(exporters, f"{message}partition.") == [broker(1, topic="v", size_bytes=2.0)]


def test_a_recorded_automq_exporter_gives_the_known_rates() -> None:
    """Node 0 of an AutoMQ 1.7.3, before and after 1000 records of 1000 B came to its
    one partition and 2000 were read. Its requests and CPU are in the same pages."""
    before, after = ((RECORDED / f"automq-{when}.txt").read_text() for when in ("before", "after"))
    brokers = Brokers({"0": before})
    exporters = brokers.exporters(figures("automq", {}))
    assert rows(exporters) == []
    brokers.later(10, _0=after)
    result = {(row.get("topic"), row["partition"]): row for row in rows(exporters)}
    whole, part = result[None, -1], result["scraped.by_topic", 0]
    assert 100_000 < part["bytes_in"] < 105_000
    assert 200_000 < part["bytes_out"] < 210_000
    assert part["bytes_in"] < whole["bytes_in"] < 1.01 * part["bytes_in"]
    assert whole["bytes_out"] == part["bytes_out"]
    assert whole["requests"] == pytest.approx(0.5)
    assert whole["cpu_cores"] == pytest.approx(0.031)


@pytest.mark.parametrize(
    "text", ["size", "size x\n", "size{ 1\n", 'size{a="b} 1\n', "size\n", 'size{a="b"c} 1\n']
)
def test_text_in_another_format_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"no end|not a sample"):
        parse(text, [selector("size")])


PIECES = ["size", "{", "}", '"', "a=", "\\", " ", "1", "\n", "#", ","]


@given(text=st.lists(st.sampled_from(PIECES), max_size=20).map("".join))
def test_no_text_breaks_the_parser(text: str) -> None:
    try:
        (result,) = parse(f"{text}\n", [selector("size")])
    except ValueError:
        return
    assert all(isinstance(value, float) for value in result.values())


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(values=st.dictionaries(st.tuples(NAMES, NAMES), st.floats(0), max_size=5))
def test_output_of_the_reference_client_is_read_unchanged(
    values: dict[tuple[str, str], float],
) -> None:
    registry = CollectorRegistry()
    gauge = Gauge("size", "of logs", ["topic", "kind"], registry=registry)
    grown = Counter("traffic", "of clients", ["topic", "way"], registry=registry)
    for (topic, other), value in values.items():
        gauge.labels(topic, other).set(value)
        grown.labels(topic, "in").inc(1)
    text = generate_latest(registry).decode()
    (result,) = parse(text, [selector("size")])
    assert result == {
        frozenset({("topic", topic), ("kind", other)}): value
        for (topic, other), value in values.items()
    }
    one_way, both, none = parse(
        text, [selector(f"traffic_total{pairs}") for pairs in ('{way="in"}', "", '{way=""}')]
    )
    assert one_way == both
    assert len(both) == len({topic for topic, _ in values})
    assert none == {}


@pytest.mark.parametrize("time", ["9" * 400, "-1e999", "nan", "1 2", "x"])
def test_an_absurd_time_of_one_exporter_does_not_affect_others(time: str) -> None:
    brokers = Brokers({"1": f"size 4 {time}\n", "2": page_with(5.0)})
    answer = brokers.exporters({"size_bytes": FIGURES["size_bytes"]}).read()
    assert 2 in answer.reports["broker"].to_pylist()
    assert all("broker 1" in message for message in answer.failures)


def test_a_nan_value_of_one_exporter_does_not_affect_others() -> None:
    brokers = Brokers({"1": "size " + "9" * 5000 + "\n", "2": page_with(5.0)})
    answer = brokers.exporters({"size_bytes": FIGURES["size_bytes"]}).read()
    assert answer.reports["broker"].to_pylist() == [2]
