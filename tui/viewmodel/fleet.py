"""A fleet as it is shown: the cluster first that needs attention most, and why it does."""

import textwrap
from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from control.cli.fleet_source import ClusterDetail
from control.cli.output_types import FleetAnswer, FleetClusterAnswer
from control.loop.policy import Decision
from control.loop.view import Phase
from control.render.fleet_text import decision_words, trouble_words
from control.service.member_state import MemberState
from model.snapshot.snapshot import dimension_words
from model.units import count_text
from tui.viewmodel.brokers.gauges import short_name
from tui.viewmodel.brokers.headline import percent
from tui.viewmodel.cells import (
    Cell,
    Column,
    Role,
    Row,
    Span,
    Table,
    cell,
    fitted,
    flow,
    plain,
    right,
    shorten_line,
    shorten_middle,
    shorten_words,
)
from tui.viewmodel.sort_filter import Wish, arranged
from tui.viewmodel.staleness import age_text, ticking

ROOMY: Final = 100
"""Width from which the decision has a column."""
SMALL: Final = 72
"""Width below which the time left of a run is only in the detail."""
PLAN_WORDS: Final = {
    Decision.ASK: "plan waits",
    Decision.REFUSE: "plan refused",
    Decision.OFFER: "plan ready",
}
"""Decisions about a plan that is executed only if a person wants it."""


class Attention(IntEnum):
    """Why a cluster needs attention, the most urgent reason first."""

    BROKEN = 0
    """Its service has failed, or hangs."""
    NOT_READY = 1
    """It cannot be reached, or its loads are old."""
    BROKER_OUT = 2
    """A broker is dead or slow."""
    PLAN = 3
    """A plan is executed only if a person wants it."""
    OUTSIDE = 4
    """A broker is outside its tolerance band; `--auto` acts."""
    STARTING = 5
    NONE = 6
    STOPPING = 7


