"""One line on brokers outside the tolerance band, and one on the averages."""

from collections.abc import Sequence

from control.loop.view import LoopView
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Resource
from model.units import bytes_text, cores_text, count_text, rate_text
from tui.viewmodel.brokers.gauges import SHORT, Gauges, gauges
from tui.viewmodel.cells import Cell, Role, Span, cell

NAMED = 3
"""Brokers named individually in the headline if they fit."""

_TRIES = (*((named, named) for named in range(NAMED, 0, -1)), (NAMED, 0), (1, 0))
"""Numbers of brokers named over a limit, and outside the band; the most first."""


def headline(view: LoopView, goals: Goals, width: int) -> Cell:
    """Name the brokers above their tolerance band, and those below.

    width: in cells. As many brokers are named as fit, so that no figure is truncated.
    """
    tries = (_headline(view, goals, *named) for named in _TRIES)
    fits = (line for line in tries if sum(len(s.text) for s in line) <= width)
    return next(fits, None) or _headline(view, goals, 0, 0)


def _headline(view: LoopView, goals: Goals, full_named: int, named: int) -> Cell:
    known = gauges(view, goals)
    if not known:
        return cell("no loads have been measured yet", Role.MUTED)
    if view.snapshot is not None and not len(view.snapshot):
        words = "the cluster has no partitions yet"
        return cell(words, Role.MUTED)
    full = _full(known, full_named)
    if not any(g.average for g in known.values()):
        return (*full, Span("too little load to be worth balancing", Role.MUTED))
    over = _named(known, named, over=True)
    under = _named(known, named, over=False)
    if not over and not under:
        return (*full, Span("every broker is within its tolerance band", Role.GOOD))
    spans = [*full]
    if over:
        spans.append(Span(f"OVER {_who(named)}{over}", Role.OVER))
    if over and under:
        spans.append(Span("   "))
    if under:
        spans.append(Span(f"under {under}", Role.UNDER))
    return tuple(spans)


def averages_line(view: LoopView, goals: Goals) -> str:
    """The average of each resource, and the resources not balanced."""
    if view.evaluation is None:
        return ""
    levels = view.evaluation.levels
    words = []
    for goal in goals.balance:
        name = SHORT.get(goal.resource, goal.resource)
        if goal.resource in levels:
            words.append(f"{name} {amount(goal.resource, levels[goal.resource])}")
        elif isinstance(goal.resource, Resource):
            words.append(f"{name} below its floor, not balanced")
    return "average │ " + ", ".join(words)


def scale_text(view: LoopView, goals: Goals) -> str:
    """What a full bar means; empty before brokers are known."""
    brokers = view.snapshot.header.brokers if view.snapshot else ()
    if not brokers:
        return ""
    drawn = [g.resource for g in goals.balance if isinstance(g.resource, Resource)]
    known = [resource in broker.capacity for broker in brokers for resource in drawn]
    if all(known):
        return ", full bar: capacity"
    if any(known):
        return ", full bar: capacity, or twice the average if unknown"
    return ", full bar: twice the average (capacity unknown)"


def amount(resource: Resource | str, value: float) -> str:
    """Format a load with its unit; CPU is in cores."""
    match resource:
        case Resource.NET_IN | Resource.NET_OUT:
            return rate_text(value)
        case Resource.DISK:
            return bytes_text(value)
        case Resource.CPU:
            return cores_text(value)
        case Resource.REQUESTS:
            return f"{value:,.0f}/s"
        case "replicas":
            return f"{value:,.0f}"
        case _:
            return f"{value:.3g}"


def percent(deviation: float) -> str:
    """A deviation with its sign: `+12 %`."""
    return f"{whole(deviation):+d} %"


def whole(deviation: float) -> int:
    """A deviation in percent."""
    return round(100 * deviation)


def _full(known: Gauges, named: int) -> tuple[Span, ...]:
    """Brokers above a capacity limit."""
    full = [f"{b} {SHORT[r]}" for (b, r), gauge in known.items() if gauge.over_limit]
    if not full:
        return ()
    words = f"OVER LIMIT {_who(named)}{_listed(full, named, ', ', ' ')}"
    return (Span(words, Role.ALARM), Span("   "))


def _named(known: Gauges, named: int, *, over: bool) -> str:
    """`1 in +200 %, out +180 %; 2 in +15 %` or `3 -100 %`; the largest first.

    Only excesses are listed by resource, so that they stand out.
    """
    found: dict[BrokerId, dict[Resource, float]] = {}
    for (broker, resource), gauge in known.items():
        if (gauge.over if over else gauge.under) and gauge.deviation is not None:
            found.setdefault(broker, {})[resource] = gauge.deviation
    worst = sorted(found.items(), key=lambda item: -max(map(abs, item[1].values())))
    words = [f"{b} {_offs(offs, each=over)}" for b, offs in worst]
    return _listed(words, named, "; ", "; ") if words else ""


def _who(named: int) -> str:
    return "broker " if named else ""


def _listed(words: Sequence[str], named: int, glue: str, last: str) -> str:
    """The first `named` items and the number of the others, or only their number."""
    if not named:
        return count_text(len(words), "broker")
    more = len(words) - named
    ends = f"{last}and {more} more" if more > 0 else ""
    return glue.join(words[:named]) + ends


def _offs(offs: dict[Resource, float], *, each: bool) -> str:
    if not each:
        return percent(min(offs.values()))
    return ", ".join(f"{SHORT[r]} {percent(off)}" for r, off in offs.items())
