"""A placement that is proposed: the changed rows of a snapshot, and broker sums."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from model.bound.domains import Domains
from model.dimensions import Dimension, loaded_dimensions, replica_loads, times_of
from model.errors import InvalidCluster
from model.goals.goals import Goals, RackRule, Stay
from model.ids import NO_BROKER, BrokerId, PartitionId
from model.plan.forced import Forced, forced_moves
from model.plan.plan import Move
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import (
    LEAVING,
    Bools,
    Broker,
    BrokerState,
    Floats,
    Ints,
    RecentMove,
    Resource,
    Snapshot,
    StorageKind,
)

HOLDING = frozenset(BrokerState) - LEAVING
"""States in which a broker may keep load; loads are balanced over these alone."""


@dataclass(frozen=True, slots=True)
class Change:
    """New replicas and leader of one row."""

    row: int
    replicas: tuple[BrokerId, ...]
    leader: BrokerId
    log_dirs: tuple[str, ...] = ()
    """As `Move.log_dirs_after`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replicas:
    """Every replica of a placement as columns; row order is not kept."""

    row: Ints
    """(replicas,) the partition's row."""
    broker: Ints
    """(replicas,) position in `Proposal.brokers`."""
    leads: Bools
    """(replicas,) True for the one that leads."""


@dataclass(frozen=True)
class Proposal:
    """A snapshot with some rows changed: the yardstick's view, in whole columns.

    In shapes, n is the rows of the snapshot, brokers `Proposal.brokers`, and replicas all replicas
    of a placement. Changes have distinct rows; no rule is checked here.
    """

    snapshot: Snapshot
    goals: Goals
    changes: tuple[Change, ...]
    replication: tuple[ReplicationChange, ...] = ()
    """Topics whose replication factor may change; as in the plan."""

    @classmethod
    def of_moves(
        cls,
        snapshot: Snapshot,
        goals: Goals,
        moves: Iterable[Move],
        replication: tuple[ReplicationChange, ...] = (),
    ) -> "Proposal":
        """Build the placement after all moves.

        Raises InvalidCluster where a move names a partition that the snapshot does not
        have, or that another move names.
        """
        changes: dict[int, Change] = {}
        for move in moves:
            row = snapshot.find(move.id)
            if row is None:
                raise InvalidCluster(f"the snapshot has no partition {move.id}")
            if row in changes:
                raise InvalidCluster(f"two moves name the partition {move.id}; keep one of them")
            changes[row] = Change(row, move.replicas_after, move.leader_after, move.log_dirs_after)
        return cls(snapshot, goals, tuple(changes.values()), replication)

    @cached_property
    def changed(self) -> dict[int, Change]:
        """The changes by row number."""
        return {c.row: c for c in self.changes}

    @cached_property
    def resized(self) -> Bools:
        """(n,) True for changed rows whose number of replicas the plan asks to change."""
        asked = {change.topic for change in self.replication}
        found = np.zeros(len(self.snapshot), np.bool_)
        if not asked:
            return found
        for c in self.changes:
            pid = self.snapshot.id(c.row)
            other = len(c.replicas) != len(self.snapshot.replicas(c.row))
            found[c.row] = other and pid.topic in asked
        return found

    @cached_property
    def emptied(self) -> Bools:
        """(replicas,) replicas in directories that the goals empty, in the snapshot's order."""
        places = {(entry.broker, entry.path) for entry in self.goals.emptied}
        return self.snapshot.in_dirs(places)

    @cached_property
    def leaves_dir(self) -> Bools:
        """(n,) True for rows with a replica in a directory that the goals empty."""
        rows = self.snapshot.replica_row[self.emptied]
        return np.bincount(rows, minlength=len(self.snapshot)) > 0

    @cached_property
    def holding(self) -> tuple[BrokerId, ...]:
        """Ids of the brokers that may keep load, in rising order."""
        return tuple(b.id for b in self.snapshot.header.brokers if b.state in HOLDING)

    @cached_property
    def brokers(self) -> tuple[BrokerId, ...]:
        """The snapshot's brokers, then others that the changes name, which break a rule."""
        known = self.snapshot.broker
        named = {b for c in self.changes for b in c.replicas if b not in known}
        return (*known, *sorted(named))

    @cached_property
    def is_holding(self) -> Bools:
        """(brokers,) True for those of `brokers` that may keep load."""
        return np.isin(np.array(self.brokers, np.int64), np.array(self.holding, int))

    @cached_property
    def dimensions(self) -> tuple[Dimension, ...]:
        """The dimensions of the columns of `table_before` and `table_after`."""
        return loaded_dimensions(self.snapshot.header, self.goals)

    @cached_property
    def before(self) -> Replicas:
        """Every replica as the snapshot has it, in row order."""
        columns, row = self.snapshot.partitions, self.snapshot.replica_row
        return Replicas(
            row=row,
            broker=self.snapshot.replica_position,
            leads=columns.replica_broker == columns.leader[row],
        )

    @cached_property
    def after(self) -> Replicas:
        """Every replica with the changes made; changed rows stand last."""
        if not self.changes:
            return self.before
        before = self.before
        changed = np.zeros(len(self.snapshot), np.bool_)
        changed[list(self.changed)] = True
        keep = ~changed[before.row]
        position = {b: i for i, b in enumerate(self.brokers)}
        new = [
            (c.row, position[b], b == c.leader) for c in self.changed.values() for b in c.replicas
        ]
        row, broker, leads = np.array(new, np.int64).reshape(-1, 3).T
        return Replicas(
            row=np.concatenate([before.row[keep], row]),
            broker=np.concatenate([before.broker[keep], broker]),
            leads=np.concatenate([before.leads[keep], leads.astype(np.bool_)]),
        )

    @cached_property
    def table_before(self) -> Floats:
        """(brokers, dimensions) load as the snapshot has it, in each one's units."""
        return self._table(self.before)

    @cached_property
    def table_after(self) -> Floats:
        """(brokers, dimensions) load with the changes made, in each one's units."""
        return self._table(self.after) if self.changes else self.table_before

    @cached_property
    def loads_before(self) -> dict[BrokerId, dict[str, float]]:
        """Load by broker and dimension key, as the snapshot has it."""
        return self._by_broker(self.table_before)

    @cached_property
    def loads_after(self) -> dict[BrokerId, dict[str, float]]:
        """Load by broker and dimension key, with the changes made."""
        return self._by_broker(self.table_after)

    @cached_property
    def replicas_before(self) -> Counter[BrokerId]:
        """Number of replicas by broker, as the snapshot has them."""
        return self._count(self.before.broker)

    @cached_property
    def replicas_after(self) -> Counter[BrokerId]:
        """Number of replicas by broker, with the changes made."""
        return self._count(self.after.broker)

    @cached_property
    def domains(self) -> Domains:
        """The brokers that pins permit each row, and its placement rule."""
        return Domains(self.snapshot, self.goals)

    @cached_property
    def forced(self) -> Forced:
        """The rows that must change because of broker states, pins or placements."""
        relieve = self.goals.relieve_slow
        return forced_moves(self.snapshot, self.domains, self.deferred, relieve_slow=relieve)

    @cached_property
    def racks_bind(self) -> bool:
        """Whether the rack rule binds: it is not off, and all brokers name a rack.

        As in Kafka's own assignment. Dead brokers, which may no longer be registered, need not.
        """
        brokers = self.snapshot.header.brokers
        named = all(b.rack is not None or b.state is BrokerState.DEAD for b in brokers)
        return named and bool(brokers) and self.goals.rack_rule is not RackRule.OFF

    @cached_property
    def deferred(self) -> Bools:
        """(n,) True for rows left to a later plan, even if a rule forces them out."""
        return self._named(self.goals.deferred)

    @cached_property
    def staying(self) -> Bools:
        """(n,) True for rows that the goals let stay, now or for a later plan."""
        return self._named((*self.goals.stay, *self.goals.deferred))

    def _named(self, stays: Iterable[Stay]) -> Bools:
        named = (
            self.snapshot.find(PartitionId(stay.topic, number))
            for stay in stays
            for number in stay.partitions
        )
        found = np.zeros(len(self.snapshot), np.bool_)
        found[[row for row in named if row is not None]] = True
        return found

    @cached_property
    def fixed(self) -> dict[str, Bools]:
        """(n,) True for rows that may not move, by reason, a clause; the first that holds counts.

        Forced rows, those whose replication factor the plan changes, and those in a directory that
        is emptied are exempt from every reason but that of having no leader. A cooldown is not
        considered here.
        """
        header, columns = self.snapshot.header, self.snapshot.partitions
        excluded = [self.goals.excludes(t.name) for t in header.topics]
        internal = [t.internal and t.storage is not StorageKind.SHARED for t in header.topics]
        stays = {
            "its topic is excluded": np.array(excluded, np.bool_)[columns.topic],
            "the goals let it stay": self.staying,
            "its topic is internal": np.array(internal, np.bool_)[columns.topic],
        }
        for at, resource in enumerate(header.resources):
            if resource in self.goals.needed_resources:
                stays[f"its {resource} is not known yet"] = np.isnan(columns.loads[:, at])
        exempt = self.forced.rows | self.resized | self.leaves_dir
        unforced = {reason: rows & ~exempt for reason, rows in stays.items()}
        return {"it has no leader": columns.leader == NO_BROKER} | unforced

    def why_fixed(self, row: int) -> str:
        """The reason in `fixed` why a row may not move; empty if it may."""
        return next((reason for reason, rows in self.fixed.items() if rows[row]), "")

    @cached_property
    def recent(self) -> dict[PartitionId, list[tuple[RecentMove, float]]]:
        """Earlier moves of each partition that has any, with their age in seconds.

        The age is counted up to the time of the snapshot. Partitions may be missing in the
        snapshot.
        """
        found: dict[PartitionId, list[tuple[RecentMove, float]]] = defaultdict(list)
        for move in self.snapshot.header.recent_moves:
            age_s = (self.snapshot.header.taken_at_ms - move.at_ms) / 1000
            found[PartitionId(move.topic, move.partition)].append((move, age_s))
        return found

    def limited(self) -> Iterator[tuple[Broker, Resource, str]]:
        """Yield holding brokers with each resource of known capacity and the keys that it limits.

        One item for each dimension, now and in each slot; none where the snapshot lacks the load.
        """
        header = self.snapshot.header
        for broker in header.brokers:
            if broker.state in HOLDING:
                for resource in broker.capacity:
                    for slot in times_of(header, resource):
                        yield broker, resource, Dimension(measure=resource, slot=slot).key

    def column(self, dimension: Dimension) -> int:
        """Position of a dimension in the tables; ValueError if it is in none."""
        return self.dimensions.index(dimension)

    def _table(self, replicas: Replicas) -> Floats:
        columns = [self.sums(replicas, d) for d in self.dimensions]
        return np.array(columns).reshape(len(columns), len(self.brokers)).T

    def sums(self, replicas: Replicas, dimension: Dimension) -> Floats:
        """(brokers,) sum of the replicas' loads in one dimension, in its units.

        In the order of `Proposal.brokers`; unknown loads count as 0. A leader serves as many
        followers as its partition has among `replicas`.

        Raises ValueError: the header lacks the dimension's resource or slot.
        """
        counts = None
        if self.replication:
            counts = np.bincount(replicas.row, minlength=len(self.snapshot))
        lead, follow = replica_loads(self.snapshot, dimension, counts)
        load = np.where(replicas.leads, lead[replicas.row], follow[replicas.row])
        sums = np.bincount(replicas.broker, load, len(self.brokers))
        return sums.astype(np.float64, copy=False)

    def _by_broker(self, table: Floats) -> dict[BrokerId, dict[str, float]]:
        keys = [d.key for d in self.dimensions]
        return {
            b: dict(zip(keys, row, strict=True))
            for b, row in zip(self.brokers, table.tolist(), strict=True)
        }

    def _count(self, broker: Sequence[int] | Ints) -> Counter[BrokerId]:
        counts = np.bincount(broker, minlength=len(self.brokers)).tolist()
        pairs = zip(self.brokers, counts, strict=True)
        return Counter({b: count for b, count in pairs if count})