FOR_PERSONS: Final = Attention.PLAN
"""Up to this reason, a person has to act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMoment:
    """What is known of a fleet now."""

    name: str
    """Of its file."""
    answer: FleetAnswer
    age_s: float
    """Seconds since its service has answered."""
    trouble: str = ""
    """Why it does not answer now; empty while it does."""


def attention(row: FleetClusterAnswer) -> Attention:
    """Why a cluster needs attention."""
    match row.service:
        case MemberState.FAILED | MemberState.HANGING:
            return Attention.BROKEN
        case MemberState.NOT_READY:
            return Attention.NOT_READY
        case MemberState.STARTING:
            return Attention.STARTING
        case MemberState.STOPPING:
            return Attention.STOPPING
    worst = row.worst_broker
    if worst is not None and worst.deviation is None:
        return Attention.BROKER_OUT
    if row.decision in PLAN_WORDS:
        return Attention.PLAN
    if worst is not None and worst.outside:
        return Attention.OUTSIDE
    return Attention.NONE


def worst_first(answer: FleetAnswer) -> tuple[FleetClusterAnswer, ...]:
    """The clusters, the one first that needs attention most."""
    return tuple(sorted(answer.clusters, key=_urgency))


def _urgency(row: FleetClusterAnswer) -> tuple[Attention, float, str]:
    reason = attention(row)
    # What is known of a cluster that cannot be observed is old.
    deviation = _deviation(row) if reason > Attention.NOT_READY else 0.0
    return reason, -deviation, row.name


def _deviation(row: FleetClusterAnswer) -> float:
    worst = row.worst_broker
    return 0.0 if worst is None or worst.deviation is None else abs(worst.deviation)


# ---- the header


def fleet_header(moment: FleetMoment, width: int) -> tuple[Cell, ...]:
    """The fleet and its counts; below, what needs attention first."""
    rows = moment.answer.clusters
    services = Counter(row.service for row in rows)
    plans = sum(attention(row) is Attention.PLAN for row in rows)
    counts = (
        (services[MemberState.FAILED], "failed", Role.ALARM),
        (services[MemberState.HANGING], "hanging", Role.ALARM),
        (services[MemberState.NOT_READY], "not ready", Role.OVER),
        (services[MemberState.STARTING], "starting", Role.MUTED),
        (services[MemberState.STOPPING], "stopping", Role.MUTED),
        (plans, "plan to decide" if plans == 1 else "plans to decide", Role.UNDER),
        (sum(row.paused for row in rows), "paused", Role.UNDER),
        (sum(row.run is not None for row in rows), "moving", Role.STRONG),
    )
    items = (
        cell(shorten_middle(moment.name, 24), Role.STRONG),
        cell(count_text(len(rows), "cluster")),
        *(cell(f"{count} {words}", role) for count, words, role in counts if count),
    )
    return (*flow(items, width), shorten_line(_verdict(moment), width))


def _verdict(moment: FleetMoment) -> Cell:
    if moment.trouble:
        age = ticking(moment.age_s)
        return (Span(" NO ANSWER ", Role.ALARM), Span(f" for {age}: {moment.trouble}"))
    rows = worst_first(moment.answer)
    reasons = [attention(row) for row in rows]
    first = f"{rows[0].name}, {_why(rows[0])}"
    if reasons[0] <= FOR_PERSONS:
        count = sum(reason <= FOR_PERSONS for reason in reasons)
        of_all = f" {count} of {count_text(len(rows), 'cluster')}; first: "
        return (Span(" ATTENTION ", Role.ALARM), Span(of_all), Span(first, Role.STRONG))
    if reasons[0] is Attention.OUTSIDE:
        return (Span(" IMBALANCED ", Role.ALARM), Span(" worst: "), Span(first, Role.STRONG))
    if reasons[0] is Attention.STARTING:
        return (Span(" STARTING ", Role.STRONG), Span(f" {first}"))
    return (Span(" BALANCED ", Role.GOOD), Span(f" worst: {first}"))


def _why(row: FleetClusterAnswer) -> str:
    """Why a cluster needs attention, else its worst broker."""
    match attention(row):
        case Attention.BROKEN | Attention.NOT_READY | Attention.STARTING | Attention.STOPPING:
            return f"{row.service}: {row.message}"
        case Attention.PLAN:
            return decision_words(row)
    return _worst_text(row, short=False) or "no load yet"


# ---- the table


def fleet_table(moment: FleetMoment, width: int, wish: Wish) -> Table:
    """A row for each cluster."""
    roomy = width >= ROOMY
    columns: tuple[Column, ...] = (
        Column("cluster", "cluster", 8),
        Column("state", "state", 8),
        Column("worst", "worst broker", 13),
        Column("age", "data age" if roomy else "data", 9 if roomy else 7),
        Column("run", "run", 4),
    )
    found = worst_first(moment.answer)
    cells = [_cells(row, moment.age_s, columns, width) for row in found]
    columns = fitted(columns, [Row(key="", cells=each) for each in cells])
    left = width - sum(column.width for column in columns)
    if roomy:
        columns += (Column("decision", "decision", left),)
        words = (shorten_line(cell(decision_words(row)), left) for row in found)
        cells = [(*each, decision) for each, decision in zip(cells, words, strict=True)]
    rows = tuple(
        Row(
            key=row.name,
            cells=each,
            values=_values(row, moment.age_s, each),
            full="" if plain(each[0]) == row.name else row.name,
        )
        for row, each in zip(found, cells, strict=True)
    )
    return arranged(Table(columns=columns, rows=rows), wish)


def _cells(
    row: FleetClusterAnswer, age_s: float, columns: tuple[Column, ...], width: int
) -> tuple[Cell, ...]:
    """The cells of these columns; width: of the table."""
    roomy, small = width >= ROOMY, width < SMALL
    age = _age_s(row, age_s)
    worst = _worst_text(row, short=not roomy, bare=small)
    cells = {
        "cluster": cell(
            shorten_middle(row.name, 24 if roomy else 11 if small else 15), Role.STRONG
        ),
        "state": state_cell(row, brief=small),
        "worst": cell(worst, _worst_role(row)),
        "age": right("-" if age is None else age_text(age), columns[3].width),
        "run": cell(_run_text(row, brief=small)),
    }
    return tuple(cells[column.key] for column in columns)


def _values(
    row: FleetClusterAnswer, age_s: float, cells: tuple[Cell, ...]
) -> tuple[float | str, ...]:
    """What the columns are sorted by."""
    age = _age_s(row, age_s)
    return (
        row.name,
        -float(attention(row)),
        _deviation(row),
        -1.0 if age is None else age,
        -1.0 if row.run is None else row.run.done / max(1, row.run.moves),
        *(plain(each) for each in cells[5:]),
    )


def _age_s(row: FleetClusterAnswer, age_s: float) -> float | None:
    return None if row.data_age_s is None else row.data_age_s + age_s


def state_cell(row: FleetClusterAnswer, *, brief: bool = False) -> Cell:
    """How its service fares, or what waits for a person."""
    role = Role.PLAIN
    match attention(row):
        case Attention.BROKEN:
            role = Role.ALARM
        case Attention.NOT_READY:
            role = Role.OVER
        case Attention.PLAN:
            role = Role.UNDER
        case Attention.STARTING | Attention.STOPPING:
            role = Role.MUTED
    words = str(row.service)
    if row.service is MemberState.RUNNING and row.phase is Phase.STANDBY:
        words = "standing by"
    elif row.service is MemberState.RUNNING:
        plan = None if row.decision is None else PLAN_WORDS.get(row.decision)
        words = plan or ("" if row.paused else "running")
        words = words.removeprefix("plan ") if brief and row.paused else words
    both = Span(", " if words else ""), Span("paused", Role.UNDER)
    return (Span(words, role), *(both if row.paused else ()))


def _worst_text(row: FleetClusterAnswer, *, short: bool, bare: bool = False) -> str:
    """`broker 3 bytes in +36 %`, or `broker 3 in +36 %`, or `3 in +36 %`."""
    worst = row.worst_broker
    if worst is None:
        return ""
    broker = f"{worst.broker}" if bare else f"broker {worst.broker}"
    if worst.deviation is None or worst.resource is None:
        return f"{broker} {trouble_words(worst)}"
    name = short_name(worst.resource) if short else dimension_words(worst.resource)
    return f"{broker} {name} {percent(worst.deviation)}"


def _worst_role(row: FleetClusterAnswer) -> Role:
    worst = row.worst_broker
    if worst is None:
        return Role.PLAIN
    if worst.deviation is None:
        return Role.OVER
    if not worst.outside:
        return Role.PLAIN
    return Role.OVER if worst.deviation > 0 else Role.UNDER


def _run_text(row: FleetClusterAnswer, *, brief: bool) -> str:
    """`6/9, 43 s left`."""
    run = row.run
    if run is None:
        return ""
    left = "" if run.left_s is None or brief else f", {age_text(run.left_s)} left"
    return f"{run.done}/{run.moves}{left}"


# ---- one cluster


def selected_words(moment: FleetMoment, key: str | None) -> str:
    """The decision of the cluster under the cursor, in full."""
    return next((decision_words(r) for r in moment.answer.clusters if r.name == key), "")


def cluster_lines(
    moment: FleetMoment, key: str, detail: ClusterDetail | None, width: int
) -> tuple[Cell, ...]:
    """One cluster in full; detail: None until its service has answered."""
    row = next((row for row in moment.answer.clusters if row.name == key), None)
    if row is None:
        return (cell("The fleet has no such cluster any more.", Role.MUTED),)
    age = "no loads yet"
    if row.data_age_s is not None:
        age = f"loads {ticking(row.data_age_s + moment.age_s)} old"
    worst, run = _worst_text(row, short=False), _run_text(row, brief=False)
    words = [age, *([f"worst: {worst}"] if worst else []), *([f"run: {run}"] if run else [])]
    lines: list[Cell] = [
        *flow((state_cell(row), *map(cell, words)), width),
        *_wrapped(decision_words(row), width),
    ]
    if detail is None:
        return (*lines, cell(""), cell("asking its service", Role.MUTED))
    for title, text, is_table in (
        ("Service", detail.status, False),
        ("Brokers", detail.brokers, True),
        ("Decisions", detail.decisions, False),
    ):
        if text:
            lines += [cell(""), cell(title, Role.STRONG)]
            for line in text.splitlines():
                lines += [cell(shorten_words(line, width))] if is_table else _wrapped(line, width)
    return tuple(lines)


def _wrapped(text: str, width: int) -> list[Cell]:
    """A sentence in as many lines as it needs; those after the first are indented."""
    indent = " " * (len(text) - len(text.lstrip()) + 2)
    return [cell(line) for line in textwrap.wrap(text, max(20, width), subsequent_indent=indent)]
