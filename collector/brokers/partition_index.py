"""Map the partitions of a response to rows of the cluster's columns."""

from collections.abc import Callable

import numpy as np

from collector.brokers.response_layout import PARTITION, RawResponse, ResponseLayout
from collector.metadata import ClusterState
from model.snapshot.snapshot import Bools, Ints, StorageKind


class PartitionIndex:
    """Rows of a placement by topic and partition, for many samples."""

    def __init__(self, cluster: ClusterState) -> None:
        self.cluster = cluster
        self._position = {str(t.name): i for i, t in enumerate(cluster.topics)}
        self._keys = _keys(cluster.topic, cluster.partition)
        tiered = [t.storage is StorageKind.TIERED for t in cluster.topics]
        self.tiered: Bools = np.array(tiered, np.bool_)[cluster.topic]
        """(n,) True where older segments may lie in the remote tier."""

    def fits(self, cluster: ClusterState) -> bool:
        """Whether another state has the same partitions and leaders as this index."""
        known = self.cluster
        pairs = (
            (cluster.topic, known.topic),
            (cluster.partition, known.partition),
            (cluster.leader, known.leader),
        )
        return cluster.topics == known.topics and all(
            a is b or np.array_equal(a, b) for a, b in pairs
        )

    def rows(self, layout: ResponseLayout) -> Ints:
        """Return (m,) the cluster's row for each row of a response; -1 for unknown ones."""
        known = [self._position.get(name, -1) for name in layout.names]
        topic = np.array(known, np.int64)[layout.topic]
        keys = _keys(topic, layout.read(PARTITION))
        found = np.searchsorted(self._keys, keys)
        found[found == len(self._keys)] = 0
        there = self._keys[found] == keys if len(self._keys) else keys < 0
        return np.where(there & (topic >= 0), found, -1)

    def led_by(self, broker: int) -> Ints:
        """Rows of the partitions that a broker leads, in rising order."""
        return np.flatnonzero(self.cluster.leader == broker)

    def by_topic(self, rows: Ints) -> dict[str, list[int]]:
        """Partition numbers of these rows by topic name, as requests need them."""
        topics, begin = np.unique(self.cluster.topic[rows], return_index=True)
        parts = np.split(self.cluster.partition[rows], begin[1:])
        return {
            str(self.cluster.topics[t].name): p.tolist()
            for t, p in zip(topics.tolist(), parts, strict=False)
        }


class ResponseReader:
    """Reads one broker's responses to one request as rows of a placement.

    Layout and rows are reused while the response has the same structure as the last one.
    """

    def __init__(self, parse: Callable[[RawResponse], ResponseLayout]) -> None:
        self._parse = parse
        self._layout: ResponseLayout | None = None
        self._placement: PartitionIndex | None = None
        self._rows = np.zeros(0, np.int64)

    def read(self, answer: RawResponse, placement: PartitionIndex) -> tuple[ResponseLayout, Ints]:
        """Return the layout of a response, and (m,) the placement's row of each entry.

        -1 for unknown partitions. Raises MalformedResponse.
        """
        known = self._layout
        same = known.of(answer) if known is not None else None
        self._layout = self._parse(answer) if same is None else same
        if same is None or placement is not self._placement:
            self._placement, self._rows = placement, placement.rows(self._layout)
        return self._layout, self._rows


def _keys(topic: Ints, partition: Ints) -> Ints:
    return (topic << 32) | partition
