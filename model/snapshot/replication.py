"""How many partitions lack replicas in sync, or a leader, or are being moved."""

from dataclasses import dataclass
from typing import Final

from model.ids import PartitionId, TopicName

MOST_LISTED: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Replication:
    """A cluster's partitions that are not whole, each of which counts once, or are being moved."""

    under_replicated: int
    """That have a leader and fewer replicas in sync than replicas. Those that a move
    adds do not count, as in Kafka's metric `UnderReplicatedPartitions`."""
    offline: int
    """Without a leader, as in Kafka's metric `OfflinePartitionsCount`."""
    behind_ids: tuple[PartitionId, ...] = ()
    """The first `MOST_LISTED` of those that are under-replicated."""
    offline_ids: tuple[PartitionId, ...] = ()
    """The first `MOST_LISTED` of those without a leader."""
    below_min_isr: int = 0
    """That have a leader and fewer replicas in sync than their topic's `min.insync.replicas`, as
    in Kafka's metric `UnderMinIsrPartitionCount`: producers that ask for all get errors."""
    below_ids: tuple[PartitionId, ...] = ()
    """The first `MOST_LISTED` of those."""
    behind_of: tuple[tuple[TopicName, int], ...] = ()
    """The topics that have any partition with fewer replicas in sync than replicas, and how many;
    those without a leader count, too, as in Kafka Manager's (CMAK's) `Under Replicated %`."""
    moving: int = 0
    """That are being reassigned, by whomever."""
