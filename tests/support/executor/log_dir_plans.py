"""Brokers with several log directories: what lies where, and plans that change it."""

from collections.abc import Mapping, Sequence

from executor.client.cluster_admin import Admin
from executor.platforms.replica_log_dirs import dirs_holding
from lab.local_cluster.local_cluster import LocalCluster
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import ANY_DIR, Move, Plan
from tests.support.cli_on_cluster import wait_until
from tests.support.executor.plan_builders import plan_for

IO_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"

Places = dict[int, dict[int, str]]
"""By partition and broker, the log directory."""


def places(admin: Admin, topic: str, replicas: Mapping[int, Sequence[int]]) -> Places:
    """Where the replicas of a topic lie; `replicas` by partition."""
    name = TopicName(topic)
    return {
        partition: {b: place(admin, PartitionId(name, partition), b) for b in brokers}
        for partition, brokers in replicas.items()
    }


def place(admin: Admin, pid: PartitionId, broker: int) -> str:
    """Where one replica lies, once its broker has made it and is at rest."""
    found: list[str] = []

    def is_at_rest() -> bool:
        found[:] = dirs_holding(pid, admin.log_dirs(BrokerId(broker), [pid]))
        return len(found) == 1

    wait_until(is_at_rest)
    return found[0]


def other(cluster: LocalCluster, broker: int, path: str) -> str:
    """The other one of a broker's two directories."""
    known = map(str, cluster.kafka.brokers[BrokerId(broker)].log_dirs)
    (found,) = (p for p in known if p != path)
    return found


def turned(cluster: LocalCluster, before: Places) -> Places:
    """Every replica in the other directory of its broker."""
    return {
        partition: {b: other(cluster, b, path) for b, path in at.items()}
        for partition, at in before.items()
    }


def plan_to(
    cluster: LocalCluster,
    topic: str,
    after: Mapping[int, Sequence[int]],
    before: Places,
    wanted: Places,
) -> Plan:
    """A plan of these replica lists; `wanted` names a directory or leaves it."""
    plan = plan_for(cluster.bootstrap, topic, after)

    def told(move: Move) -> Move:
        old, new = before[move.partition], wanted.get(move.partition, {})
        names = {
            "log_dirs_before": tuple(old[b] for b in move.replicas_before),
            "log_dirs_after": tuple(new.get(b, ANY_DIR) for b in move.replicas_after),
        }
        return move.model_copy(update=names)

    return plan.model_copy(update={"moves": tuple(map(told, plan.moves))}).seal()
