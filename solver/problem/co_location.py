"""Where the replicas of a row may lie together: pins, racks, explicit placements.

Rows bound by the same rules form a group, and each rule is compiled once per group.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from model.goals.goals import Goals, Pin
from model.goals.rack_placement import ReplicaPlacement
from model.snapshot.snapshot import Bools, Broker, BrokerState, Ints, Snapshot


class RackMode(IntEnum):
    """Rack rule of a row whose replicas move; the values of `Spreading.mode`."""

    OFF = 0
    SPREAD = 1
    """Replicas in at least `distinct` racks."""
    EVEN = 2
    """No rack holds two replicas more than a usable rack with a free broker."""
    EXACT = 3
    """As many replicas in each rack as `required` asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreading:
    """Placement rules of G groups of n rows, over B brokers in Q racks.

    Brokers are given by position in the snapshot's header; M is the largest replication factor.
    """

    group: Ints
    """(n,) group of each row."""
    allow: Bools
    """(G, B) brokers that pins and placements allow to take a new replica."""
    lead: Bools
    """(G, B) brokers that may lead; racks of observers alone may not."""
    mode: Ints
    """(G,) a `RackMode` each."""
    distinct: Ints
    """(G,) racks that a moved row must occupy; 0 unless the mode is `SPREAD`."""
    required: Ints
    """(G, Q) replicas required in each rack where the mode is `EXACT`, observers included."""
    observers: Ints
    """(G, Q) how many of `required` are observers."""
    rack: Ints
    """(B,) rack of each broker, by position in `racks`."""
    usable: Bools
    """(G, Q) racks with a broker that may take a new replica."""
    racks: tuple[str | None, ...]
    """(Q,) rack names, including those only a placement mentions; None for brokers
    without a rack."""

    def shared(self, replicas: Ints, takes: Bools) -> Bools:
        """Find rows whose replicas share racks more than their rack mode allows.

        That is fewer than `distinct` racks under `SPREAD`, or under `EVEN` two replicas more in
        one rack than in a usable rack with a free broker. Takes `replicas`, (n, M) broker
        positions with -1 as filler, and `takes`, (B,) brokers that may take a new replica.
        Returns (n,) booleans; False for rows with an explicit placement or without a rack rule.
        """
        mode, here = self.mode[self.group], replicas >= 0
        count = self._in_racks(replicas, here)
        found: Bools = (mode == RackMode.SPREAD) & (
            (count > 0).sum(axis=1) < self.distinct[self.group]
        )
        if (mode == RackMode.EVEN).any():
            found |= (mode == RackMode.EVEN) & self._rack_imbalance(replicas, count, takes)
        return found

    def _rack_imbalance(self, replicas: Ints, count: Ints, takes: Bools) -> Bools:
        """(n,) rows with two replicas more in one rack than in a rack with a free broker."""
        able = self.allow & takes
        mine = (replicas >= 0) & able[self.group[:, None], replicas]
        size = able.astype(np.int64) @ (self.rack[:, None] == np.arange(len(self.racks)))
        free = size[self.group] > self._in_racks(replicas, mine)
        most = count.max(axis=1, initial=0)
        least = np.where(free, count, most[:, None])
        return np.asarray(most - least.min(axis=1, initial=most.max(initial=0)) > 1)

    def breaks(self, replicas: Ints, leader: Ints) -> Bools:
        """Find rows whose present replicas violate an explicit placement.

        Takes `replicas`, (n, M) in replica-list order with observers last, and `leader`, (n,),
        both broker positions, with -1 as filler and for no leader. Returns (n,) booleans: True
        also where no replica other than an observer leads, False without an explicit placement.
        """
        found = np.zeros(len(replicas), np.bool_)
        rows, group = self._placed()
        at, here = replicas[rows], replicas[rows] >= 0
        leading = self.required[group] - self.observers[group]
        first = here & (np.arange(at.shape[1]) < leading.sum(axis=1)[:, None])
        wrong = (self._in_racks(at, here) != self.required[group]).any(axis=1)
        wrong |= (self._in_racks(at, first) != leading).any(axis=1)
        led = (first & (at == leader[rows][:, None])).any(axis=1)
        found[rows] = wrong | ~led
        return found

    def least_new(self, replicas: Ints, must_go: Bools) -> Ints:
        """Count the new replicas that every allowed placement of a row needs.

        Takes `replicas`, (n, M) broker positions with -1 as filler, and `must_go`, (n, M)
        replicas that may not stay. Of the others, no more may stay than an explicit placement
        wants in their rack. Returns (n,) counts: the replicas of `must_go` at least.
        """
        found: Ints = must_go.sum(axis=1)
        rows, group = self._placed()
        here = replicas[rows] >= 0
        stay = self._in_racks(replicas[rows], here & ~must_go[rows])
        kept = np.minimum(stay, self.required[group]).sum(axis=1)
        found[rows] = here.sum(axis=1) - kept
        return found

    def _placed(self) -> tuple[Ints, Ints]:
        """(m,) rows with an explicit placement, and the (m,) groups they belong to."""
        rows = np.flatnonzero(self.mode[self.group] == RackMode.EXACT)
        return rows, self.group[rows]

    def _in_racks(self, replicas: Ints, counted: Bools) -> Ints:
        """(m, Q) replicas per rack, of those in (m, M) that `counted` selects."""
        rack = self.rack[replicas]
        found = np.zeros((len(replicas), len(self.racks)), np.int64)
        for q in range(len(self.racks)):
            found[:, q] = ((rack == q) & counted).sum(axis=1)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """The rules of one group, before they become columns."""

    rf: int
    pins: tuple[Pin, ...]
    placement: ReplicaPlacement | None


