"""Reasons why a cluster needs a plan, as one pure function.

To add a reason, add a member to `Reason`, in order of urgency, and a line to
`plan_needs`.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from enum import StrEnum, auto

import numpy as np

from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.outages import dead_brokers
from model.plan.proposal import Proposal
from model.plan.remaining import present_text
from model.snapshot.snapshot import Snapshot
from model.units import count_text


class Reason(StrEnum):
    """Kinds of reasons, most urgent first."""

    DEAD_BROKER = auto()
    MISPLACED = auto()
    RACK_VIOLATION = auto()
    OVER_LIMIT = auto()
    OUT_OF_TOLERANCE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNeed:
    """One reason for a plan."""

    reason: Reason
    message: str
    """A sentence without a full stop: `broker 3 is dead and holds 22 replicas`."""

    @property
    def repairs(self) -> bool:
        """Whether `--auto` acts without waiting for `confirm`, whatever the plan gains."""
        return self.reason is not Reason.OUT_OF_TOLERANCE


def plan_needs(
    snapshot: Snapshot, goals: Goals, evaluation: Evaluation, *, given_up: Collection[BrokerId]
) -> tuple[PlanNeed, ...]:
    """List why this cluster needs a plan, the most urgent reason first.

    Parameters
    ----------
    goals
        Including the placement constraints in the topics' configs.
    evaluation
        Evaluation of the snapshot without moves.
    given_up
        Dead brokers that are no longer expected to return.
    """
    return (
        *_dead(snapshot, given_up),
        *_misplaced(snapshot, goals),
        *_rack_violations(evaluation),
        *_over_limits(evaluation),
        *_out_of_tolerance(goals, evaluation),
    )


def _dead(snapshot: Snapshot, given_up: Collection[BrokerId]) -> Iterator[PlanNeed]:
    for broker in dead_brokers(snapshot):
        if broker.movable and broker.id in given_up:
            yield PlanNeed(reason=Reason.DEAD_BROKER, message=broker.words())


def _misplaced(snapshot: Snapshot, goals: Goals) -> Iterator[PlanNeed]:
    """Partitions whose placement violates pins or placement constraints."""
    if not (goals.pins or goals.placements):
        return
    forced = Proposal(snapshot, goals, ()).forced
    found = int(np.count_nonzero(forced.outside_pins | forced.off_placement))
    if found:
        which = count_text(found, "partition")
        message = f"pins or placement constraints are violated by {which}"
        yield PlanNeed(reason=Reason.MISPLACED, message=message)


def _rack_violations(evaluation: Evaluation) -> Iterator[PlanNeed]:
    """Violations that a plan can repair; others are only reported."""
    found = sum(not v.reason for v in evaluation.rack_violations)
    if found:
        message = f"{count_text(found, 'rack violation')} can be repaired"
        yield PlanNeed(reason=Reason.RACK_VIOLATION, message=message)


def _over_limits(evaluation: Evaluation) -> Iterator[PlanNeed]:
    message = "; ".join(present_text(evaluation.over_limit, ()))
    if message:
        yield PlanNeed(reason=Reason.OVER_LIMIT, message=message)


def _out_of_tolerance(goals: Goals, evaluation: Evaluation) -> Iterator[PlanNeed]:
    if not evaluation.within_band(goals):
        yield PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="the cluster is out of tolerance")
