"""Partitions that have to change, whatever else holds."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from model.bound.domains import Domains
from model.goals.rack_placement import ReplicaPlacement
from model.ids import NO_BROKER
from model.snapshot.snapshot import LEADERLESS, LEAVING, TAKING, Bools, BrokerState, Ints, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """Forced moves; never of a partition without a leader, which cannot be copied."""

    rows: Bools
    """(n,) rows that may not stay exactly as they are."""
    replicas: Ints
    """(n,) new replicas that every allowed placement of the row has at least; they
    are free of charge."""
    demoted: Bools
    """(n,) rows led by a broker that must not lead, and which another replica can lead."""
    outside_pins: Bools
    """(n,) rows with a replica where a pin permits none."""
    off_placement: Bools
    """(n,) rows that are not as their explicit placement says."""

    @property
    def displaced(self) -> Bools:
        """(n,) rows whose replicas may not all stay; of others, only the leader has to change."""
        return np.asarray((self.replicas > 0) | self.off_placement)


def forced_moves(
    snapshot: Snapshot, domains: Domains, deferred: Bools, *, relieve_slow: bool = False
) -> Forced:
    """Find rows that must change because of broker states, failed directories, pins or placements.

    deferred: (n,) True for rows that are left to a later plan. relieve_slow: as in the goals.
    """
    columns = snapshot.partitions
    n = len(snapshot)
    row, broker = snapshot.replica_row, snapshot.replica_position
    leaving = snapshot.in_state(LEAVING)
    shape = len(domains.each), len(leaving)
    allowed = np.array([d.allowed for d in domains.each], np.bool_).reshape(shape)
    outside = ~allowed[domains.of_row[row], broker]
    stays = ~(leaving[broker] | outside | snapshot.in_failed_dir)
    led = (columns.leader != NO_BROKER) & ~deferred
    must = np.bincount(row[~stays], minlength=n)
    off = np.zeros(n, np.bool_)
    for rows, at, rule in _placed_groups(snapshot, domains):
        must[rows] = _least_new(snapshot, rule, broker[at], stays[at])
        off[rows] = _breaks(snapshot, rule, rows, broker[at])
    without = LEADERLESS | {BrokerState.SLOW} if relieve_slow else LEADERLESS
    demoted = led & _led_by(snapshot, domains, without)
    return Forced(
        rows=led & ((must > 0) | off) | demoted,
        replicas=np.where(led, must, 0),
        demoted=demoted,
        outside_pins=led & (np.bincount(row[outside], minlength=n) > 0),
        off_placement=led & off,
    )


def _led_by(snapshot: Snapshot, domains: Domains, states: Collection[BrokerState]) -> Bools:
    """(n,) rows led by a broker in one of these states that have a replica where load may go."""
    row, n = snapshot.replica_row, len(snapshot)
    takes = snapshot.in_state(TAKING)[snapshot.replica_position]
    leads = snapshot.partitions.replica_broker == snapshot.partitions.leader[row]
    due = snapshot.in_state(states)[snapshot.replica_position] & leads
    plain = np.array([d.placement is None for d in domains.each], np.bool_)
    others = np.bincount(row[takes], minlength=n) > 0
    found: Bools = (np.bincount(row[due], minlength=n) > 0) & others & plain[domains.of_row]
    return found


def _placed_groups(
    snapshot: Snapshot, domains: Domains
) -> Iterator[tuple[Ints, Ints, ReplicaPlacement]]:
    """Rows with a placement, alike in domain and replication factor.

    Yields (m,) rows, (m, rf) where their replicas stand, and their placement.
    """
    start, lengths = snapshot.partitions.replica_start, snapshot.replica_counts
    for number, domain in enumerate(domains.each):
        if domain.placement is None:
            continue
        mine = np.flatnonzero(domains.of_row == number)
        for rf in np.unique(lengths[mine]).tolist():
            rows = mine[lengths[mine] == rf]
            yield rows, start[rows][:, None] + np.arange(rf), domain.placement.placement


def _least_new(snapshot: Snapshot, rule: ReplicaPlacement, broker: Ints, stays: Bools) -> Ints:
    """(m,) replicas that no mended placement can keep."""
    kept = np.zeros(len(broker), np.int64)
    for rack, required in rule.racks.items():
        here = _in_rack(snapshot, rack)[broker] & stays
        kept += np.minimum(here.sum(axis=1), required)
    return np.asarray(broker.shape[1] - kept)


def _breaks(snapshot: Snapshot, rule: ReplicaPlacement, rows: Ints, broker: Ints) -> Bools:
    """(m,) whether racks, order or leader are not as the rule says."""
    leading = sum(rule.replica_racks.values())
    if broker.shape[1] != sum(rule.racks.values()):
        return np.ones(len(rows), np.bool_)
    off = np.zeros(len(rows), np.bool_)
    for part, required in (
        (broker[:, :leading], rule.replica_racks),
        (broker[:, leading:], rule.observer_racks),
    ):
        for rack, count in required.items():
            off |= _in_rack(snapshot, rack)[part].sum(axis=1) != count
    leader = snapshot.positions_of(snapshot.partitions.leader[rows])
    leads: Bools = (broker[:, :leading] == leader[:, None]).any(axis=1)
    return off | ~leads


def _in_rack(snapshot: Snapshot, rack: str) -> Bools:
    return np.array([b.rack == rack for b in snapshot.header.brokers], np.bool_)
