"""Which rows may move, and where: the rules that only remove choices.

Eligible brokers, drained brokers, movable partitions, pins, cooldown and return windows
need no constraint: a forbidden choice gets no variable and no candidate.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from model.goals.goals import Cooldown, Goals, Stay
from model.ids import PartitionId
from model.snapshot.snapshot import (
    LEADERLESS,
    LEAVING,
    TAKING,
    Bools,
    BrokerState,
    Ints,
    RecentMove,
    Snapshot,
    StorageKind,
    Topic,
)
from solver.problem.co_location import RackMode, Spreading, find_spreading


class FixedReason(StrEnum):
    """Why partitions may not move; each value completes "N partitions ..."."""

    NO_LEADER = "have no leader"
    EXCLUDED = "belong to excluded topics"
    INTERNAL = "belong to internal topics"
    UNKNOWN = "have an unknown load"
    IN_COOLDOWN = "are in cooldown after a recent move"
    KEPT = "are kept in place by the goals"


FIXED_REASONS = tuple(FixedReason)
"""Reasons by number - 1; in `Eligibility.fixed_reason` 0 means the row may move."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eligibility:
    """What each of n rows may do on each of B brokers, which are given by position.

    M is the largest replication factor; columns beyond a row's own are False.
    """

    alive: Bools
    """(B,) brokers that may take new load."""
    holding: Bools
    """(B,) brokers that may keep load; only these are balanced."""
    leaving: Bools
    """(B,) brokers that must end empty."""
    must_go: Bools
    """(n, M) replicas that may not stay where they are."""
    forced: Ints
    """(n,) replicas that may not stay; 1 where all may stay but the row as a whole, or its
    leader, may not."""
    displaced: Bools
    """(n,) rows whose replicas may not all stay: the rack rule binds them. False where only the
    leader has to change."""
    demoted: Bools
    """(n,) rows whose leader is demoted or slow and may not lead on, as another replica can."""
    least_new: Ints
    """(n,) new replicas that every allowed placement has; they cost nothing."""
    fixed_reason: Ints
    """(n,) 0 for rows that may move, otherwise 1 + position in `FIXED_REASONS`."""
    spreading: Spreading
    """Pins and racks: where the replicas of each row may lie together."""
    barred: dict[int, tuple[int, ...]]
    """Brokers, by row, that the row left too recently to return to."""
    barred_leader: dict[int, tuple[int, ...]]
    """Brokers, by row, that led the row too recently to lead it again; a present leader may
    stay."""

    def displacing(self, rows: Bools | Ints) -> "Eligibility":
        """Return the same where replicas of `rows`, an (n,) mask or positions, may not all stay."""
        displaced = self.displaced.copy()
        displaced[rows] = True
        return replace(self, forced=np.maximum(self.forced, displaced), displaced=displaced)

    def kept_by(self, reason: FixedReason) -> Bools:
        """Return (n,) rows that may not move for this reason."""
        kept: Bools = self.fixed_reason == _number(reason)
        return kept

    def may_hold(self, row: int, replicas: Ints) -> Bools:
        """Return (B,) brokers that may hold a replica of a row after the plan.

        Considers states, pins, racks named by explicit placements, and returns, but neither
        limits nor rack counts, nor whether the row may move. A broker that holds the row may keep
        it unless `must_go`. `replicas`, (M,), are the row's in the snapshot, by broker position
        and with -1 as filler.
        """
        may: Bools = self.alive & self.spreading.allow[self.spreading.group[row]]
        may[list(self.barred.get(row, ()))] = False
        here = replicas >= 0
        may[replicas[here]] = ~self.must_go[row][here]
        return may

    def may_lead(self, row: int, replicas: Ints, leader: int) -> Bools:
        """Return (B,) brokers that may lead a row after the plan, if they hold a replica.

        `leader` is the broker position of the present leader, -1 for none. It may keep leading
        where it takes no new load; other brokers must be `alive`. `replicas` as in `may_hold`.
        """
        spreading = self.spreading
        hold = self.may_hold(row, replicas)
        may: Bools = hold & self.alive & spreading.lead[spreading.group[row]]
        may[list(self.barred_leader.get(row, ()))] = False
        if leader >= 0:
            may[leader] = hold[leader] & spreading.lead[spreading.group[row], leader]
            may[leader] &= not self.demoted[row]
        return may


def find_eligibility(snapshot: Snapshot, goals: Goals, replicas: Ints, leader: Ints) -> Eligibility:
    """Work out what broker states, failed directories, pins, exclusions and recent moves allow.

    `replicas`, (n, M), and `leader`, (n,), are the snapshot's, as broker positions, with -1 as
    filler and for rows without a leader. Such rows stay where they are.
    """
    alive = _in_states(snapshot, TAKING)
    leaving = _in_states(snapshot, LEAVING)
    spreading = find_spreading(snapshot, goals, alive)
    outside = ~spreading.allow[spreading.group[:, None], replicas]
    # A row without a leader cannot be copied; a deferred one need not move yet.
    free = leader >= 0
    free[list(_rows(snapshot, goals.deferred))] = False
    failed = _failed(snapshot, replicas.shape)
    must_go = (replicas >= 0) & (leaving[replicas] | outside | failed) & free[:, None]
    demoted = free & _demoted(snapshot, goals, replicas, leader, spreading)
    displaced = must_go.any(axis=1) | (spreading.breaks(replicas, leader) & free)
    least_new = spreading.least_new(replicas, must_go) * free
    forced = np.maximum(must_go.sum(axis=1), displaced | demoted).astype(np.int64)
    return Eligibility(
        alive=alive,
        holding=~leaving,
        leaving=leaving,
        must_go=must_go,
        forced=forced,
        displaced=displaced,
        demoted=demoted,
        least_new=least_new.astype(np.int64),
        fixed_reason=_why_fixed(snapshot, goals, leader, forced),
        spreading=spreading,
        barred=_barred(snapshot, goals),
        barred_leader=_barred_leaders(snapshot, goals, forced),
    )


