"""Clusters that are hard to plan: limits are tight, exceeded or unreachable."""

from dataclasses import replace
from typing import Any, Final

import numpy as np

from model.goals.goals import Goals, ObjectiveKind
from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import (
    Broker,
    BrokerState,
    LogDir,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)

MB: Final = 1_000_000
TAKEN_AT_MS: Final = 1_700_000_000_000
RESOURCES: Final = (Resource.NET_IN, Resource.NET_OUT, Resource.DISK)
PER_TOPIC: Final = 10


def hard(seed: int, most_brokers: int = 12, most_rows: int = 200) -> tuple[Snapshot, Goals]:
    """A cluster and goals for it; equal seeds give equal ones."""
    rng = np.random.default_rng(seed)
    brokers = int(rng.integers(2, most_brokers + 1))
    rows = int(rng.integers(1, most_rows + 1))
    rf = int(rng.integers(1, min(3, brokers) + 1))
    loads = _loads(rng, rows)
    snapshot = _snapshot(rng, brokers, rf, loads)
    return snapshot, _goals(rng, snapshot)


def with_directories(snapshot: Snapshot, seed: int) -> Snapshot:
    """The same on plain disks with several, nearly full log directories."""
    rng = np.random.default_rng(seed)
    replica_brokers = snapshot.partitions.replica_broker
    count = int(rng.integers(2, 6))
    each = snapshot.partitions.local_bytes.sum() * 3 / len(snapshot.header.brokers)
    room = float(each / count * rng.choice([0.7, 1.5, 5.0]))
    dirs = tuple(
        LogDir(path=f"/d{i}", capacity_bytes=room, cordoned=bool(rng.random() < 0.1))
        for i in range(count)
    )
    brokers = tuple(b.model_copy(update={"log_dirs": dirs}) for b in snapshot.header.brokers)
    header = snapshot.header.model_copy(update={"brokers": brokers})
    at = rng.integers(0, count, len(replica_brokers)).astype(np.int64)
    return Snapshot(header, replace(snapshot.partitions, replica_dir=at))


def _loads(rng: np.random.Generator, rows: int) -> np.ndarray:
    """(rows, 3) loads; from even to some that are as large as a broker."""
    tail = rng.choice([0.2, 0.8, 1.5, 2.5])
    size = MB * rng.lognormal(0.0, tail, rows)
    if rng.random() < 0.2:
        size[:] = MB
    return np.column_stack(
        [size, size * rng.uniform(0.0, 3.0, rows), size * rng.uniform(100, 2000, rows)]
    )


