"""Lower bounds on the cost of single partitions, with a price per unit of load.

A partition's placement obeys the rules of single rows: who may move, who must, which
brokers may take load, pins, placements, racks, the return window. Each row is judged
by itself, so the sum of the costs is below what any allowed plan pays.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from model.bound.cheapest import cheapest_placements
from model.bound.domains import Domain
from model.bound.rack_caps import RackCaps, rack_caps
from model.bound.row_rules import RowRules, row_rules
from model.goals.move_costs import replica_prices
from model.ids import NO_BROKER, PartitionId
from model.plan.proposal import Proposal
from model.snapshot.snapshot import LEAVING, TAKING, Bools, Floats, Ints, StorageKind

_CELLS: Final = 2**17
"""Entries of a block of rows x brokers, so that it stays in the processor's cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedLoad:
    """One dimension's loads and what each broker asks for a unit of them."""

    follow: Floats
    """(n,) load of a follower."""
    more: Floats
    """(n,) what a leader carries besides."""
    price: Floats
    """(brokers,) of one unit of load."""


class PricedBudgets(NamedTuple):
    """Prices of budgets, in units of F for one unit of each; 0 for none."""

    replica_moves: float = 0.0
    bytes: float = 0.0
    leader_changes: float = 0.0


UNPRICED: Final = PricedBudgets()


