"""Explicit placement: how many replicas in which rack (Confluent's placement JSON)."""

from collections import defaultdict
from typing import Annotated, Final, Literal

from pydantic import Field, model_validator

from model.files import FileModel
from model.names import Names

MOST_REPLICAS: Final = 2**15 - 1
"""Kafka keeps the replication factor in 16 bits."""


class RackConstraint(FileModel):
    """The only constraint that is known: brokers of one rack."""

    rack: str
    """Name of the rack (`broker.rack`)."""


class RackCount(FileModel):
    """So many replicas on distinct brokers of one rack."""

    count: Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
    """Number of replicas."""
    constraints: RackConstraint


class ReplicaPlacement(FileModel):
    """The value of the topic config `confluent.placement.constraints`.

    The counts sum to the replication factor. Observers stand last in the replica list
    and do not lead.
    """

    version: Literal[1, 2]
    """Version of Confluent's format."""
    replicas: Annotated[tuple[RackCount, ...], Field(min_length=1)]
    observers: tuple[RackCount, ...] = ()
    observerPromotionPolicy: (  # the format's own spelling
        Literal["under-min-isr", "under-replicated", "leader-is-observer"] | None
    ) = None
    """When observers may join the in-sync replicas; version 2 only."""

    @model_validator(mode="after")
    def _policy_is_of_version_2(self) -> "ReplicaPlacement":
        if self.observerPromotionPolicy is not None and self.version == 1:
            raise ValueError("observerPromotionPolicy needs version 2")
        return self

    @property
    def replica_racks(self) -> dict[str, int]:
        """Number of replicas that may lead, by rack."""
        return _by_rack(self.replicas)

    @property
    def observer_racks(self) -> dict[str, int]:
        """Number of observers, which never lead, by rack."""
        return _by_rack(self.observers)

    @property
    def racks(self) -> dict[str, int]:
        """Number of replicas and observers together, by rack."""
        return _by_rack((*self.replicas, *self.observers))


class PlacementRule(FileModel):
    """A placement and the topics it is for."""

    topics: Names
    placement: ReplicaPlacement


def _by_rack(counts: tuple[RackCount, ...]) -> dict[str, int]:
    found: dict[str, int] = defaultdict(int)
    for entry in counts:
        found[entry.constraints.rack] += entry.count
    return dict(found)
