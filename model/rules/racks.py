"""Replicas of a partition are spread over racks."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from model.goals.goals import RackRule
from model.plan.proposal import Change, Proposal
from model.rules.rule import Violation
from model.snapshot.snapshot import TAKING, Broker, BrokerState


@dataclass(frozen=True)
class RackSpread:
    """New replicas leave a partition in min(replicas, usable racks) racks, or even.

    A usable rack has a broker that may take new replicas of the partition. As Kafka's
    own assignment does, it binds only where every broker names a rack, dead ones aside,
    which may no longer be registered; an explicit placement replaces it.
    """

    name: str = "rack spread"

    def violations(self, proposal: Proposal) -> Iterator[Violation]:
        """Yield each row with new replicas that break the goals' rack rule."""
        rule = proposal.goals.rack_rule
        racks = {b.id: b.rack for b in proposal.snapshot.header.brokers}
        if rule is RackRule.OFF or any(
            b.rack is None and b.state is not BrokerState.DEAD
            for b in proposal.snapshot.header.brokers
        ):
            return
        for change in proposal.changes:
            if proposal.domains.of(change.row).placement is not None:
                continue
            if set(change.replicas) == set(proposal.snapshot.replicas(change.row)):
                continue
            named = (racks.get(b) for b in change.replicas)
            count = Counter(rack for rack in named if rack is not None)
            usable = _takers(proposal, change)
            check = _too_few if rule is RackRule.SPREAD else _uneven
            if fault := check(change, count, usable):
                pid = proposal.snapshot.id(change.row)
                yield Violation(self.name, f"{pid} would lie {fault}")


def _takers(proposal: Proposal, change: Change) -> list[Broker]:
    """Brokers that may take a new replica of a row, as states and pins say."""
    allowed = proposal.domains.of(change.row).allowed.tolist()
    brokers = proposal.snapshot.header.brokers
    pairs = zip(brokers, allowed, strict=True)
    return [b for b, may in pairs if may and b.state in TAKING]


def _too_few(change: Change, count: Counter[str], takers: list[Broker]) -> str | None:
    possible = min(len(change.replicas), len({b.rack for b in takers}))
    if len(count) >= possible:
        return None
    return f"in {len(count)} racks where {possible} are possible"


def _uneven(change: Change, count: Counter[str], takers: list[Broker]) -> str | None:
    """A rack whose takers all hold a replica has no room for more."""
    open_racks = {b.rack for b in takers if b.id not in change.replicas}
    for rack, most in count.most_common(1):
        for other in sorted(r for r in open_racks if r is not None):
            if most > count[other] + 1:
                return (
                    f"{most} times in rack {rack} and {count[other]} times in rack "
                    f"{other}, which differ by more than one"
                )
    return None
