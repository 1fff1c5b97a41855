"""Whether the cluster is balanced, in words, and the averages."""

from typing import Final, NamedTuple

from control.loop.view import LoopView
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.broker_troubles import Trouble
from model.snapshot.snapshot import LEAVING, TAKING, BrokerState, Resource, dimension_words
from model.units import bytes_text, cores_text, count_text, deviation_text, rate_text
from tui.viewmodel.brokers.broker_troubles import brokers_of, troubled
from tui.viewmodel.brokers.gauges import SHORT, gauges
from tui.viewmodel.cells import Cell, Role, Span, cell, shorten_words
from tui.viewmodel.memoize import memoized

NAMES: Final[dict[str, str]] = {resource: resource.words for resource in Resource}
"""Names of resources in words."""


WITHIN: Final = (
    "every broker is within its tolerance band",
    "every broker within tolerance",
    "all within",
)
"""What is said of a balanced cluster, the longest first: the worst figure is never cut."""
WITHIN_ALIVE: Final = ("every live broker is within its tolerance band", *WITHIN[2:])
"""The same while brokers are dead, of which the header says so above."""


class Worst(NamedTuple):
    """The largest deviation of the cluster."""

    broker: BrokerId
    dimension: str
    deviation: float
    outside: bool
    """Whether it is outside the tolerance band."""


@memoized
def worst_of(evaluation: Evaluation | None, goals: Goals) -> Worst | None:
    """The largest deviation, preferably one outside its tolerance band; None if unknown."""
    found = [
        Worst(broker, key, deviation, abs(deviation) > tolerance_of(goals, key))
        for key, by in (evaluation.deviations if evaluation else {}).items()
        for broker, deviation in by.items()
    ]
    return max(found, key=lambda w: (w.outside, abs(w.deviation)), default=None)


@memoized
def outside_of(evaluation: Evaluation, goals: Goals) -> frozenset[BrokerId]:
    """The brokers outside a tolerance band."""
    return frozenset(
        broker
        for key, by in evaluation.deviations.items()
        for broker, deviation in by.items()
        if abs(deviation) > tolerance_of(goals, key)
    )


def tolerance_of(goals: Goals, dimension: str) -> float:
    """The tolerance of a dimension, which may name a time slot: `net_in@3`."""
    return goals.tolerance_of(dimension.partition("@")[0]) or 1.0


def over_capacity(view: LoopView, goals: Goals) -> tuple[BrokerId, ...]:
    """The brokers above a capacity limit."""
    return tuple(dict.fromkeys(b for (b, _), g in gauges(view, goals).items() if g.over_limit))


def balance_line(view: LoopView, goals: Goals, width: int) -> Cell:
    """Whether the cluster is balanced, and its worst broker, in words.

    width: in cells. What does not fit is omitted, the least important first.
    """
    if view.snapshot is None or view.evaluation is None:
        return cell(" no loads have been measured yet", Role.MUTED)
    if not len(view.snapshot):
        return cell(" the cluster has no partitions yet", Role.MUTED)
    brokers = brokers_of(view)
    dead = troubled(brokers).get(Trouble.DEAD, ())
    if brokers and all(broker.state in LEAVING for broker in brokers):
        words = "dead" if len(dead) == len(brokers) else "dead or draining" if dead else "draining"
        alarm = Span(" NO BROKER ", Role.ALARM)
        return (alarm, Span(f" left to hold load: {count_text(len(brokers), 'broker')}, {words}"))
    worst = worst_of(view.evaluation, goals)
    if worst is None:
        return cell(" too little load to be worth balancing", Role.MUTED)
    # A dead one is worse, and has no deviation.
    worst_word = "worst alive" if dead and worst.broker not in dead else "worst"
    state = next((b.state for b in brokers if b.id == worst.broker), BrokerState.ALIVE)
    who = f"broker {worst.broker}{aside(state)}"
    of = f"{who}, {dimension_words(worst.dimension)} {percent(worst.deviation)}"
    if not worst.outside:
        word = Span(" BALANCED ", Role.GOOD)
        within = WITHIN_ALIVE if dead else WITHIN
        forms = [f"  {words}; {worst_word}: {of}" for words in within]
        left = width - len(word.text)
        fits = next((form for form in forms if len(form) <= left), forms[-1])
        return (word, Span(shorten_words(fits, left)))
    role = Role.OVER if worst.deviation > 0 else Role.UNDER
    count = len(outside_of(view.evaluation, goals))
    of_all = f"{count} of {count_text(len(view.snapshot.header.brokers), 'broker')}"
    more = (f"   {of_all} outside the tolerance band", f"   {of_all} outside", "")
    spans = (Span(" IMBALANCED ", Role.ALARM), Span(f" {worst_word}: "), Span(of, role))
    left = width - sum(len(span.text) for span in spans)
    return (*spans, Span(next(words for words in more if len(words) <= left or not words)))


def aside(state: BrokerState) -> str:
    """` (demoted)` after a broker that takes no new load, and so may stay far from the average."""
    return "" if state in TAKING else f" ({state.words})"


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
    """A deviation with its sign: `+12%`, as everywhere on the screen."""
    return close_up(deviation_text(whole(deviation) / 100))


def close_up(percentage: str) -> str:
    """A percentage of a report, `79.6 %`, as the screen writes it: `79.6%`."""
    return percentage.replace(" %", "%")


def whole(deviation: float) -> int:
    """A deviation in percent."""
    return round(100 * deviation)
