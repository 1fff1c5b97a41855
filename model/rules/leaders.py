"""Brokers lead at least as many partitions of a topic as the goals want."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.ids import BrokerId, TopicName
from model.plan.proposal import Proposal
from model.snapshot.snapshot import TAKING, Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class LeadersMissing:
    """A broker that leads fewer partitions of a topic than it must."""

    topic: TopicName
    broker: BrokerId
    leads: int
    minimum: int

    @property
    def words(self) -> str:
        """A sentence for the user."""
        return (
            f"broker {self.broker} would lead {self.leads} partitions of {self.topic}, fewer "
            f"than the minimum of {self.minimum}"
        )


def min_leaders(proposal: Proposal) -> Iterator[str]:
    """Check that eligible brokers lead enough partitions of each topic with a minimum.

    Source: Cruise Control's goal MinTopicLeadersPerBrokerGoal.
    """
    return (missing.words for missing in leaders_missing(proposal))


def leaders_relieved(proposal: Proposal) -> Iterator[str]:
    """Check that demoted brokers lead nothing that another replica can lead.

    Nor do slow brokers, if the goals say so.
    """
    snapshot = proposal.snapshot
    for row in np.flatnonzero(proposal.forced.demoted).tolist():
        before = int(snapshot.partitions.leader[row])
        change = proposal.changed.get(row)
        if change is None or change.leader == before:
            state = snapshot.broker[BrokerId(before)].state.words
            yield f"{snapshot.id(row)} would still be led by broker {before}, which is {state}"


def leaders_missing(proposal: Proposal) -> Iterator[LeadersMissing]:
    """Yield each broker that leads too few partitions of a topic after the changes.

    The first entry of the goals that matches a topic counts. Eligible are brokers that may take
    load, of those that the entry names. Topics without partitions have no minimum.
    """
    if not proposal.goals.min_leaders:
        return
    header, columns = proposal.snapshot.header, proposal.snapshot.partitions
    leader: Ints = columns.leader.copy()
    for change in proposal.changes:
        leader[change.row] = change.leader
    for at, topic in enumerate(header.topics):
        rule = proposal.goals.min_leaders_of(topic.name)
        mine: Bools = columns.topic == at
        if rule is None or not mine.any():
            continue
        for broker in header.brokers:
            if broker.state in TAKING and (not rule.brokers or broker.id in rule.brokers):
                leads = int(np.count_nonzero(mine & (leader == broker.id)))
                if leads < rule.leaders:
                    yield LeadersMissing(
                        topic=topic.name, broker=broker.id, leads=leads, minimum=rule.leaders
                    )
