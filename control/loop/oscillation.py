"""Whether runs of `--auto` themselves throw brokers from one side of their tolerance to the other.

Loads that follow the replicas, or that answer to how busy a broker is, make each plan wrong as soon
as it has been executed. Acting sooner does not help then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from control.planning.plan_needs import SLOT_MARK
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId

WITHIN_S: Final = 3600.0
"""Only what happens so soon after a run counts as its effect; a daily cycle takes longer."""
LEAST_RUNS: Final = 2
"""Fewer runs in a row may be chance, or two shifts of the load."""
MOST_DOUBLINGS: Final = 6

Sides = Mapping[tuple[str, BrokerId], int]
"""1 where a broker is above its tolerance in a dimension, -1 where it is below; others are left
out."""


def sides_of(evaluation: Evaluation, goals: Goals) -> Sides:
    """The brokers outside their tolerance now; what only the forecast says is left out."""
    return {
        (found.dimension, found.broker): 1 if found.deviation > 0 else -1
        for found in evaluation.outside(goals)
        if SLOT_MARK not in found.dimension
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Oscillation:
    """Runs in a row after each of which a broker left its tolerance on the other side."""

    before: Sides = field(default_factory=dict)
    """When the newest run began."""
    runs: int = 0
    """Such runs in a row, the newest one left out."""
    crossed: bool = False
    """Whether the newest run is one."""

    def began(self, sides: Sides) -> "Oscillation":
        """Another run of `--auto` begins."""
        return Oscillation(before=sides, runs=self.in_a_row)

    def seen(self, sides: Sides, after_s: float) -> "Oscillation":
        """Loads of the new placement were measured so many seconds after the newest run ended."""
        if self.crossed or after_s > WITHIN_S:
            return self
        return replace(self, crossed=any(self.before.get(k) == -s for k, s in sides.items()))

    @property
    def in_a_row(self) -> int:
        """Such runs in a row, up to the newest one; 0 if that is none."""
        return self.runs + 1 if self.crossed else 0

    @property
    def doublings(self) -> int:
        """How often the pause between runs doubles."""
        return min(max(0, self.in_a_row - LEAST_RUNS + 1), MOST_DOUBLINGS)