def find_spreading(snapshot: Snapshot, goals: Goals, alive: Bools) -> Spreading:
    """Group the rows by the rules that bind them, and compile each group's rules.

    `alive` is (B,): brokers that may take new replicas. Rows share a group if they have the
    same replication factor, pins and explicit placement.
    """
    brokers = snapshot.header.brokers
    group, groups = _grouped(snapshot, goals)
    known = {b.rack for b in brokers}
    placements = [g.placement for g in groups if g.placement]
    asked = {r for p in placements for r in (*p.replica_racks, *p.observer_racks)}
    names = sorted(known | asked, key=lambda r: (r is None, str(r)))
    rack = np.array([names.index(b.rack) for b in brokers], np.int64)
    required, observers = _counts(groups, names)
    exact = np.array([g.placement is not None for g in groups], np.bool_)[:, None]
    allow = (required[:, rack] > 0) | ~exact
    for g, group_rules in enumerate(groups):
        for pin in group_rules.pins:
            allow[g] &= permitted(pin, brokers)
    usable = (allow & alive) @ (rack[:, None] == np.arange(len(names)))
    plain = rack_mode(snapshot, goals)
    mode = np.array([RackMode.EXACT if g.placement else plain for g in groups], np.int64)
    rf = np.array([g.rf for g in groups], np.int64)
    return Spreading(
        group=group,
        allow=allow,
        lead=((required - observers)[:, rack] > 0) | ~exact,
        mode=mode,
        distinct=np.minimum(rf, usable.sum(axis=1)) * (mode == RackMode.SPREAD),
        required=required,
        observers=observers,
        rack=rack,
        usable=usable,
        racks=tuple(names),
    )


def rack_mode(snapshot: Snapshot, goals: Goals) -> RackMode:
    """Return the rack mode of rows without an explicit placement.

    It is `OFF` as soon as one broker that is not dead has no rack; otherwise the mode of
    `goals.rack_rule`.
    """
    # A dead broker that is no longer registered names no rack.
    unknown = any(
        b.rack is None and b.state is not BrokerState.DEAD for b in snapshot.header.brokers
    )
    return RackMode.OFF if unknown else RackMode[goals.rack_rule.name]


def _grouped(snapshot: Snapshot, goals: Goals) -> tuple[Ints, list[_Group]]:
    """(n,) group of each row, and the groups in order of their first row."""
    columns, topics = snapshot.partitions, snapshot.header.topics
    rf = np.diff(columns.replica_start)
    if not goals.pins and not goals.placements:
        found, group = np.unique(rf, return_inverse=True)
        plain = [_Group(rf=r, pins=(), placement=None) for r in found.tolist()]
        return group.astype(np.int64), plain
    pins = [tuple(p for p in goals.pins if p.topics.match(t.name)) for t in topics]
    rules = [goals.placement_of(t.name) for t in topics]
    numbers: dict[Hashable, int] = {}
    groups: list[_Group] = []
    group = np.zeros(len(rf), np.int64)
    rows = zip(columns.topic.tolist(), columns.partition.tolist(), strict=True)
    for row, (topic, partition) in enumerate(rows):
        bound = tuple(p for p in pins[topic] if not p.partitions or partition in p.partitions)
        rule = rules[topic]
        key = (int(rf[row]), tuple(map(id, bound)), id(rule))
        if key not in numbers:
            numbers[key] = len(groups)
            placement = rule.placement if rule else None
            groups.append(_Group(rf=int(rf[row]), pins=bound, placement=placement))
        group[row] = numbers[key]
    return group, groups


def permitted(pin: Pin, brokers: tuple[Broker, ...]) -> Bools:
    """Return (B,) whether a pin allows replicas on each of `brokers`, in their order.

    A pin without brokers allows all brokers, one without racks all racks; both must match.
    """
    return np.array(
        [
            (not pin.brokers or b.id in pin.brokers) and (not pin.racks or b.rack in pin.racks)
            for b in brokers
        ],
        np.bool_,
    )


def _counts(groups: list[_Group], names: list[str | None]) -> tuple[Ints, Ints]:
    """(G, Q) replicas, observers included, and (G, Q) observers that placements want."""
    required = np.zeros((len(groups), len(names)), np.int64)
    observers = required.copy()
    for g, group in enumerate(groups):
        if group.placement is None:
            continue
        for rack, count in group.placement.observer_racks.items():
            observers[g, names.index(rack)] = count
        for rack, count in group.placement.replica_racks.items():
            required[g, names.index(rack)] = count
    return required + observers, observers
