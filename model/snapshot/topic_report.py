"""All topics of a snapshot: their loads, and their spread in the figures of CMAK."""

from dataclasses import dataclass

import numpy as np

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
