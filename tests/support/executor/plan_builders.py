"""Builders of moves, plans and views of a cluster."""

import time
from collections.abc import Collection, Mapping, Sequence

from executor.client.kafka_admin import KafkaAdmin
from executor.client.responses import ClusterView, LogDirView, PartitionView
from executor.platforms.detect import storage_kinds
from executor.run.preflight import Observed
from model.goals.goals import Goals, SolveLimits
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move, Plan, PlanStatus
from model.plan.replication_change import ReplicationChange
from model.snapshot.snapshot import StorageKind

CLUSTER_ID = "cluster-one"


def ids(numbers: Sequence[int]) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, numbers))


def move(
    partition: int = 0,
    before: Sequence[int] = (1,),
    after: Sequence[int] = (2,),
    *,
    topic: str = "orders",
    leader_before: int | None = None,
    leader_after: int | None = None,
    storage: StorageKind = StorageKind.REPLICATED,
    topic_id: str = "77Amyr9V",
    bytes_to_copy: int = 0,
    dirs_before: Sequence[str] = (),
    dirs_after: Sequence[str] = (),
) -> Move:
    """One move; by default the first replica leads."""
    old = before[0] if leader_before is None else leader_before
    new = after[0] if leader_after is None else leader_after
    return Move(
        topic=TopicName(topic),
        topic_id=topic_id,
        partition=partition,
        storage=storage,
        replicas_before=ids(before),
        replicas_after=ids(after),
        leader_before=BrokerId(old),
        leader_after=BrokerId(new),
        bytes_to_copy=bytes_to_copy,
        gain=0.0,
        reason="by hand",
        log_dirs_before=tuple(dirs_before),
        log_dirs_after=tuple(dirs_after),
    )


def plan(
    moves: Sequence[Move],
    *,
    cluster_id: str = CLUSTER_ID,
    live: Collection[int] = (1, 2, 3),
    replication: Sequence[ReplicationChange] = (),
) -> Plan:
    """A sealed plan of these moves."""
    return Plan(
        cluster_id=cluster_id,
        snapshot_fingerprint="by hand",
        snapshot_taken_at_ms=0,
        live_brokers=ids(sorted(live)),
        goals=Goals(),
        limits=SolveLimits(),
        status=PlanStatus.IMPROVED,
        objective_before=1.0,
        objective=0.0,
        bound=0.0,
        move_price=0.1,
        levels={},
        brokers=(),
        moves=tuple(moves),
        replication=tuple(replication),
    ).seal()


def plan_for(bootstrap: str, topic: str, after: Mapping[int, Sequence[int]]) -> Plan:
    """A plan that fits the present cluster; the first of each list will lead."""
    name = TopicName(topic)
    pids = [PartitionId(name, number) for number in after]
    with KafkaAdmin(bootstrap, 10.0) as admin:
        views = _views(admin, pids)
        kind = storage_kinds(admin, [name])[name]
        cluster = admin.cluster()
    moves = [
        move(
            number,
            views[PartitionId(name, number)].replicas,
            replicas,
            topic=topic,
            leader_before=views[PartitionId(name, number)].leader,
            storage=kind,
            topic_id=views[PartitionId(name, number)].topic_id,
        )
        for number, replicas in after.items()
    ]
    return plan(moves, cluster_id=cluster.cluster_id, live=cluster.alive)


def _views(admin: KafkaAdmin, pids: Sequence[PartitionId]) -> dict[PartitionId, PartitionView]:
    """As if the polled broker knew them; others knew them before."""
    end_s = time.monotonic() + 300
    while len(result := admin.partitions(pids)) < len(pids):
        assert time.monotonic() < end_s
        time.sleep(0.1)
    return result


def view(
    of: Move,
    replicas: Sequence[int] | None = None,
    *,
    in_sync: Sequence[int] | None = None,
    leader: int | None = None,
    topic_id: str | None = None,
) -> PartitionView:
    """The metadata of a move's partition; by default from before the move."""
    result = of.replicas_before if replicas is None else ids(replicas)
    led_by = of.leader_before if replicas is None else result[0]
    return PartitionView(
        id=of.id,
        topic_id=of.topic_id if topic_id is None else topic_id,
        replicas=result,
        in_sync=frozenset(result if in_sync is None else ids(in_sync)),
        offline=frozenset(),
        leader=led_by if leader is None else BrokerId(leader),
    )


def log_dir(
    path: str,
    sizes: Mapping[PartitionId, int] | None = None,
    coming: Mapping[PartitionId, int] | None = None,
    *,
    usable: int | None = None,
    offline: bool = False,
    cordoned: bool = False,
) -> LogDirView:
    """An online log directory; empty by default."""
    return LogDirView(
        path=path,
        sizes=sizes or {},
        coming=coming or {},
        usable_bytes=usable,
        offline=offline,
        cordoned=cordoned,
    )


def observed(
    of: Plan,
    *views: PartitionView,
    alive: Collection[int] = (1, 2, 3),
    log_dirs: Mapping[BrokerId, Sequence[LogDirView]] | None = None,
) -> Observed:
    """The cluster as in the plan, except for these views."""
    return Observed(
        cluster=ClusterView(cluster_id=CLUSTER_ID, alive=frozenset(ids(list(alive)))),
        partitions={m.id: view(m) for m in of.moves} | {v.id: v for v in views},
        storage={m.topic: m.storage for m in of.moves},
        reassignments={},
        log_dirs=log_dirs or {},
    )
