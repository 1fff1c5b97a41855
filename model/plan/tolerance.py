"""Brokers outside their tolerance: which they are, by how much, and why they remain there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import dimension_words, in_words
from model.units import deviation_text, share_text

EDGE: Final = 1e-9
"""Share of the average by which rounding may put a broker beyond the edge of its tolerance."""

MOST_NAMED: Final = 5
"""Brokers outside their tolerance that are named in a sentence."""

OUTSIDE: Final = "outside the tolerance"
"""How the clause on such brokers begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTolerance:
    """One broker outside its tolerance in one dimension."""

    broker: BrokerId
    dimension: str
    """A measure now, `net_in`, or in a slot, `net_in@SLOT`."""
    deviation: float
    """From the average: 0.125 is 12.5 % above it."""
    tolerance: float
    """The largest deviation of a balanced broker, as a share of the average."""

    @property
    def excess(self) -> float:
        """By how much the deviation exceeds the tolerance, as a share of the average."""
        return abs(self.deviation) - self.tolerance


def outside_tolerance(
    goals: Goals, deviations: Mapping[BrokerId, Mapping[str, float]]
) -> tuple[OutsideTolerance, ...]:
    """List the brokers outside the tolerance of a goal with a weight, the furthest first.

    deviations: by broker, then by dimension, as shares of the average.
    """
    known = {str(g.resource): g.tolerance for g in goals.balance if g.weight > 0}
    found = [
        OutsideTolerance(broker=broker, dimension=key, deviation=value, tolerance=tolerance)
        for broker, by_dimension in deviations.items()
        for key, value in by_dimension.items()
        if (tolerance := known.get(key.partition("@")[0])) is not None
        and abs(value) > tolerance + EDGE
    ]
    return tuple(sorted(found, key=lambda o: (-o.excess, o.broker, o.dimension)))


def misstates_tolerance(
    plan_goals: Goals, unmet: str, deviations: Mapping[str, Mapping[BrokerId, float]]
) -> bool:
    """Whether a plan states falsely that brokers are, or are not, outside their tolerance.

    unmet: the plan's reason, empty where it states that no broker is outside. deviations: after
    the plan, recomputed, by dimension, then by broker. Close to the edge either is right.
    """
    known = {str(g.resource): g.tolerance for g in plan_goals.balance if g.weight > 0}
    furthest = max(
        (
            abs(value) - known[key.partition("@")[0]]
            for key, by_broker in deviations.items()
            for value in by_broker.values()
            if key.partition("@")[0] in known
        ),
        default=-1.0,
    )
    return furthest > 2 * EDGE if not unmet else furthest <= 0.0


def tolerance_text(outside: Sequence[OutsideTolerance], reason: str) -> Iterator[str]:
    """Clause on the brokers that stay outside their tolerance; nothing where there are none.

    At most `MOST_NAMED` are named with their figures, the rest counted.
    """
    if not outside:
        return
    named = [
        f"broker {o.broker} is {deviation_text(o.deviation)} in {dimension_words(o.dimension)} "
        f"(tolerance {share_text(o.tolerance)})"
        for o in outside[:MOST_NAMED]
    ]
    more = len(outside) - MOST_NAMED
    listed = ", ".join(named) + (f" and {more} more" if more > 0 else "")
    yield f"{OUTSIDE}: {listed}" + (f": {in_words(reason)}" if reason else "")
