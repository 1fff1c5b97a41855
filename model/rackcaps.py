"""How many replicas of a partition may lie in each rack, as its rack rule says."""

from dataclasses import dataclass

import numpy as np

from model.domains import Domain
from model.forced import rack_totals
from model.goals import RackRule
from model.proposal import Proposal
from model.rackplacement import ReplicaPlacement
from model.snapshot import TAKING, Bools, Broker, Ints


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
        """(brokers,) those whose rack may hold any replica."""
        return self.caps[self.rack] > 0

    @property
    def alone(self) -> bool:
        """Whether no two brokers share a rack, so that caps bind nobody."""
        return int(np.bincount(self.rack).max(initial=0)) <= 1


def rack_caps(proposal: Proposal, domain: Domain, rf: int) -> RackCaps:
    """The limits that the rack rule, or an explicit placement, sets."""
    brokers = proposal.snapshot.header.brokers
    anywhere = np.ones(len(brokers), np.bool_)
    if domain.placement is not None:
        return _placed(brokers, domain.placement.placement)
    names = [b.rack for b in brokers]
    rule = proposal.goals.rack_rule
    if rule is RackRule.OFF or None in names:
        count = len(brokers)
        ones = np.ones(count, np.int64)
        return RackCaps(rack=np.arange(count), caps=ones, may_lead=anywhere)
    racks = sorted({name for name in names if name is not None})
    number = np.array([racks.index(name) for name in names if name], np.int64)
    taking = np.array([b.state in TAKING for b in brokers], np.bool_) & domain.allowed
    takers = np.bincount(number[taking], minlength=len(racks))
    usable = takers[takers > 0]
    cap = rf - max(1, min(rf, len(usable))) + 1
    if rule is RackRule.EVEN:
        cap = _even_cap(rf, usable)
    caps = np.full(len(racks), cap)
    return RackCaps(rack=number, caps=caps, may_lead=anywhere)


def _placed(brokers: tuple[Broker, ...], rule: ReplicaPlacement) -> RackCaps:
    """The placement's counts; no replica in a rack that it does not name."""
    totals = rack_totals(rule)
    racks = sorted(totals)
    found = [racks.index(b.rack) if b.rack in totals else len(racks) for b in brokers]
    return RackCaps(
        rack=np.array(found, np.int64),
        caps=np.array([*(totals[r] for r in racks), 0], np.int64),
        may_lead=np.array([b.rack in rule.replica_racks for b in brokers], np.bool_),
    )


def _even_cap(rf: int, takers: Ints) -> int:
    """The most in one rack where every other has at most one less, or is full.

    `takers` counts the brokers that may take a replica, in each rack that has any.
    """
    cap = 1
    while cap < rf:
        others = np.minimum(takers, cap)
        if int(others.sum()) - int(others.max(initial=0)) + cap + 1 > rf:
            break
        cap += 1
    return cap
