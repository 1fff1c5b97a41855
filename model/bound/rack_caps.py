"""How many replicas of a partition may lie in each rack, as its rack rule says."""

from dataclasses import dataclass

import numpy as np

from model.bound.domains import Domain
from model.goals.goals import RackRule
from model.goals.rack_placement import ReplicaPlacement
from model.plan.proposal import Proposal
from model.snapshot.snapshot import TAKING, Bools, Broker, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class RackCaps:
    """Necessary for every placement that is new; not sufficient where caps are over 1.

    Where racks do not bind, every broker counts as a rack of its own.
    """

    rack: Ints
    """(brokers,) position in `caps`."""
    caps: Ints
    """(racks,) most replicas of one partition in each rack."""
    may_lead: Bools
    """(brokers,) False where only observers may lie."""

    @property
    def open(self) -> Bools:
        """(brokers,) True where the broker's rack may hold at least one replica."""
        return self.caps[self.rack] > 0

    @property
    def alone(self) -> bool:
        """Whether no two brokers share a rack, so that caps bind nobody."""
        return int(np.bincount(self.rack).max(initial=0)) <= 1


def rack_caps(proposal: Proposal, domain: Domain, rf: int) -> RackCaps:
    """Compute the caps that the rack rule, or an explicit placement, sets.

    domain: the brokers and the placement of the partition. rf: its number of replicas.
    """
    brokers = proposal.snapshot.header.brokers
    anywhere = np.ones(len(brokers), np.bool_)
    if domain.placement is not None:
        return _placed(brokers, domain.placement.placement)
    if not proposal.racks_bind:
        ones = np.ones(len(brokers), np.int64)
        return RackCaps(rack=np.arange(len(brokers)), caps=ones, may_lead=anywhere)
    racks = sorted({b.rack for b in brokers if b.rack is not None})
    # Dead brokers without a rack stand in one more, which binds nobody.
    found = [len(racks) if b.rack is None else racks.index(b.rack) for b in brokers]
    number = np.array(found, np.int64)
    taking = proposal.snapshot.in_state(TAKING) & domain.allowed
    takers = np.bincount(number[taking], minlength=len(racks))
    caps = np.full(len(racks), rf - max(1, min(rf, int((takers > 0).sum()))) + 1)
    if proposal.goals.rack_rule is RackRule.EVEN:
        caps = _even_caps(rf, takers)
    caps = np.append(caps, rf)
    return RackCaps(rack=number, caps=caps, may_lead=anywhere)


def _placed(brokers: tuple[Broker, ...], rule: ReplicaPlacement) -> RackCaps:
    """The placement's counts; no replica in a rack that it does not name."""
    totals = rule.racks
    racks = sorted(totals)
    found = [racks.index(b.rack) if b.rack in totals else len(racks) for b in brokers]
    return RackCaps(
        rack=np.array(found, np.int64),
        caps=np.array([*(totals[r] for r in racks), 0], np.int64),
        may_lead=np.array([b.rack in rule.replica_racks for b in brokers], np.bool_),
    )


def _even_caps(rf: int, takers: Ints) -> Ints:
    """(racks,) the most in each, where all others have at most one less, or are full.

    takers: (racks,) brokers that may take a replica.
    """
    caps = np.ones(len(takers), np.int64)
    for cap in range(2, rf + 1):
        # What all others must have for a rack to hold so many.
        filled = np.minimum(takers, cap - 1)
        caps[filled.sum() - filled + cap <= rf] = cap
    return caps
