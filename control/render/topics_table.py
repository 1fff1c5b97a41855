"""The topics of a cluster as `topics` prints them."""

from control.cli.output_types import TopicAnswer, TopicsAnswer
from control.render.text import range_text, table, time_text, under_replicated_text
from model.goals.goals import Goals
from model.snapshot.replication import Replication
from model.snapshot.snapshot import Resource, Snapshot
from model.snapshot.topic_report import TopicReport, topic_report, under_replicated
from model.units import bytes_text, rate_text

HEADERS = (
    *("topic", "partitions", "replicas", "brokers", "spread", "skew", "leader skew"),
    *("under-replicated", "per broker", "even", "preferred", "in", "out", "size", "note"),
)


def topics_answer(
    snapshot: Snapshot, goals: Goals, replication: Replication | None = None
) -> TopicsAnswer:
    """Every topic of a snapshot, by name.

    replication: what metadata say of in-sync replicas; None where nobody was asked.
    """
    behind = under_replicated(snapshot, replication)
    report, header = topic_report(snapshot), snapshot.header
    order = sorted(range(len(header.topics)), key=lambda at: header.topics[at].name)
    return TopicsAnswer(
        cluster_id=header.cluster_id,
        taken_at=time_text(header.taken_at_ms),
        topics=tuple(
            _topic(snapshot, goals, report, None if behind is None else float(behind[at]), at)
            for at in order
        ),
    )


def _topic(
    snapshot: Snapshot, goals: Goals, report: TopicReport, behind: float | None, at: int
) -> TopicAnswer:
    topic, skews = snapshot.header.topics[at], report.skews
    return TopicAnswer(
        topic=topic.name,
        internal=topic.internal,
        excluded=goals.excludes(topic.name),
        partitions=int(skews.partitions[at]),
        replicas=int(skews.replicas[at]),
        brokers=int(skews.brokers[at]),
        brokers_spread=float(skews.spread[at]),
        brokers_skew=float(skews.brokers_skewed[at]),
        leader_skew=float(skews.leaders_skewed[at]),
        preferred_leaders=float(skews.preferred_leaders[at]),
        replicas_per_broker=(int(skews.least[at]), int(skews.most[at])),
        even_replicas_per_broker=(int(skews.optimum_least[at]), int(skews.optimum_most[at])),
        offline_partitions=int(report.offline[at]),
        under_replicated=behind,
        load={
            Resource.NET_IN: float(report.net_in[at]),
            Resource.NET_OUT: float(report.net_out[at]),
        },
        size_bytes=int(report.size[at]),
    )


def topics_text(answer: TopicsAnswer) -> str:
    """A table, one topic per line."""
    if not answer.topics:
        return "The cluster has no topics.\n"
    return table(HEADERS, [_row(topic) for topic in answer.topics])


def _row(topic: TopicAnswer) -> list[str]:
    return [
        topic.topic,
        str(topic.partitions),
        str(topic.replicas),
        str(topic.brokers),
        f"{topic.brokers_spread:.0%}",
        f"{topic.brokers_skew:.0%}",
        f"{topic.leader_skew:.0%}",
        under_replicated_text(topic.under_replicated),
        range_text(*topic.replicas_per_broker),
        range_text(*topic.even_replicas_per_broker),
        f"{int(100 * topic.preferred_leaders)}%",
        rate_text(topic.load[Resource.NET_IN]),
        rate_text(topic.load[Resource.NET_OUT]),
        bytes_text(topic.size_bytes),
        _note(topic),
    ]


def _note(topic: TopicAnswer) -> str:
    found = ["excluded"] if topic.excluded else []
    found += ["internal"] if topic.internal else []
    found += [f"{topic.offline_partitions} offline"] if topic.offline_partitions else []
    return ", ".join(found)
