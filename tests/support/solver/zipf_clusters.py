"""Synthetic clusters: Zipf loads over topics and partitions, seeded."""

import numpy as np

from model.ids import BrokerId, PartitionId, TopicName
from model.snapshot.snapshot import (
    Broker,
    PartitionRow,
    Resource,
    Snapshot,
    SnapshotHeader,
    StorageKind,
    Topic,
    partitions_from_rows,
)

MB = 1_000_000
TAKEN_AT_MS = 1_700_000_000_000


def synthetic(
    brokers: int,
    partitions: int,
    *,
    rf: int = 1,
    racks: int = 3,
    seed: int = 0,
    young: float = 1 / 3,
    storage: StorageKind = StorageKind.SHARED,
) -> Snapshot:
    """Old brokers hold much, young ones little; as planning's `hist` loads.

    Topics have ten partitions; loads fall by Zipf's law with exponent 1 over topics
    and 0.5 over a topic's partitions.
    """
    rng = np.random.default_rng(seed)
    topics = [
        Topic(name=TopicName(f"t{i:03d}"), topic_id=f"id{i:03d}", storage=storage)
        for i in range((partitions + 9) // 10)
    ]
    rank = rng.permutation(len(topics)) + 1.0
    pull = np.where(np.arange(brokers) >= brokers * (1 - young), 0.15, 1.0)
    rows, loads = [], []
    for p in range(partitions):
        topic = topics[p // 10]
        load = MB * 10 / rank[p // 10] / (p % 10 + 1) ** 0.5
        loads.append([load, load * float(rng.uniform(0.5, 3))])
        replicas = _place(rng, pull, rf, racks)
        rows.append(
            PartitionRow(
                id=PartitionId(topic.name, p % 10),
                topic_id=topic.topic_id,
                storage=storage,
                internal=False,
                replicas=replicas,
                leader=replicas[0],
                size_bytes=int(load * 1000),
                local_bytes=int(load * 1000),
            )
        )
    header = SnapshotHeader(
        cluster_id="synthetic",
        taken_at_ms=TAKEN_AT_MS,
        brokers=tuple(Broker(id=BrokerId(b), rack=f"r{b % racks}") for b in range(brokers)),
        topics=tuple(topics),
        resources=(Resource.NET_IN, Resource.NET_OUT),
    )
    return Snapshot(header, partitions_from_rows(topics, rows, np.array(loads)))


def _place(rng: np.random.Generator, pull: np.ndarray, rf: int, racks: int) -> tuple[BrokerId, ...]:
    chosen: list[int] = []
    for rack in rng.permutation(racks)[:rf]:
        members = np.arange(rack, len(pull), racks)
        share = pull[members] / pull[members].sum()
        chosen.append(int(rng.choice(members, p=share)))
    if rf == 1:
        chosen = [int(rng.choice(len(pull), p=pull / pull.sum()))]
    return tuple(map(BrokerId, chosen))
