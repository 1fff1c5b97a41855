"""Reasons why a cluster needs a plan, as one pure function.

To add a reason, add a member to `Reason`, in order of urgency, and a line to
`plan_needs`.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum, auto
from types import MappingProxyType
from typing import Final

import numpy as np

from control.settings.trigger_table import Trigger
from model.evaluate import Evaluation
from model.goals.goals import Goals
from model.ids import BrokerId
from model.plan.outages import dead_brokers, failed_dirs
from model.plan.proposal import Proposal
from model.plan.remaining import present_text
from model.rules.leaders import leaders_missing
from model.snapshot.snapshot import LEADERLESS, TAKING, Broker, BrokerState, Snapshot
from model.units import count_text


class Reason(StrEnum):
    """Kinds of reasons, most urgent first."""

    UNDER_MIN_ISR = auto()
    DEAD_BROKER = auto()
    DEAD_LOG_DIR = auto()
    OVER_LIMIT = auto()
    MISPLACED = auto()
    RACK_VIOLATION = auto()
    LEADERS_MISSING = auto()
    SLOW_BROKER = auto()
    EMPTY_BROKER = auto()
    OUT_OF_TOLERANCE = auto()


TRIGGERS: Final[Mapping[Reason, Trigger]] = {
    Reason.UNDER_MIN_ISR: Trigger.UNDER_MIN_ISR,
    Reason.DEAD_BROKER: Trigger.DEAD_BROKER,
    Reason.DEAD_LOG_DIR: Trigger.DEAD_LOG_DIR,
    Reason.OVER_LIMIT: Trigger.OVER_CAPACITY,
    Reason.MISPLACED: Trigger.RULE_VIOLATED,
    Reason.RACK_VIOLATION: Trigger.RULE_VIOLATED,
    Reason.LEADERS_MISSING: Trigger.RULE_VIOLATED,
    Reason.SLOW_BROKER: Trigger.SLOW_BROKER,
    Reason.EMPTY_BROKER: Trigger.EMPTY_BROKER,
    Reason.OUT_OF_TOLERANCE: Trigger.UNEVEN_LOAD,
}
"""The setting that says what `--auto` does about each reason."""

SLOT_MARK: Final = "@"
"""Separates resource and slot of the forecast in a dimension: `net_in@SLOT`."""

ALMOST_NOTHING: Final = 0.05
"""A broker with less than this share of the mean number of replicas counts as empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNeed:
    """One reason for a plan."""

    reason: Reason
    message: str
    """A sentence without a full stop: `broker 3 is dead and holds 22 replicas`."""

    @property
    def repairs(self) -> bool:
        """Whether `--auto` acts without waiting for `confirm`, whatever the plan gains."""
        return self.reason not in (Reason.EMPTY_BROKER, Reason.OUT_OF_TOLERANCE)

    @property
    def is_urgent(self) -> bool:
        """Whether it does not wait for dead brokers that may return."""
        return self.reason is Reason.UNDER_MIN_ISR

    @property
    def trigger(self) -> Trigger:
        """The setting that says what `--auto` does about it."""
        return TRIGGERS[self.reason]


