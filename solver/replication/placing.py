"""Where partitions get further replicas, and which ones they lose.

Partitions are taken by falling load. Each new replica goes to the allowed broker where it raises F
least, each one that goes leaves where F then is least; racks come first. Further passes take each
partition again, with all others in place. This proves nothing, and is close: the replicas that are
asked for are free, and all others stay.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from model.dimensions import TOPIC_MEASURES, replica_loads, weighted_dimensions
from model.evaluate import capacities
from model.ids import BrokerId
from model.plan.proposal import Proposal
from model.snapshot.snapshot import LEAVING, TAKING, Bools, Broker, Floats, Ints, Resource

PASSES: Final = 4
"""Most times that each partition is placed."""


class NoRoom(Exception):
    """A partition for whose new replica no broker is left."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def place(proposal: Proposal, wanted: Mapping[int, int]) -> dict[int, tuple[BrokerId, ...]]:
    """The replicas of rows that get another number of them, the leader first.

    proposal: the placement before, without changes. wanted: the number of replicas by row, of rows
    that have a leader. The leader and all replicas that need not go stay.

    Raises NoRoom: too few brokers may hold replicas of a row, by their states, pins, their
    capacities or the limit of replicas.
    """
    placing = _Placing(proposal, wanted)
    rows = placing.by_falling_load()
    for row in rows:
        placing.take(row)
    for _ in range(PASSES - 1):
        if not sum(placing.improve(row) for row in rows):
            break
    return {row: placing.replicas(row) for row in sorted(wanted)}


@dataclass(slots=True)
class _Place:
    """The replicas of one row, by position of their brokers."""

    leader: int
    before: tuple[int, ...]
    count: int
    held: list[int] = field(default_factory=list)


