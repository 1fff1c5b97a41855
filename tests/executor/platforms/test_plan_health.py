"""Which reassignments end a run of a plan with topics of two platforms."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from executor.client.cluster_admin import ClusterAdmin
from executor.client.responses import ClusterView
from executor.platforms.stock_kafka import ReplicatedKafka
from model.ids import PartitionId, TopicName
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind
from tests.support.executor.plan_builders import CLUSTER_ID, ids, move, view

PLAIN = move(topic="orders")
TIERED = move(topic="clicks", storage=StorageKind.TIERED)
STRANGER = PartitionId(TopicName("strange"), 0)


class Listing:
    """A cluster with live brokers that lists these reassignments."""

    def __init__(self, *listed: PartitionId) -> None:
        self._listed = listed

    def partitions(self, wanted: list[PartitionId]) -> Mapping[PartitionId, Any]:
        known: dict[PartitionId, Move] = {m.id: m for m in (PLAIN, TIERED)}
        return {pid: view(known[pid]) for pid in wanted}

    def cluster(self) -> ClusterView:
        return ClusterView(cluster_id=CLUSTER_ID, alive=frozenset(ids([1, 2])))

    def reassignments(self) -> Mapping[PartitionId, object]:
        return dict.fromkeys(self._listed)


@pytest.mark.parametrize(
    ("listed", "reason"),
    [
        ((PLAIN.id, TIERED.id), None),
        ((PLAIN.id, TIERED.id, STRANGER), "someone else is moving strange-0"),
    ],
)
def test_moves_of_the_plans_other_platform_are_not_someone_elses(
    listed: tuple[PartitionId, ...], reason: str | None
) -> None:
    platform = ReplicatedKafka(cast("ClusterAdmin", Listing(*listed)))
    found = platform.health([PLAIN], [PLAIN, TIERED])
    assert (found and found.reason) == reason