def _failed(snapshot: Snapshot, shape: tuple[int, ...]) -> Bools:
    """(n, M) replicas whose log directory has failed."""
    found = np.zeros(shape, np.bool_)
    lost = np.flatnonzero(snapshot.in_failed_dir)
    row = snapshot.replica_row[lost]
    found[row, lost - snapshot.partitions.replica_start[row]] = True
    return found


def _demoted(
    snapshot: Snapshot, goals: Goals, replicas: Ints, leader: Ints, spreading: Spreading
) -> Bools:
    """(n,) rows led by a demoted broker that have a replica on a broker that may take load.

    Where the goals relieve slow brokers, of those led by slow ones, too.
    """
    relieved = LEADERLESS | {BrokerState.SLOW} if goals.relieve_slow else LEADERLESS
    due = _in_states(snapshot, relieved)
    if not due.any():
        return np.zeros(len(replicas), np.bool_)
    able = ((replicas >= 0) & _in_states(snapshot, TAKING)[replicas]).any(axis=1)
    plain = spreading.mode[spreading.group] != RackMode.EXACT
    found: Bools = (leader >= 0) & due[leader] & able & plain
    return found


def _in_states(snapshot: Snapshot, states: frozenset[BrokerState]) -> Bools:
    return np.array([b.state in states for b in snapshot.header.brokers], np.bool_)


def _why_fixed(snapshot: Snapshot, goals: Goals, leader: Ints, forced: Ints) -> Ints:
    header, topic = snapshot.header, snapshot.partitions.topic
    why = np.array([_why_topic(goals, t) for t in header.topics], np.int64)[topic]
    recent = _recent(snapshot, goals)
    in_cooldown = [row for row, cooldown, age_s, _ in recent if age_s < cooldown.rest_s]
    for reason, rows in (
        (FixedReason.UNKNOWN, np.flatnonzero(_unknown(snapshot, goals))),
        (FixedReason.IN_COOLDOWN, np.array(in_cooldown, np.int64)),
        (FixedReason.KEPT, np.array([*_rows(snapshot, (*goals.stay, *goals.deferred))], np.int64)),
    ):
        why[rows[why[rows] == 0]] = _number(reason)
    why[forced > 0] = 0
    why[leader < 0] = _number(FixedReason.NO_LEADER)
    return why


def _number(why: FixedReason) -> int:
    return 1 + FIXED_REASONS.index(why)


def _why_topic(goals: Goals, topic: Topic) -> int:
    if goals.excludes(topic.name):
        return _number(FixedReason.EXCLUDED)
    if topic.internal and topic.storage is not StorageKind.SHARED:
        return _number(FixedReason.INTERNAL)
    return 0


def _unknown(snapshot: Snapshot, goals: Goals) -> Bools:
    """(n,) rows for which a load that a goal balances is unknown."""
    wanted = goals.needed_resources
    columns = [i for i, r in enumerate(snapshot.header.resources) if r in wanted]
    unknown: Bools = np.any(np.isnan(snapshot.partitions.loads[:, columns]), axis=1)
    return unknown


def _rows(snapshot: Snapshot, stays: Iterable[Stay]) -> Iterator[int]:
    for stay in stays:
        for number in stay.partitions:
            row = snapshot.find(PartitionId(stay.topic, number))
            if row is not None:
                yield row


def _barred(snapshot: Snapshot, goals: Goals) -> dict[int, tuple[int, ...]]:
    at = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
    barred: dict[int, set[int]] = {}
    for row, cooldown, age_s, move in _recent(snapshot, goals):
        if age_s < cooldown.return_window_s:
            left = {at[b] for b in move.left if b in at}
            barred.setdefault(row, set()).update(left)
    return {row: tuple(sorted(left)) for row, left in sorted(barred.items()) if left}


def _barred_leaders(snapshot: Snapshot, goals: Goals, forced: Ints) -> dict[int, tuple[int, ...]]:
    """Past leaders by row; none for rows that must change, whose leaders cannot wait."""
    at = {b.id: i for i, b in enumerate(snapshot.header.brokers)}
    barred: dict[int, set[int]] = {}
    for row, cooldown, age_s, move in _recent(snapshot, goals):
        leader = at.get(move.leader_left) if move.leader_left is not None else None
        if leader is not None and age_s < cooldown.return_window_s and not forced[row]:
            barred.setdefault(row, set()).add(leader)
    return {row: tuple(sorted(left)) for row, left in sorted(barred.items())}


def _recent(snapshot: Snapshot, goals: Goals) -> Iterator[tuple[int, Cooldown, float, RecentMove]]:
    """Row, cooldown, age in seconds and the move itself, for each recorded move."""
    header = snapshot.header
    for move in header.recent_moves:
        row = snapshot.find(PartitionId(move.topic, move.partition))
        if row is not None:
            storage = header.topics[int(snapshot.partitions.topic[row])].storage
            age_s = (header.taken_at_ms - move.at_ms) / 1000
            yield row, goals.rest_of(storage), age_s, move
