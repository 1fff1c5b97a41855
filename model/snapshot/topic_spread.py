"""How evenly the replicas or leaders of each topic lie over the brokers."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from model.dimensions import Weighted
from model.plan.proposal import Proposal, Replicas
from model.snapshot.snapshot import Bools, Count, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCounts:
    """Replicas or leaders of every topic, as one placement has them."""

    total: Ints
    """(topics,) on all brokers."""
    placed: Ints
    """(topics,) on brokers that may hold load."""
    squares: Ints
    """(topics,) sum over those brokers of the squared count."""


def topic_counts(proposal: Proposal, replicas: Replicas, *, leaders: bool) -> TopicCounts:
    """Count the replicas, or the leaders, of one placement topic by topic.

    replicas: every replica of the placement. leaders: count only those that lead.
    """
    topics, width = len(proposal.snapshot.header.topics), len(proposal.brokers)
    counted = replicas.leads if leaders else slice(None)
    topic = proposal.snapshot.partitions.topic[replicas.row[counted]]
    broker = replicas.broker[counted]
    pair, count = np.unique(topic * width + broker, return_counts=True)
    count = np.where(proposal.is_holding[pair % width], count, 0)
    return TopicCounts(
        total=np.bincount(topic, minlength=topics),
        placed=_summed(pair // width, count, topics),
        squares=_summed(pair // width, count * count, topics),
    )


def topic_cost(proposal: Proposal, goal: Weighted) -> float:
    """Weighted squared deviations of a topic measure after the changes.

    weight x sum over topics t of n_t / N x sum over holding brokers b of
    (n_tb / (n_t / holding) - 1)^2, with n_t and N as the snapshot has them.
    """
    leaders = goal.dimension.measure is Count.TOPIC_LEADERS
    total = topic_counts(proposal, proposal.before, leaders=leaders).total
    counts = topic_counts(proposal, proposal.after, leaders=leaders)
    return goal.weight * _cost(total, counts.placed, counts.squares, len(proposal.holding))


def least_topic_cost(proposal: Proposal, goal: Weighted, fixed: Bools) -> float:
    """Lower bound on the `topic_cost` of every allowed plan, in units of F.

    Each topic's counts are as even as whole numbers and fixed partitions let them be. Only
    partitions without a leader may stay on brokers that must end empty, and they do stay.

    fixed: (n,) rows that no plan may change.
    """
    leaders = goal.dimension.measure is Count.TOPIC_LEADERS
    counts = topic_counts(proposal, proposal.before, leaders=leaders)
    placed = counts.total - _stranded(proposal, leaders=leaders)
    brokers = len(proposal.holding)
    each, more = placed // brokers, placed % brokers
    squares = more * (each + 1) ** 2 + (brokers - more) * each**2
    for topic, floors in _fixed_counts(proposal, fixed, leaders=leaders):
        squares[topic] = _filled(floors, int(placed[topic]))
    return goal.weight * _cost(counts.total, placed, squares, brokers)


def _fixed_counts(proposal: Proposal, fixed: Bools, *, leaders: bool) -> Iterator[tuple[int, Ints]]:
    """Topics with fixed rows, and (holding,) what these leave on each broker."""
    replicas = proposal.before
    stays = fixed[replicas.row] & proposal.is_holding[replicas.broker]
    if leaders:
        stays &= replicas.leads
    topic = proposal.snapshot.partitions.topic[replicas.row[stays]]
    broker = replicas.broker[stays]
    order = np.argsort(topic, kind="stable")
    names, start = np.unique(topic[order], return_index=True)
    groups = np.split(broker[order], start[1:])
    # No topic has one empty group.
    for name, mine in zip(names.tolist(), groups, strict=False):
        counts = np.bincount(mine, minlength=len(proposal.brokers))
        yield name, counts[proposal.is_holding]


def _filled(floors: Ints, replicas: int) -> int:
    """Sum of squares of so many replicas, each broker's floor at least, else even."""
    low, high = 0, replicas
    while low < high:
        middle = (low + high + 1) // 2
        if int(np.maximum(floors, middle).sum()) <= replicas:
            low = middle
        else:
            high = middle - 1
    filled = np.maximum(floors, low)
    rest = replicas - int(filled.sum())
    return int((filled**2).sum()) + rest * (2 * low + 1)


def _stranded(proposal: Proposal, *, leaders: bool) -> Ints:
    """(topics,) replicas on leaving brokers of partitions without a leader."""
    columns = proposal.snapshot.partitions
    topics = len(proposal.snapshot.header.topics)
    if leaders:
        return np.zeros(topics, np.int64)
    replicas = proposal.before
    stranded = (columns.leader < 0)[replicas.row]
    stranded &= ~proposal.is_holding[replicas.broker]
    return np.bincount(columns.topic[replicas.row[stranded]], minlength=topics)


def _cost(total: Ints, placed: Ints, squares: Ints, brokers: int) -> float:
    """Sum over topics of n / N x (sum of squares (B / n)^2 - 2 placed B / n + B)."""
    some = total > 0
    average: Floats = total[some] / brokers
    spread = squares[some] / average**2 - 2 * placed[some] / average + brokers
    return float((total[some] / total.sum() * spread).sum())


def _summed(where: Ints, values: Ints, length: int) -> Ints:
    sums = np.zeros(length, np.int64)
    np.add.at(sums, where, values)
    return sums
