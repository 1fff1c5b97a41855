"""Brokers with several log directories: what lies where, and plans that change it."""

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
"""By partition and broker, the log directory."""


def places(
    admin: ClusterAdmin, topic: str, replicas: Mapping[int, Sequence[int]]
) -> Places:
    """Where the replicas of a topic lie; `replicas` by partition."""
    name = TopicName(topic)
    return {
        partition: {b: place(admin, PartitionId(name, partition), b) for b in brokers}
        for partition, brokers in replicas.items()
    }


def place(admin: ClusterAdmin, pid: PartitionId, broker: int) -> str:
    """Where one replica lies, once its broker has made it and is at rest."""
    result: list[str] = []

    def is_at_rest() -> bool:
        result[:] = dirs_holding(pid, admin.log_dirs(BrokerId(broker), [pid]))
        return len(result) == 1

    wait_until(is_at_rest)
    return result[0]


def other_dir(cluster: LocalCluster, broker: int, path: str) -> str:
    """The other one of a broker's two directories."""
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
    """A plan of these replica lists; `wanted` names a directory or leaves it."""
    plan = plan_for(cluster.bootstrap, topic, after)

    def with_dirs(move: Move) -> Move:
        old, new = before[move.partition], targets.get(move.partition, {})
        names = {
            "log_dirs_before": tuple(old[b] for b in move.replicas_before),
            "log_dirs_after": tuple(new.get(b, ANY_DIR) for b in move.replicas_after),
        }
        return move.model_copy(update=names)

    return plan.model_copy(update={"moves": tuple(map(with_dirs, plan.moves))}).seal()