class _Placing:
    """Loads of the brokers while replicas are placed.

    In shapes, B is the brokers, D the dimensions whose load is limited or counts.
    """

    def __init__(self, proposal: Proposal, wanted: Mapping[int, int]) -> None:
        self._proposal, self._snapshot = proposal, proposal.snapshot
        self._brokers: tuple[Broker, ...] = self._snapshot.header.brokers
        position = {b.id: at for at, b in enumerate(self._brokers)}
        counts = self._snapshot.replica_counts.copy()
        for row, count in wanted.items():
            counts[row] = count
        self._lead, self._follow = self._loads(counts)
        self._table, self._held = self._fixed(wanted)
        self._places: dict[int, _Place] = {}
        for row in wanted:
            before = tuple(position[b] for b in self._snapshot.replicas(row))
            leader = position[self._snapshot.row(row).leader]
            self._places[row] = _Place(leader, before, wanted[row])
            self._add(leader, self._lead[row])
        total = self._table.sum(axis=0)
        for row, at in self._places.items():
            total = total + (at.count - 1) * self._follow[row]
        self._weights, self._levels = self._scales(total)

    # ---- what is known

    def _loads(self, counts: Ints) -> tuple[Floats, Floats]:
        """(n, D) load of each leader, and of each follower."""
        pairs = [replica_loads(self._snapshot, d, counts) for d in self._proposal.dimensions]
        n = len(self._snapshot)
        lead, follow = (np.array([pair[i] for pair in pairs]).reshape(-1, n).T for i in (0, 1))
        return lead, follow

    def _fixed(self, wanted: Mapping[int, int]) -> tuple[Floats, Ints]:
        """(B, D) loads and (B,) replicas of all rows but those."""
        replicas, brokers = self._proposal.before, len(self._brokers)
        stay = ~np.isin(replicas.row, list(wanted))
        row, broker, leads = replicas.row[stay], replicas.broker[stay], replicas.leads[stay]
        table = np.zeros((brokers, self._lead.shape[1]))
        np.add.at(table, broker, np.where(leads[:, None], self._lead[row], self._follow[row]))
        return table, np.bincount(broker, minlength=brokers)

    def _scales(self, total: Floats) -> tuple[Floats, Floats]:
        """(D,) weights, 0 where a dimension does not count; (B, D) the loads that are average.

        Brokers that may hold no load have an infinite average.
        """
        proposal = self._proposal
        weights = np.zeros(len(total))
        levels = np.full((len(self._brokers), len(total)), np.inf)
        if not proposal.holding:
            return weights, levels
        for goal in proposal.goals.balance:
            for found in weighted_dimensions(self._snapshot.header, goal):
                if found.dimension.measure in TOPIC_MEASURES:
                    continue
                at = proposal.column(found.dimension)
                mean = float(total[at]) / len(proposal.holding)
                if mean < found.floor or mean <= 0:
                    continue
                weights[at] += found.weight
                known = capacities(proposal, found.dimension.measure)
                whole = sum(known.values())
                for b, broker in enumerate(self._brokers):
                    if broker.id in known:
                        levels[b, at] = float(total[at]) * known[broker.id] / whole
        return weights, levels

    @cached_property
    def _limits(self) -> Floats:
        """(B, D) load that no broker may exceed."""
        limits = np.full(self._table.shape, np.inf)
        for at, dimension in enumerate(self._proposal.dimensions):
            if isinstance(dimension.measure, Resource):
                share = self._proposal.goals.limit_of(dimension.measure)
                for b, broker in enumerate(self._brokers):
                    if dimension.measure in broker.capacity:
                        limits[b, at] = share * broker.capacity[dimension.measure]
        return limits

    @cached_property
    def _taking(self) -> Bools:
        """(B,) brokers that may take new replicas."""
        return np.array([b.state in TAKING for b in self._brokers], np.bool_)

    def by_falling_load(self) -> list[int]:
        """The rows, by the load of a follower as a share of the average."""
        with np.errstate(invalid="ignore"):
            share = self._weights * np.nan_to_num(1 / self._levels.min(axis=0))
        return sorted(self._places, key=lambda row: (-float(share @ self._follow[row]), row))

    def replicas(self, row: int) -> tuple[BrokerId, ...]:
        """Broker ids of a row: the leader, those that stay in their order, new ones."""
        at = self._places[row]
        stay = [b for b in at.before if b in at.held and b != at.leader]
        new = [b for b in at.held if b not in at.before]
        return tuple(self._brokers[b].id for b in (at.leader, *stay, *new))

    # ---- placing one row

    def take(self, row: int) -> None:
        """Place a row that has only its leader."""
        at = self._places[row]
        at.held = [b for b in at.before if b != at.leader]
        for b in at.held:
            self._add(b, self._follow[row])
        while len(at.held) + 1 < at.count:
            self._grow(row, at)
        while len(at.held) + 1 > at.count:
            b = self._least_needed(row, at)
            at.held.remove(b)
            self._remove(b, self._follow[row])

    def improve(self, row: int) -> bool:
        """Place a row again; keep what is better."""
        at = self._places[row]
        held, before = list(at.held), self._objective()
        for b in held:
            self._remove(b, self._follow[row])
        try:
            self.take(row)
            if self._objective() < before - 1e-12 * max(1.0, before):
                return True
        except NoRoom:
            pass
        for b in at.held:
            self._remove(b, self._follow[row])
        at.held = held
        for b in held:
            self._add(b, self._follow[row])
        return False

    def _grow(self, row: int, at: _Place) -> None:
        allowed = self._proposal.domains.of(row).allowed & self._taking
        allowed[[at.leader, *at.held]] = False
        after = self._table + self._follow[row]
        room = (after <= np.maximum(self._limits, self._table) * (1 + 1e-12)).all(axis=1)
        most = self._proposal.goals.replicas_per_broker
        open_ = np.flatnonzero(allowed & room & (self._held < most)).tolist()
        if not open_:
            raise NoRoom(row)
        racks = self._racks(at)
        fewest = min(racks[self._brokers[b].rack] for b in open_)
        best = [b for b in open_ if racks[self._brokers[b].rack] == fewest]
        rise = self._rise(np.array(best), self._follow[row])
        chosen = best[int(np.argmin(rise))]
        at.held.append(chosen)
        self._add(chosen, self._follow[row])

    def _least_needed(self, row: int, at: _Place) -> int:
        """The follower that goes: one that must, else of the fullest rack, else the best for F."""
        racks = self._racks(at)

        def rank(b: int) -> tuple[bool, int, float]:
            broker = self._brokers[b]
            gain = float(self._rise(np.array([b]), -self._follow[row])[0])
            return broker.state not in LEAVING, -racks[broker.rack], gain

        return min(at.held, key=rank)

    def _racks(self, at: _Place) -> Counter[str | None]:
        """Replicas of a row by rack; all alike where racks do not bind."""
        if not self._proposal.racks_bind:
            return Counter()
        return Counter(self._brokers[b].rack for b in (at.leader, *at.held))

    # ---- loads

    def _rise(self, brokers: Ints, load: Floats) -> Floats:
        """(brokers,) what F rises by where each of them carries more, or less."""
        level = self._levels[brokers]
        now, more = self._table[brokers] / level - 1, load / level
        rise: Floats = ((2 * now * more + more * more) * self._weights).sum(axis=1)
        return rise

    def _objective(self) -> float:
        """F without the prices of moves."""
        off = np.where(np.isinf(self._levels), 0.0, self._table / self._levels - 1)
        return float((off * off * self._weights).sum())

    def _add(self, b: int, load: Floats) -> None:
        self._table[b] += load
        self._held[b] += 1

    def _remove(self, b: int, load: Floats) -> None:
        self._table[b] -= load
        self._held[b] -= 1
