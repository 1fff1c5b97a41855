"""Detect topics that were deleted and created again, by topic id (KIP-516)."""

import pyarrow as pa
import pyarrow.compute as pc

from collector.assemble import FRESH_MS
from collector.metadata import ClusterState


class TopicRecreations:
    """Remembers which topics were created in the last minute, and when."""

    def __init__(self) -> None:
        self._ids: dict[str, str] | None = None
        self._since_ms: dict[str, int] = {}

    def see(self, cluster: ClusterState) -> frozenset[str]:
        """Return the names of topics created since the last call, by topic id.

        Empty at the first call. Includes topics that were created again with another id.
        """
        ids = {str(t.name): t.topic_id for t in cluster.topics}
        before, self._ids = self._ids, ids
        if before is None:
            return frozenset()
        made = frozenset(name for name, found in ids.items() if before.get(name) != found)
        now_ms = cluster.taken_at_ms
        self._since_ms = {
            name: since_ms
            for name, since_ms in self._since_ms.items()
            if now_ms - since_ms <= FRESH_MS
        } | dict.fromkeys(made, now_ms)
        return made

    def own(self, vectors: pa.Table) -> pa.Table:
        """Return the vectors (schema `VECTORS`) without those of deleted namesakes.

        A topic deleted and created again has the same name and another topic id.
        """
        for name, since_ms in self._since_ms.items():
            others = (pc.field("topic") == name) & (pc.field("time_ms") < since_ms)
            vectors = vectors.filter(~others)
        return vectors