def _snapshot(rng: np.random.Generator, brokers: int, rf: int, loads: np.ndarray) -> Snapshot:
    racks = rng.choice([0, 1, 2, 3, 4])
    pull = rng.choice([1.0, 1.0, 0.3, 0.0], brokers) + 1e-3
    kind = StorageKind(rng.choice([StorageKind.SHARED, StorageKind.REPLICATED]))
    topics = [
        Topic(name=TopicName(f"t{i:03d}"), topic_id=f"id{i:03d}", storage=kind)
        for i in range(-(-len(loads) // PER_TOPIC))
    ]
    rows = []
    for p, load in enumerate(loads.tolist()):
        chosen = rng.choice(brokers, rf, replace=False, p=pull / pull.sum())
        replicas = tuple(BrokerId(int(b)) for b in chosen)
        topic = topics[p // PER_TOPIC]
        rows.append(
            PartitionRow(
                id=PartitionId(topic.name, p % PER_TOPIC),
                topic_id=topic.topic_id,
                storage=kind,
                internal=False,
                replicas=replicas,
                leader=replicas[0],
                size_bytes=int(load[2]),
                local_bytes=int(load[2]),
            )
        )
    # What brokers can carry together, over what they have to.
    room = float(rng.choice([0.5, 0.95, 1.05, 1.3, 3.0]))
    carried = loads * [rf, 1.0, rf] + np.outer((rf - 1) * loads[:, 0], [0, 1, 0])
    capacity = {
        r: float(carried[:, d].sum() * room / brokers / 0.85 + 1.0)
        for d, r in enumerate(RESOURCES)
        if rng.random() < 0.6
    }
    header = SnapshotHeader(
        cluster_id="hard",
        taken_at_ms=TAKEN_AT_MS,
        brokers=tuple(
            Broker(
                id=BrokerId(b),
                rack=f"r{b % racks}" if racks else None,
                state=_state(rng) if b else BrokerState.ALIVE,
                capacity=capacity,
            )
            for b in range(brokers)
        ),
        topics=tuple(topics),
        resources=RESOURCES,
    )
    return Snapshot(header, partitions_from_rows(topics, rows, loads))


def _state(rng: np.random.Generator) -> BrokerState:
    others = [BrokerState.DEAD, BrokerState.DRAINING, BrokerState.NEW]
    return BrokerState(rng.choice([*[BrokerState.ALIVE] * 9, *others]))


def _goals(rng: np.random.Generator, snapshot: Snapshot) -> Goals:
    """Goals with a few rules, each as likely to be loose as to be out of reach."""
    brokers = len(snapshot.header.brokers)
    replica_brokers = len(snapshot.partitions.replica_broker)
    ids = [int(b) for b in rng.choice(brokers, min(brokers, 3), replace=False)]
    rules: dict[str, Any] = {
        "replicas_per_broker": max(
            1, int(replica_brokers / brokers * rng.choice([0.8, 1.0, 1.1, 2.0]))
        ),
        "budgets": {
            str(
                rng.choice(["replica_moves", "replica_moves_in_per_broker", "leader_changes"])
            ): int(rng.choice([0, 1, 5, 40]))
        },
        "pins": [{"topics": {"regex": ["t00[0-3]"]}, "brokers": ids}],
        "rack_rule": str(rng.choice(["even", "off"])),
        "move_price": float(rng.choice([1e-6, 1e-3, 0.1])),
        "excluded_topics": ["t00[5-9]"],
    }
    chosen = {name: rule for name, rule in rules.items() if rng.random() < 0.3}
    counts = ["replicas", "leaders", "topic_replicas"]
    more = [c for c in counts if rng.random() < 0.15]
    measures = ["net_in", "net_out", *more]
    balance = [{"resource": m, "floor": 0.0, "tolerance": 0.1} for m in measures]
    objective = ObjectiveKind(rng.choice(list(ObjectiveKind)))
    document = {"balance": balance, "objective": objective, **chosen}
    return Goals.model_validate(document, strict=False)


def over_capacity() -> Snapshot:
    """Six brokers, some of them over their limit, which no plan can repair."""
    rng = np.random.default_rng(6)
    loads = np.round(rng.lognormal(0.0, 1.0, 96), 3) * 5 * MB
    pull = np.array([1.0, 1.0, 1.0, 0.2, 0.2, 0.2])
    topics = [Topic(name=TopicName("t"), topic_id="id")]
    rows = []
    for p, load in enumerate(loads.tolist()):
        chosen = rng.choice(6, 3, replace=False, p=pull / pull.sum())
        replicas = tuple(BrokerId(int(b)) for b in chosen)
        rows.append(
            PartitionRow(
                id=PartitionId(topics[0].name, p),
                topic_id="id",
                storage=StorageKind.SHARED,
                internal=False,
                replicas=replicas,
                leader=replicas[0],
                size_bytes=int(load),
                local_bytes=int(load),
            )
        )
    capacity = dict.fromkeys(RESOURCES[:2], float(loads.sum() * 3 / 6 * 0.7))
    header = SnapshotHeader(
        cluster_id="over",
        taken_at_ms=TAKEN_AT_MS,
        brokers=tuple(Broker(id=BrokerId(b), capacity=capacity) for b in range(6)),
        topics=tuple(topics),
        resources=RESOURCES[:2],
    )
    columns = np.column_stack([loads, loads * rng.uniform(0.5, 2.0, 96)])
    return Snapshot(header, partitions_from_rows(topics, rows, columns))
