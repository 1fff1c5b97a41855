"""Reports out of the brokers' own exporters, each scraped directly in Prometheus' format."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from collector.reports.aggregate import MetricsResult, Place, ReportBuilder, place_of
from collector.reports.http import MetricsClient
from collector.reports.selectors import Figures, Selector
from model.errors import MetricsUnreachable
from model.units import count_text

TEXT: Final = "text/plain; version=0.0.4"
"""Prometheus' text format."""
_ENDPOINTS_AT_ONCE: Final = 8

Labels = frozenset[tuple[str, str]]
Series = dict[Labels, float]
"""Values by labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterSettings:
    """Where the exporters are, and how they call things."""

    urls: Mapping[int, str]
    """By broker id."""
    figures: Figures
    rate_window_s: int = 120
    """The growth of counters over a longer time does not show the present rate."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """The selected series of one exporter at one time."""

    at_s: float
    """By a clock that does not jump."""
    series: list[Series]
    """By selector."""


class Exporters:
    """Exporters of brokers, one per broker. One thread uses it at a time.

    A counter's figure is its increase since the scrape before, per second, so rates
    are there from the second scrape on. If a counter fell, its process or topic was
    restarted, and its growth until then is unknown: that rate is absent once.
    """

    needed: Final = 2
    """Number of polls until all figures exist: rates need two scrapes."""

    def __init__(
        self,
        settings: ExporterSettings,
        web: MetricsClient,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings, self._web = settings, web
        self._clock, self._steady = clock, steady
        self._chosen = [
            (figure, selector)
            for figure, selectors in settings.figures.items()
            for selector in selectors
        ]
        self._before: dict[int, Scrape] = {}

    @property
    def place(self) -> str:
        """The source in messages: `exporters of 3 brokers`."""
        return f"exporters of {count_text(len(self._settings.urls), 'broker')}"

    def read(self) -> MetricsResult:
        """Scrape all exporters at once and return their figures as reports.

        An exporter that fails is named in `failures`; nothing is raised.
        """
        time_ms = int(1000 * self._clock())
        sheet, failures = ReportBuilder(), []
        with ThreadPoolExecutor(_ENDPOINTS_AT_ONCE, "plimsoll-exporter") as pool:
            waiting = {
                broker: pool.submit(self._scrape, url)
                for broker, url in self._settings.urls.items()
            }
        for broker, answer in waiting.items():
            try:
                now = answer.result()
            except MetricsUnreachable as exc:
                failures.append(f"broker {broker}: {exc}")
                continue
            self._take(sheet, broker, now)
            failures += self._missing(broker, now)
            self._before[broker] = now
        return MetricsResult(reports=sheet.table(time_ms), failures=(*failures, *sheet.oddities()))

    def _scrape(self, url: str) -> Scrape:
        at_s = self._steady()
        body = self._web.get(url, TEXT)
        try:
            series = parse(body.decode(), [selector for _, selector in self._chosen])
        except ValueError as exc:
            raise MetricsUnreachable(
                f"{url} did not answer in Prometheus' text format; is it the address "
                "of an exporter?"
            ) from exc
        return Scrape(at_s, series)

    def _take(self, sheet: ReportBuilder, broker: int, now: Scrape) -> None:
        before = self._before.get(broker)
        span_s = now.at_s - before.at_s if before else 0.0
        if not 0 < span_s <= self._settings.rate_window_s:
            before = None
        reset: set[tuple[str, Place | None]] = set()
        found: list[tuple[str, Labels, float]] = []
        for position, (figure, selector) in enumerate(self._chosen):
            for labels, value in now.series[position].items():
                if not selector.counter:
                    found.append((figure, labels, value))
                elif before and labels in before.series[position]:
                    grown = value - before.series[position][labels]
                    found.append((figure, labels, grown / span_s))
                    if grown < 0:
                        reset.add((figure, place_of(broker, dict(labels))))
        for figure, labels, value in found:
            if (figure, place_of(broker, dict(labels))) not in reset:
                sheet.add(broker, dict(labels), figure, value)

    def _missing(self, broker: int, now: Scrape) -> list[str]:
        """A sentence with the figures that an exporter has no series for; none if it has all."""
        there = {
            figure for (figure, _), values in zip(self._chosen, now.series, strict=True) if values
        }
        missing = [
            f"{figure} ({' and '.join(map(str, selectors))})"
            for figure, selectors in self._settings.figures.items()
            if figure not in there
        ]
        return [
            f"broker {broker}: {self._settings.urls[broker]} has no series for "
            f"{', '.join(missing)}; check preset and metrics."
        ] * bool(missing)


def parse(text: str, chosen: Sequence[Selector]) -> list[Series]:
    """Return the series that each selector takes, in the order of the selectors.

    A selector without series gets an empty dict. Lines that no selector can take are not
    parsed. Raises ValueError: the last line has no end, or a line that a selector can take is
    not in Prometheus' text format 0.0.4.
    """
    # It takes 0.1 s, which only those pay who scrape.
    from prometheus_client.parser import text_string_to_metric_families

    if not text.endswith("\n"):
        raise ValueError("the last line has no end")
    found: list[Series] = [{} for _ in chosen]
    try:
        for family in text_string_to_metric_families("\n".join(_lines(text, chosen))):
            for sample in family.samples:
                labels = frozenset(sample.labels.items())
                for position, selector in enumerate(chosen):
                    if selector.takes(sample.name, sample.labels):
                        found[position][labels] = float(sample.value)
    # A time of 400 digits is an OverflowError.
    except (ValueError, LookupError, ArithmeticError) as exc:
        raise ValueError("a line is not a sample") from exc
    return found


def _lines(text: str, chosen: Sequence[Selector]) -> Iterator[str]:
    """Lines that a selector may take: the parser needs 20 us for each line, and an
    exporter without rules has a hundred times as many."""
    names = tuple(selector.name for selector in chosen)
    marks = [
        (selector.name, [f'"{value}"' for value in selector.labels.values() if value])
        for selector in chosen
    ]
    for line in text.split("\n"):
        if line.startswith(names) and any(
            line.startswith(name) and all(value in line for value in values)
            for name, values in marks
        ):
            yield line
