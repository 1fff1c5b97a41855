"""Topic mode: some topics alone may move, and are spread over the brokers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from model.errors import ConfigError
from model.exchange.text_files import nearest
from model.files import rounded
from model.goals.goals import Goal, Goals
from model.ids import TopicName
from model.plan.plan import Plan
from model.snapshot.snapshot import LEAVING, Count, Ints, Snapshot
from model.snapshot.topic_skew import TopicSkew, topic_skew

TOLERANCE = 0.20
"""Band of the counts: few replicas per broker cannot be as even as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewChange:
    """One topic's spread now and after a plan."""

    before: TopicSkew
    after: TopicSkew


def goals_for(goals: Goals, snapshot: Snapshot, topics: Sequence[str]) -> Goals:
    """Goals under which only these topics may move.

    Every other topic is excluded; its load counts. Replicas and leaders of each topic
    are levelled besides what the goals level, where they do not do so already.

    Raises
    ------
    ConfigError
        A topic that the cluster does not have, or that the goals exclude.
    """
    names = [t.name for t in snapshot.header.topics]
    for topic in topics:
        if topic not in names:
            message = f"the cluster has no topic {topic!r}{nearest(topic, names)}"
            raise ConfigError(message)
        if goals.excludes(topic):
            raise ConfigError(
                f"the goals exclude topic {topic}; remove it from excluded_topics, or "
                "name another topic"
            )
    others = tuple(name for name in names if name not in topics)
    excluded = goals.excluded_topics
    exact = tuple(sorted({*excluded.exact, *others}))
    return goals.model_copy(
        update={
            "balance": (*goals.balance, *_counts(goals, snapshot, topics)),
            "excluded_topics": excluded.model_copy(update={"exact": exact}),
        }
    )


def _counts(
    goals: Goals, snapshot: Snapshot, topics: Sequence[str]
) -> tuple[Goal, ...]:
    columns = snapshot.partitions
    replicas = columns.topic.repeat(np.diff(columns.replica_start))
    of = {Count.TOPIC_REPLICAS: replicas, Count.TOPIC_LEADERS: columns.topic}
    names = [t.name for t in snapshot.header.topics]
    chosen = [names.index(TopicName(topic)) for topic in topics]
    return tuple(
        Goal(
            resource=count,
            tolerance=TOLERANCE,
            weight=_weight(
                goals,
                snapshot,
                len(topic),
                np.bincount(topic, minlength=len(names))[chosen],
            ),
        )
        for count, topic in of.items()
        if goals.tolerance_of(count) is None
    )


def _weight(goals: Goals, snapshot: Snapshot, total: int, counted: Ints) -> float:
    """The weight under which two brokers that differ by 2 are worth a move.

    Such a move lowers F by 2 x weight x brokers^2 / (total x a topic's count), as
    topic measures are levelled; here that is at least twice an ordinary move's price.

    Parameters
    ----------
    total
        Replicas, or leaders, of all topics.
    counted
        (chosen topics,) the same of each chosen one.
    """
    brokers = sum(b.state not in LEAVING for b in snapshot.header.brokers)
    tolerance = max(TOLERANCE, *(g.tolerance for g in goals.balance))
    price = goals.move_price or tolerance * brokers / max(1, len(snapshot))
    return rounded(max(1.0, price * total * int(counted.max()) / max(1, brokers) ** 2))


def skew_changes(
    snapshot: Snapshot, plan: Plan | None, topics: Sequence[str]
) -> tuple[SkewChange, ...]:
    """The spread of each topic, now and after the plan; as it is without one."""
    moves = plan.moves if plan else ()
    return tuple(
        SkewChange(
            before=topic_skew(snapshot, TopicName(topic)),
            after=topic_skew(snapshot, TopicName(topic), moves),
        )
        for topic in sorted(set(topics))
    )
