"""Which rows may move, and where to: the rules that only take choices away.

Eligible brokers, drained brokers, movable partitions, cooldown and no return need no
constraint: what they forbid gets no variable.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from model.goals import Cooldown, Goals
from model.ids import PartitionId
from model.snapshot import Bools, BrokerState, Ints, RecentMove, Snapshot, StorageKind


class WhyFixed(StrEnum):
    """Why partitions stay, as what is said of several of them."""

    NO_LEADER = "have no leader"
    EXCLUDED = "are of excluded topics"
    INTERNAL = "are of internal topics"
    UNKNOWN = "have a load that is not known yet"
    RESTING = "rest after a recent move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """What each of n rows may do on each of B brokers."""

    alive: Bools
    """(B,) may take new load."""
    holding: Bools
    """(B,) may keep load; these are levelled."""
    leaving: Bools
    """(B,) must end empty."""
    forced: Ints
    """(n,) replicas on leaving brokers."""
    fixed: dict[int, WhyFixed]
    """Rows that stay, and why."""
    hold: Bools
    """(n, B) a replica may lie here afterwards."""
    lead: Bools
    """(n, B) may lead afterwards, if it holds a replica."""


def find_eligible(
    snapshot: Snapshot, goals: Goals, home: Bools, leader: Ints
) -> Eligibility:
    """Work out what is allowed from states, exclusions and recent moves."""
    alive = _in_states(snapshot, BrokerState.ALIVE)
    holding = alive | _in_states(snapshot, BrokerState.EXCLUDED)
    leaving = ~holding
    # A row without a leader has nobody to copy it from, so it stays where it is.
    forced = ((home & leaving).sum(axis=1) * (leader >= 0)).astype(np.int64)
    hold = (alive & ~_no_return(snapshot, goals, home.shape)) | (home & holding)
    lead = hold & alive
    led = np.flatnonzero(leader >= 0)
    lead[led, leader[led]] = hold[led, leader[led]]
    return Eligibility(
        alive=alive,
        holding=holding,
        leaving=leaving,
        forced=forced,
        fixed=_fixed(snapshot, goals, leader, forced),
        hold=hold,
        lead=lead,
    )


def _in_states(snapshot: Snapshot, *states: BrokerState) -> Bools:
    return np.array([b.state in states for b in snapshot.header.brokers], np.bool_)


def _fixed(
    snapshot: Snapshot, goals: Goals, leader: Ints, forced: Ints
) -> dict[int, WhyFixed]:
    why_topic = [
        _why_topic(goals, t.name, t.storage, internal=t.internal)
        for t in snapshot.header.topics
    ]
    resting = _resting(snapshot, goals)
    unknown = _unknown(snapshot, goals)
    fixed = {}
    for row, topic in enumerate(snapshot.partitions.topic.tolist()):
        if leader[row] < 0:
            fixed[row] = WhyFixed.NO_LEADER
        elif not forced[row]:
            reason = why_topic[topic] or unknown.get(row) or resting.get(row)
            if reason:
                fixed[row] = reason
    return fixed


def _why_topic(
    goals: Goals, name: str, storage: StorageKind, *, internal: bool
) -> WhyFixed | None:
    if goals.excludes(name):
        return WhyFixed.EXCLUDED
    if internal and storage is not StorageKind.SHARED:
        return WhyFixed.INTERNAL
    return None


def _unknown(snapshot: Snapshot, goals: Goals) -> dict[int, WhyFixed]:
    wanted = {g.resource for g in goals.balance}
    found: dict[int, WhyFixed] = {}
    for r, resource in enumerate(snapshot.header.resources):
        if resource in wanted:
            rows = np.flatnonzero(np.isnan(snapshot.partitions.loads[:, r]))
            for row in rows.tolist():
                found[row] = WhyFixed.UNKNOWN
    return found


def _resting(snapshot: Snapshot, goals: Goals) -> dict[int, WhyFixed]:
    return {
        row: WhyFixed.RESTING
        for row, _, age_s, cooldown in _recent(snapshot, goals)
        if age_s < cooldown.rest_s
    }


def _no_return(snapshot: Snapshot, goals: Goals, shape: tuple[int, ...]) -> Bools:
    """(n, B) brokers that a row left less than its return window ago."""
    position = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
    blocked = np.zeros(shape, np.bool_)
    for row, move, age_s, cooldown in _recent(snapshot, goals):
        if age_s < cooldown.return_window_s:
            blocked[row, [position[b] for b in move.left if b in position]] = True
    return blocked


def _recent(
    snapshot: Snapshot, goals: Goals
) -> Iterator[tuple[int, RecentMove, float, Cooldown]]:
    for move in snapshot.header.recent_moves:
        row = snapshot.row_of.get(PartitionId(move.topic, move.partition))
        if row is None:
            continue
        topic = snapshot.header.topics[int(snapshot.partitions.topic[row])]
        age_s = (snapshot.header.taken_at_ms - move.at_ms) / 1000
        yield row, move, age_s, goals.rest_of(topic.storage)