def plan_needs(
    snapshot: Snapshot,
    goals: Goals,
    evaluation: Evaluation,
    *,
    given_up: Collection[BrokerId],
    below: Collection[int] = (),
    slow: Mapping[BrokerId, str] = MappingProxyType({}),
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
    below
        Rows that have lacked in-sync replicas for long, as `MinIsrWatch.rows` has them.
    slow
        How late slow brokers answer, in words, where that was measured.
    """
    return (
        *_under_min_isr(below),
        *_dead(snapshot, given_up),
        *_failed_dirs(snapshot),
        *_over_limits(evaluation),
        *_misplaced(snapshot, goals),
        *_demoted(snapshot, goals),
        *_rack_violations(evaluation),
        *_leaders_missing(snapshot, goals),
        *_slow_brokers(snapshot, goals, slow),
        *_empty_brokers(snapshot, goals, evaluation),
        *_out_of_tolerance(goals, evaluation),
    )


def _under_min_isr(below: Collection[int]) -> Iterator[PlanNeed]:
    if below:
        which = count_text(len(below), "partition")
        message = f"{which} on dead brokers or failed disks below min.insync.replicas"
        yield PlanNeed(reason=Reason.UNDER_MIN_ISR, message=message)


def _dead(snapshot: Snapshot, given_up: Collection[BrokerId]) -> Iterator[PlanNeed]:
    for broker in dead_brokers(snapshot):
        if broker.movable and broker.id in given_up:
            yield PlanNeed(reason=Reason.DEAD_BROKER, message=broker.words())


def _failed_dirs(snapshot: Snapshot) -> Iterator[PlanNeed]:
    for found in failed_dirs(snapshot):
        if found.movable:
            yield PlanNeed(reason=Reason.DEAD_LOG_DIR, message=found.words())


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


def _demoted(snapshot: Snapshot, goals: Goals) -> Iterator[PlanNeed]:
    """Demoted brokers that lead again, as after an election of preferred leaders by others."""
    for broker, leads in _leading(snapshot, goals, LEADERLESS):
        message = f"broker {broker.id} is {broker.state.words} and leads {leads}"
        yield PlanNeed(reason=Reason.MISPLACED, message=message)


def _leading(
    snapshot: Snapshot, goals: Goals, states: Collection[BrokerState]
) -> Iterator[tuple[Broker, str]]:
    """Brokers in these states that lead what another replica can lead, and how many partitions."""
    if not any(b.state in states for b in snapshot.header.brokers):
        return
    leads = snapshot.partitions.leader[Proposal(snapshot, goals, ()).forced.demoted]
    for broker in snapshot.header.brokers:
        found = int(np.count_nonzero(leads == broker.id))
        if found and broker.state in states:
            yield broker, count_text(found, "partition")


def _rack_violations(evaluation: Evaluation) -> Iterator[PlanNeed]:
    """Violations that a plan can repair; others are only reported."""
    found = sum(not v.reason for v in evaluation.rack_violations)
    if found:
        message = f"{count_text(found, 'rack violation')} can be repaired"
        yield PlanNeed(reason=Reason.RACK_VIOLATION, message=message)


def _leaders_missing(snapshot: Snapshot, goals: Goals) -> Iterator[PlanNeed]:
    missing = [*leaders_missing(Proposal(snapshot, goals, ()))]
    if missing:
        one = missing[0]
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        leads = f"broker {one.broker} leads {one.leads} of {one.minimum} partitions of {one.topic}"
        message = f"minimum leaders are missing: {leads}{more}"
        yield PlanNeed(reason=Reason.LEADERS_MISSING, message=message)


def _slow_brokers(
    snapshot: Snapshot, goals: Goals, words: Mapping[BrokerId, str]
) -> Iterator[PlanNeed]:
    """Slow brokers that lead partitions which another replica can lead."""
    relieved = goals.model_copy(update={"relieve_slow": True})
    for broker, leads in _leading(snapshot, relieved, {BrokerState.SLOW}):
        times = f": {words[broker.id]}" if broker.id in words else ""
        message = f"broker {broker.id} is slow and leads {leads}{times}"
        yield PlanNeed(reason=Reason.SLOW_BROKER, message=message)


def _over_limits(evaluation: Evaluation) -> Iterator[PlanNeed]:
    """Limits exceeded now or in an hour of the forecast, which is planned for beforehand."""
    now = [over for over in evaluation.over_limit if SLOT_MARK not in over.dimension]
    later = [over for over in evaluation.over_limit if SLOT_MARK in over.dimension]
    forecast = (f"in the forecast, {words}" for words in present_text(later, ()))
    message = "; ".join((*present_text(now, ()), *forecast))
    if message:
        yield PlanNeed(reason=Reason.OVER_LIMIT, message=message)


def _empty_brokers(snapshot: Snapshot, goals: Goals, evaluation: Evaluation) -> Iterator[PlanNeed]:
    """Live brokers that hold almost nothing and are below their tolerance."""
    brokers = snapshot.header.brokers
    counts = np.bincount(snapshot.replica_position, minlength=len(brokers)).tolist()
    taking = [(b.id, counts[at]) for at, b in enumerate(brokers) if b.state in TAKING]
    most = ALMOST_NOTHING * sum(n for _, n in taking) / max(1, len(taking))
    below = evaluation.below_band(goals)
    empty = [b for b, n in taking if n <= most and b in below]
    if empty:
        ids = ", ".join(map(str, empty))
        holds = f"broker {ids} holds" if len(empty) == 1 else f"brokers {ids} hold"
        yield PlanNeed(reason=Reason.EMPTY_BROKER, message=f"{holds} almost nothing")


def _out_of_tolerance(goals: Goals, evaluation: Evaluation) -> Iterator[PlanNeed]:
    if not evaluation.within_band(goals):
        yield PlanNeed(reason=Reason.OUT_OF_TOLERANCE, message="the cluster is out of tolerance")
