"""All topics of a snapshot: their loads, and their spread in the figures of CMAK."""

from dataclasses import dataclass

import numpy as np

from model.snapshot.replication import Replication
from model.snapshot.snapshot import Floats, Ints, Resource, Snapshot
from model.snapshot.topic_skew import TopicSkews, topic_skews


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TopicReport:
    """One row per topic, (topics,) each, in the header's order."""

    skews: TopicSkews
    net_in: Floats
    """Bytes/s from producers; unknown loads count as 0."""
    net_out: Floats
    """Bytes/s to consumers; the same."""
    size: Floats
    """Bytes of all partitions' logs, one replica each."""
    offline: Ints
    """Partitions without a leader."""


def topic_report(snapshot: Snapshot) -> TopicReport:
    """Compute the figures of every topic as it stands."""
    columns, topics = snapshot.partitions, len(snapshot.header.topics)

    def sums(values: Floats) -> Floats:
        summed = np.bincount(columns.topic, np.nan_to_num(values), topics)
        return summed.astype(np.float64, copy=False)

    def load(resource: Resource) -> Floats:
        if resource not in snapshot.header.resources:
            return np.zeros(topics)
        return sums(columns.loads[:, snapshot.header.resources.index(resource)])

    return TopicReport(
        skews=topic_skews(snapshot),
        net_in=load(Resource.NET_IN),
        net_out=load(Resource.NET_OUT),
        size=sums(np.maximum(0, columns.size_bytes).astype(np.float64)),
        offline=np.bincount(columns.topic[columns.leader < 0], minlength=topics),
    )


def under_replicated(snapshot: Snapshot, replication: Replication | None) -> Floats | None:
    """(topics,) share of the partitions that lack replicas in sync; None where it is unknown."""
    if replication is None:
        return None
    behind = dict(replication.behind_of)
    partitions = np.bincount(snapshot.partitions.topic, minlength=len(snapshot.header.topics))
    counts = [behind.get(topic.name, 0) for topic in snapshot.header.topics]
    # A topic that was deleted or shrank meanwhile has no more than all of its partitions.
    share: Floats = np.minimum(1.0, np.array(counts, np.float64) / np.maximum(1, partitions))
    return share
