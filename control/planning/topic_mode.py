"""Topic mode: move only some topics, and spread each over the brokers."""

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
"""Tolerance of the counts: few replicas per broker cannot be as even as bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkewChange:
    """Skew of one topic before and after a plan."""

    before: TopicSkew
    after: TopicSkew


def goals_for(goals: Goals, snapshot: Snapshot, topics: Sequence[str]) -> Goals:
    """Goals under which only these topics may move.

    Every other topic is excluded, but its load counts. Replicas and leaders of each
    topic are balanced in addition to the goals, unless these already do so.

    Raises
    ------
    ConfigError
        A topic does not exist, or the goals exclude it.
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


def _counts(goals: Goals, snapshot: Snapshot, topics: Sequence[str]) -> tuple[Goal, ...]:
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
                goals, snapshot, len(topic), np.bincount(topic, minlength=len(names))[chosen]
            ),
        )
        for count, topic in of.items()
        if goals.tolerance_of(count) is None
    )


def _weight(goals: Goals, snapshot: Snapshot, total: int, counted: Ints) -> float:
    """The weight at which moving one replica pays when two brokers differ by 2.

    Such a move lowers the objective F by 2 x weight x brokers^2 / (total x count of
    the topic); with this weight, by at least twice the cost of a move.

    Parameters
    ----------
    total
        Replicas or leaders of all topics.
    counted
        (chosen topics,) replicas or leaders of each chosen topic.
    """
    brokers = sum(b.state not in LEAVING for b in snapshot.header.brokers)
    tolerance = max(TOLERANCE, *(g.tolerance for g in goals.balance))
    price = goals.move_price or tolerance * brokers / max(1, len(snapshot))
    return rounded(max(1.0, price * total * int(counted.max()) / max(1, brokers) ** 2))


def skew_changes(
    snapshot: Snapshot, plan: Plan | None, topics: Sequence[str]
) -> tuple[SkewChange, ...]:
    """Skew of each topic before and after the plan; both equal without a plan."""
    moves = plan.moves if plan else ()
    return tuple(
        SkewChange(
            before=topic_skew(snapshot, TopicName(topic)),
            after=topic_skew(snapshot, TopicName(topic), moves),
        )
        for topic in sorted(set(topics))
    )