@dataclass(frozen=True)
class RowCosts:
    """The least cost of each row over all its allowed placements, in units of F."""

    proposal: Proposal
    """Nothing changed."""
    loads: tuple[PricedLoad, ...]
    move_price: float
    """lambda."""
    repaired: frozenset[PartitionId] = frozenset()
    """Partitions whose racks are to be repaired: like displaced ones they may not stay
    where they are, but their new replicas are not free."""
    budgets: PricedBudgets = UNPRICED
    """What changes pay besides their costs, forced ones too."""

    @cached_property
    def costs(self) -> Floats:
        """(n,) least cost in units of F, without the free forced moves.

        For a row that must move and cannot, the value is arbitrary: no plan is allowed then.
        """
        forced = self.proposal.forced
        costs = self._stay.copy()
        may, must = ~self._rules.fixed, self._must_move
        hopeful = must | (self._least_of_moved < costs)
        for rows, domain, rf in self._blocks(np.flatnonzero(may & hopeful)):
            moved = self._moved(rows, domain, rf)
            # Where a row that must move cannot, no plan is allowed: any value will do.
            stays = ~must[rows] | np.isinf(moved)
            costs[rows] = np.where(stays, np.minimum(costs[rows], moved), moved)
        return np.asarray(costs - forced.replicas * self._new_price)

    @cached_property
    def _must_move(self) -> Bools:
        """(n,) rows whose replicas may not stay where they are."""
        must = self.proposal.forced.displaced
        found = map(self.proposal.snapshot.find, self.repaired)
        must[[row for row in found if row is not None]] = True
        return must

    @cached_property
    def magnitude(self) -> float:
        """Upper bound on the sum of the absolute values of all terms, in units of F.

        It scales the margin for rounding of `Dual.value`.
        """
        replicas = self.proposal.snapshot.replica_counts
        priced: Floats = np.zeros(len(replicas))
        for x in self.loads:
            priced += replicas * (x.follow + x.more) * float(np.abs(x.price).max())
        paid = replicas * self._charged + self._leader_price
        # A row that may stay pays for no change that costs more than all of its loads.
        stays = ~(self._must_move | self.proposal.forced.demoted)
        paid = np.where(stays, np.minimum(paid, 2.0 * priced), paid)
        refunded = self.proposal.forced.replicas * self._new_price
        return float((priced + paid + refunded).sum())

    @cached_property
    def _rules(self) -> RowRules:
        return row_rules(self.proposal)

    @cached_property
    def _new_price(self) -> Floats:
        proposal = self.proposal
        return replica_prices(proposal.snapshot, proposal.goals) * self.move_price

    @cached_property
    def _charged(self) -> Floats:
        """(n,) what a new replica of each row pays, prices of budgets included."""
        snapshot, budgets = self.proposal.snapshot, self.budgets
        charged = self._new_price + budgets.replica_moves
        if budgets.bytes:
            shared = [t.storage is StorageKind.SHARED for t in snapshot.header.topics]
            copies = ~np.array(shared, np.bool_)[snapshot.partitions.topic]
            size, most = snapshot.partitions.local_bytes, self.proposal.goals.budgets.bytes or 0
            # No plan within the budget copies a partition of unknown size.
            charged += budgets.bytes * copies * np.where(size < 0, most + 1, size)
        return charged

    @property
    def _leader_price(self) -> float:
        price = self.move_price * self.proposal.goals.leader_price_share
        return price + self.budgets.leader_changes

    @cached_property
    def _taking(self) -> Bools:
        return self.proposal.snapshot.in_state(TAKING)

    @cached_property
    def _stay(self) -> Floats:
        """(n,) cost of each row's present replicas, under their cheapest leader."""
        replicas, columns = self.proposal.before, self.proposal.snapshot.partitions
        row, broker = replicas.row, replicas.broker
        follow, more = np.zeros(len(row)), np.zeros(len(row))
        for load in self.loads:
            follow += load.follow[row] * load.price[broker]
            more += load.more[row] * load.price[broker]
        may_lead = self._taking[broker] & ~self._observed[self.proposal.domains.of_row[row], broker]
        changed = np.where(may_lead, more + self._leader_price, np.inf)
        changed[self._rules.fixed[row]] = np.inf
        more = np.where(replicas.leads & ~self.proposal.forced.demoted[row], more, changed)
        leading = np.minimum.reduceat(more, columns.replica_start[:-1])
        leading[columns.leader == NO_BROKER] = 0.0
        return np.asarray(np.bincount(row, follow, len(columns.leader)) + leading)

    @cached_property
    def _observed(self) -> Bools:
        """(domains, brokers) True where only observers may lie, which never lead."""
        each = self.proposal.domains.each
        found = [~rack_caps(self.proposal, domain, 1).may_lead for domain in each]
        return np.array(found, np.bool_).reshape(-1, len(self._taking))

    @cached_property
    def _least_of_moved(self) -> Floats:
        """(n,) least cost of any other replicas, dimension by dimension."""
        replicas = self.proposal.snapshot.replica_counts
        least = self._charged.copy()
        for load in self.loads:
            cheapest = np.cumsum(np.sort(load.price))
            most = len(cheapest) - 1
            least += load.follow * cheapest[np.minimum(replicas - 1, most)]
            least += load.more * cheapest[0]
        return least

    def _blocks(self, rows: Ints) -> Iterator[tuple[Ints, Domain, int]]:
        """Rows alike in domain and replication factor, a block at a time."""
        domains = self.proposal.domains
        replicas = self.proposal.snapshot.replica_counts[rows]
        size = max(1, _CELLS // len(self._taking))
        for number in np.unique(domains.of_row[rows]).tolist():
            for rf in np.unique(replicas).tolist():
                mine = rows[(domains.of_row[rows] == number) & (replicas == rf)]
                for at in range(0, len(mine), size):
                    yield mine[at : at + size], domains.each[number], rf

    def _moved(self, rows: Ints, domain: Domain, rf: int) -> Floats:
        """(m,) the least cost with any replicas that the rules of a row allow."""
        caps, snapshot = rack_caps(self.proposal, domain, rf), self.proposal.snapshot
        start = snapshot.partitions.replica_start[rows]
        home = self.proposal.before.broker[start[:, None] + np.arange(rf)]
        may_keep = domain.allowed & caps.open & ~snapshot.in_state(LEAVING)
        follow = self._priced(rows, leading=False)
        more = self._priced(rows, leading=True)
        lost = snapshot.in_failed_dir[start[:, None] + np.arange(rf)]
        kept = np.where(may_keep[home] & ~lost, np.take_along_axis(follow, home, axis=1), np.inf)
        follow += self._charged[rows][:, None]
        follow[:, ~(domain.allowed & caps.open & self._taking)] = np.inf
        follow[self._barred(rows)] = np.inf
        np.put_along_axis(follow, home, kept, axis=1)
        lead = self._leading(rows, follow, more, caps)
        return cheapest_placements(follow, lead, rf, caps)

    def _leading(self, rows: Ints, follow: Floats, more: Floats, caps: RackCaps) -> Floats:
        """(m, brokers) cost as leader: any taker for its price, the present free if it may stay."""
        columns = self.proposal.snapshot.partitions
        ids = np.array(self.proposal.brokers, np.int64)
        old = np.searchsorted(ids, columns.leader[rows])
        at = np.arange(len(rows))
        stays = caps.may_lead[old] & ~self.proposal.forced.demoted[rows]
        same = np.where(stays, (follow + more)[at, old], np.inf)
        lead: Floats = follow + more + self._leader_price
        lead[:, ~(self._taking & caps.may_lead)] = np.inf
        lead[at, old] = same
        return lead

    def _priced(self, rows: Ints, *, leading: bool) -> Floats:
        """(m, brokers) priced load of a follower, or what a leader has besides."""
        found = np.zeros((len(rows), len(self._taking)))
        for load in self.loads:
            column = (load.more if leading else load.follow)[rows]
            if column.any():
                found += column[:, None] * load.price
        return found

    def _barred(self, rows: Ints) -> tuple[Ints, Ints]:
        """Where in a block no row may return to; `rows` rise."""
        rules = self._rules
        at = np.searchsorted(rows, rules.barred_row)
        inside = at < len(rows)
        inside[inside] = rows[at[inside]] == rules.barred_row[inside]
        return at[inside], rules.barred_broker[inside]
