"""Brokers with several log directories: placements, and plans that change them."""

from collections.abc import Mapping, Sequence

from executor.client.cluster_admin import ClusterAdmin
from executor.platforms.replica_log_dirs import dirs_holding
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import ANY_DIR, Move, Plan
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import plan_for

IO_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Places = dict[int, dict[int, str]]
"""The log directory, by partition and broker."""


def places(admin: ClusterAdmin, topic: str, replicas: Mapping[int, Sequence[int]]) -> Places:
    """Log directories of a topic's replicas; `replicas` by partition."""
    name = TopicName(topic)
    return {
        partition: {b: place(admin, PartitionId(name, partition), b) for b in brokers}
        for partition, brokers in replicas.items()
    }


def place(admin: ClusterAdmin, pid: PartitionId, broker: int) -> str:
    """The log directory of a replica, once its broker has created it and it is idle."""
    result: list[str] = []

    def is_at_rest() -> bool:
        result[:] = dirs_holding(pid, admin.log_dirs(BrokerId(broker), [pid]))
        return len(result) == 1

    wait_until(is_at_rest)
    return result[0]


def other_dir(cluster: LocalCluster, broker: int, path: str) -> str:
    """The other log directory of a broker with two."""
    known = map(str, cluster.kafka.brokers[BrokerId(broker)].log_dirs)
    (result,) = (p for p in known if p != path)
    return result


def swapped_dirs(cluster: LocalCluster, before: Places) -> Places:
    """Every replica in the other directory of its broker."""
    return {
        partition: {b: other_dir(cluster, b, path) for b, path in at.items()}
        for partition, at in before.items()
    }


def plan_to(
    cluster: LocalCluster,
    topic: str,
    after: Mapping[int, Sequence[int]],
    before: Places,
    targets: Places,
) -> Plan:
    """A plan with these replica lists; `wanted` names directories to change."""
    plan = plan_for(cluster.bootstrap, topic, after)

    def with_dirs(move: Move) -> Move:
        old, new = before[move.partition], targets.get(move.partition, {})
        names = {
            "log_dirs_before": tuple(old[b] for b in move.replicas_before),
            "log_dirs_after": tuple(new.get(b, ANY_DIR) for b in move.replicas_after),
        }
        return move.model_copy(update=names)

    return plan.model_copy(update={"moves": tuple(map(with_dirs, plan.moves))}).seal()
