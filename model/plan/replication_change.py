"""A change of a topic's replication factor that a plan asks for, and its moves."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from model.files import FileModel
from model.ids import BrokerId, TopicName

MOST_REPLICAS = 1_000
"""Replicas of a partition that no topic exceeds."""

Replicas = Annotated[int, Field(ge=1, le=MOST_REPLICAS)]


class ReplicationChange(FileModel):
    """One topic whose partitions get more replicas, or fewer.

    Partitions may be part of the way already, so their count before the plan may lie between
    `before` and `after`; all others of the topic have `after` replicas.
    """

    topic: TopicName
    """Name of the topic."""
    before: Replicas
    """Replicas of the partition that is furthest from `after`."""
    after: Replicas
    """Replicas of every partition after the plan."""

    def fault(self, before: Sequence[BrokerId], after: Sequence[BrokerId]) -> str:
        """Clause on why a partition may not change like this; empty if it may.

        Replicas are added, or others removed, and the rest stays.
        """
        if len(after) != self.after:
            return f"would have {len(after)} replicas, the plan asks for {self.after}"
        least, most = sorted((self.before, self.after))
        if not least <= len(before) <= most:
            return f"has {len(before)} replicas, the plan expects {self.before}"
        if len(before) != len(after) and not (
            set(before) < set(after) if len(before) < len(after) else set(after) < set(before)
        ):
            return "would exchange replicas while their number changes"
        return ""
