"""What could stop a run, and how close it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from control.loop.run_lag import RunLag
from model.run_health import FreeDisk, RunHealth
from model.stop_rules import Reaction, StopRule, StopRules
from model.units import bytes_text, seconds_text
from tui.viewmodel.brokers.bars import bar
from tui.viewmodel.brokers.deviation_bar import SHADE
from tui.viewmodel.cells import Cell, Role, Span, flow, plain

AT: Final = {
    Reaction.PAUSE: "pauses at",
    Reaction.STOP: "stops at",
    Reaction.ROLL_BACK: "rolls back at",
}
NO_RULE: Final = "no stop rule"
GAUGED: Final = frozenset(
    {
        StopRule.SLOW_REQUESTS,
        StopRule.OFFLINE,
        StopRule.UNDER_REPLICATED,
        StopRule.UNDER_MIN_ISR,
        StopRule.DISK,
    }
)
"""Rules whose figures are gauges."""
CLOSE: Final = 0.5
"""The share of a limit from which a gauge has a colour."""
NAME: Final = 17
LEAST_BAR: Final = 6
LEAST_GAUGE: Final = 56
"""Width of a gauge with its bar; where two do not fit, only figures are shown."""
MOST_BAR: Final = 24
GAP: Final = "   "


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthGauge:
    """One figure, and the limit of the rule that watches it."""

    name: str
    short: str
    value: str
    limit: str
    """What the rule does, and where: `pauses at 1.0 s`."""
    share: float | None = None
    """How much of the limit is used up; 1 breaks the rule, None without a limit."""

    @property
    def role(self) -> Role:
        """The role of figure and bar."""
        if self.share is None or self.share < CLOSE:
            return Role.PLAIN
        return Role.UNDER if self.share < 1 else Role.OVER


def gauges_of(health: RunHealth, lag: RunLag | None, rules: StopRules) -> tuple[HealthGauge, ...]:
    """Request latency, consumer lag, in-sync replicas and free disk."""
    slow_s = rules.slow_limit_s(health.first_answer_s)
    return (
        HealthGauge(
            name="request latency",
            short="latency",
            value=_time(health.answer_s),
            limit=_limit(rules, StopRule.SLOW_REQUESTS, _time(slow_s)),
            share=health.answer_s / slow_s if _is_on(rules, StopRule.SLOW_REQUESTS) else None,
        ),
        HealthGauge(name="consumer lag", short="lag", value=_lag(lag), limit=NO_RULE),
        _count("offline", "offline", health.offline, rules, StopRule.OFFLINE),
        _count(
            "under-replicated", "URP", health.under_replicated, rules, StopRule.UNDER_REPLICATED
        ),
        _count(
            "under min ISR", "under min ISR", health.under_min_isr, rules, StopRule.UNDER_MIN_ISR
        ),
        *([_disk(health.disk, rules)] if health.disk is not None else []),
    )


def gauge_lines(gauges: Sequence[HealthGauge], width: int) -> tuple[Cell, ...]:
    """The gauges side by side; with bars where two of them fit.

    width: in cells.
    """
    beside = min(len(gauges), (width + len(GAP)) // (LEAST_GAUGE + len(GAP)))
    if beside < 2:
        # Where there are too few lines for all, the first ones matter most.
        closest = sorted(_together(gauges), key=lambda one: -(one.share or 0.0))
        return flow([_short(one) for one in closest], width, GAP)
    each = (width - len(GAP) * (beside - 1)) // beside
    longest = max(len(_figures(one)) for one in gauges)
    drawn = max(LEAST_BAR, min(MOST_BAR, each - NAME - longest - 1))
    cells = [_drawn(one, drawn, each) for one in gauges]
    return flow(cells, width, GAP)


def _together(gauges: Sequence[HealthGauge]) -> Iterator[HealthGauge]:
    """Gauges that read 0 and have the same limit as one."""
    zero = [one for one in gauges if one.value == "0"]
    for limit in dict.fromkeys(one.limit for one in zero):
        names = ", ".join(one.short for one in zero if one.limit == limit)
        yield HealthGauge(name=names, short=names, value="0", limit=limit)
    yield from (one for one in gauges if one not in zero)


def _limit(rules: StopRules, rule: StopRule, text: str) -> str:
    return f"{AT[rules.reaction(rule)]} {text}" if _is_on(rules, rule) else NO_RULE


def _is_on(rules: StopRules, rule: StopRule) -> bool:
    return rules.reaction(rule) in AT


def _count(name: str, short: str, count: int, rules: StopRules, rule: StopRule) -> HealthGauge:
    """Partitions that have got worse since the run began; one breaks the rule."""
    return HealthGauge(
        name=name,
        short=short,
        value=f"{count:,}",
        limit=_limit(rules, rule, "1"),
        share=float(count) if _is_on(rules, rule) else None,
    )


def _disk(disk: FreeDisk, rules: StopRules) -> HealthGauge:
    """Space beyond the reserve; the bar is the share that the run has used up."""
    used = 1 - disk.free_bytes / disk.first_bytes if disk.first_bytes > 0 else 1.0
    sign = "-" if disk.free_bytes < 0 else ""
    return HealthGauge(
        name="spare disk",
        short="spare disk",
        value=f"{sign}{bytes_text(abs(disk.free_bytes))} on broker {disk.broker}",
        limit=_limit(rules, StopRule.DISK, "0"),
        share=min(1.0, max(0.0, used)) if _is_on(rules, StopRule.DISK) else None,
    )


def _time(seconds: float) -> str:
    """A response time, in milliseconds below a tenth of a second."""
    return f"{1000 * seconds:.0f} ms" if seconds < 0.1 else seconds_text(seconds)


def _lag(lag: RunLag | None) -> str:
    """`0.4 s, most 1.1 s`, else records; groups commit only every few seconds."""
    if lag is None:
        return "unknown"
    if lag.now.seconds is None:
        return f"{lag.now.records:,} records"
    most = f", most {seconds_text(lag.most_seconds)}" if lag.most_seconds is not None else ""
    return f"{seconds_text(lag.now.seconds)}{most}"


def _figures(one: HealthGauge) -> str:
    return f"{one.value}, {one.limit}"


def _short(one: HealthGauge) -> Cell:
    return (Span(f"{one.short} "), Span(one.value, one.role), Span(f", {one.limit}"))


def _drawn(one: HealthGauge, width: int, each: int) -> Cell:
    """Name, bar and figures, padded to the width of a gauge."""
    shown: Cell = (Span(" " * width),)
    if one.share is not None:
        filled = tuple(s for s in bar(min(1.0, one.share), width, one.role) if s.text.strip())
        shown = (*filled, Span(SHADE * (width - len(plain(filled))), Role.MUTED))
    cell = (Span(f"{one.name:<{NAME}}"), *shown, Span(f" {one.value}", one.role))
    cell = (*cell, Span(f", {one.limit}"))
    return (*cell, Span(" " * max(0, each - len(plain(cell)))))
