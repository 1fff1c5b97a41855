"""Reports out of a Prometheus server, by instant queries of its HTTP API."""

import json
import re
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from collector.reports.aggregate import MOST_ID, MetricsResult, ReportBuilder
from collector.reports.http import MetricsClient
from collector.reports.selectors import Figures, Selector
from model.bounded import parse_json
from model.errors import MetricsUnreachable

MISSED_MS: Final = 3_600_000
"""Milliseconds for which a broker that has disappeared is named."""
_QUERIES_AT_ONCE: Final = 4

_NO_VECTOR: Final = (AttributeError, LookupError, TypeError, ValueError, RecursionError)
"""Errors that JSON of another shape leads to."""
_DIGITS: Final = len(str(MOST_ID))
"""Python converts only so many."""
Series = tuple[dict[str, str], float]
"""Labels and value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """Where a Prometheus server is, and how it calls things."""

    url: str
    """Without `/api/v1`."""
    figures: Figures
    broker_label: str
    """The label that names the broker."""
    broker_pattern: str = r"(\d+)"
    """Its value; what the one group matches is the broker's id."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """That every series must have: which cluster, which job."""
    rate_window_s: int = 120
    """Increases of counters are averaged over this."""


class PrometheusServer:
    """A server that scrapes the brokers. One thread uses it at a time.

    Reports get our own time, since queries are for this moment: its clock does not matter.
    """

    needed: Final = 1
    """Number of polls until all figures exist: one, as the server keeps history."""

    def __init__(
        self, settings: ServerSettings, web: MetricsClient, clock: Callable[[], float] = time.time
    ) -> None:
        self._settings, self._web, self._clock = settings, web, clock
        self._pattern = re.compile(settings.broker_pattern, re.ASCII)
        self._seen: dict[int, int] = {}
        """When the server had figures of each broker last, in ms."""

    @property
    def place(self) -> str:
        """The server's URL, for messages."""
        return self._settings.url

    def read(self) -> MetricsResult:
        """Query all figures at once and return them as reports.

        A query that fails is named in `failures`; nothing is raised.
        """
        time_ms = int(1000 * self._clock())
        sheet, failures = ReportBuilder(), []
        with ThreadPoolExecutor(_QUERIES_AT_ONCE, "plimsoll-prometheus") as pool:
            waiting = {
                figure: [(chosen, pool.submit(self._ask, chosen)) for chosen in group]
                for figure, group in self._settings.figures.items()
            }
        for figure, group in waiting.items():
            try:
                answers = [(chosen, *answer.result()) for chosen, answer in group]
            # A sum is unknown if one of its parts is.
            except MetricsUnreachable as exc:
                failures.append(str(exc))
                continue
            for chosen, series, notes in answers:
                failures += [*notes, *self._take(sheet, figure, chosen, series)]
            if not any(series for _, series, _ in answers):
                failures.append(self._nothing(figure))
        failures += [*sheet.oddities(), *self._silent(sheet, time_ms)]
        return MetricsResult(reports=sheet.table(time_ms), failures=tuple(dict.fromkeys(failures)))

    def _ask(self, chosen: Selector) -> tuple[list[Series], list[str]]:
        """The answer's series, and what the server warns of."""
        query = urllib.parse.urlencode({"query": self._query(chosen)})
        url = f"{self._settings.url.rstrip('/')}/api/v1/query"
        body = self._web.get(f"{url}?{query}", "application/json")
        try:
            document = parse_json(body)
            series = _series(document["data"])
            warnings = [str(text)[:200] for text in document.get("warnings") or []]
        except _NO_VECTOR as exc:
            raise MetricsUnreachable(
                f"{url} did not answer as a Prometheus does; is it the address of one?"
            ) from exc
        return series, [f"{url} warns: {text}." for text in warnings]

    def _query(self, chosen: Selector) -> str:
        settings = self._settings
        pairs = [
            *(
                f"{label}={_quoted(value)}"
                for label, value in {**chosen.labels, **settings.labels}.items()
            ),
            f'{settings.broker_label}!=""',
        ]
        series = f"{chosen.name}{{{','.join(pairs)}}}"
        if chosen.counter:
            series = f"rate({series}[{settings.rate_window_s}s])"
        return f"sum by ({settings.broker_label}, topic, partition) ({series})"

    def _take(
        self, sheet: ReportBuilder, figure: str, chosen: Selector, series: Iterable[Series]
    ) -> list[str]:
        """A sentence about series without a valid broker, if there are any."""
        strange = set()
        for labels, value in series:
            name = labels.get(self._settings.broker_label, "")
            found = self._pattern.fullmatch(name)
            if found and len(found[1]) <= _DIGITS and int(found[1]) <= MOST_ID:
                sheet.add(int(found[1]), labels, figure, value)
            else:
                strange.add(name)
        return [
            f"{self.place}: {chosen} has {self._settings.broker_label}={_quoted(name)},"
            " which is not a broker's id; check broker_label and broker_pattern."
            for name in sorted(strange)[:1]
        ]

    def _nothing(self, figure: str) -> str:
        settings = self._settings
        names = " and ".join(map(str, settings.figures[figure]))
        return (
            f"{self.place} has no series {names} with a label {settings.broker_label}"
            f"{''.join(f', {k}={_quoted(v)}' for k, v in settings.labels.items())}, so "
            f"{figure} is absent; check preset, metrics, labels and broker_label."
        )

    def _silent(self, sheet: ReportBuilder, time_ms: int) -> list[str]:
        """Name brokers that had figures a while ago, while others still have."""
        self._seen |= dict.fromkeys(sheet.brokers, time_ms)
        missing = [
            str(broker)
            for broker, seen_ms in sorted(self._seen.items())
            if seen_ms < time_ms <= seen_ms + MISSED_MS
        ]
        if not missing or not sheet.brokers:
            return []
        return [f"{self.place} no longer has figures of broker {', '.join(missing)}."]


def _series(data: Any) -> list[Series]:
    """Series of an instant vector; raises one of `_NO_VECTOR`."""
    if data["resultType"] != "vector":
        raise TypeError(data["resultType"])
    return [
        ({str(k): str(v) for k, v in one["metric"].items()}, float(one["value"][1]))
        for one in data["result"]
    ]


def _quoted(value: str) -> str:
    """As PromQL writes text, which is as Go does."""
    return json.dumps(value, ensure_ascii=False)
