"""The benchmark's clusters, from 3 x 60 to 215 x 930,000 x 3 replicas.

Those of `lab/synthetic/`, with a twentieth of the partitions moved a minute ago: they rest; and
clusters of `tests/cases/`, as they are.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.shapes import TOLERANCE, Shape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster, resources_of, topic_name
from model.exchange.offline_snapshot import ClusterFiles, read_cluster
from model.goals.goals import Goal, Goals, ObjectiveKind
from model.snapshot.snapshot import Ints, RecentMove, Snapshot, StorageKind

TAKEN_AT_MS: Final = 1_700_000_000_000
FROZEN: Final = 0.05
CASES: Final = Path(__file__).parents[1] / "tests" / "cases"


def build(shape: Shape, seed: int) -> Snapshot:
    """The instance of this shape and seed; the same bytes each time."""
    if shape.case:
        return _case(shape.case)
    rng = np.random.default_rng([seed, shape.brokers, shape.partitions, shape.rf])
    name = ClusterName(cluster_id=f"{shape.name}-{seed}", taken_at_ms=TAKEN_AT_MS)
    made = cluster(shape, _storage(shape), name, rng)
    columns = made.partitions
    moves = _recent_moves(rng, columns.topic, columns.partition)
    return Snapshot(made.header.model_copy(update={"recent_moves": moves}), columns)


def goals_of(shape: Shape) -> Goals:
    """Net in and out, and disk where it is copied; lambda by the number of brokers.

    F alone decides: plans that come closer to the tolerance may have a higher F than the best
    known, and bounds leave the tolerance out.
    Where brokers hold about 10,000 replicas each, half as many again are allowed.
    """
    replicas = shape.partitions * shape.rf / shape.brokers
    if shape.default_goals:
        return Goals()
    band = shape.band is not None
    return Goals(
        objective=ObjectiveKind.BAND if band else ObjectiveKind.VARIANCE,
        balance=tuple(
            Goal(resource=r, floor=0.0, tolerance=shape.band or TOLERANCE)
            for r in resources_of(_storage(shape))
        ),
        move_price=shape.move_price,
        tolerance_first=False,
        replicas_per_broker=max(10_000, round(1.5 * replicas)),
    )


def small(shape: Shape) -> Shape:
    """A small shape of the same kind, to compile on before anything is measured."""
    if shape.case:
        return shape
    brokers = min(shape.brokers, 12)
    return replace(shape, brokers=brokers, partitions=min(shape.partitions, 50 * brokers))


def instance_digest(shape: Shape, snapshot: Snapshot) -> str:
    """Sixteen hex digits over all that F depends on: which instance a bound is of."""
    columns, header = snapshot.partitions, snapshot.header
    hashed = hashlib.sha256()
    for column in (
        columns.replica_broker,
        columns.leader,
        columns.loads,
        columns.size_bytes,
        columns.local_bytes,
    ):
        hashed.update(np.ascontiguousarray(column).tobytes())
    brokers = [[b.id, b.rack, b.state, sorted(b.capacity.items())] for b in header.brokers]
    frozen = [[m.topic, m.partition] for m in header.recent_moves]
    priced = [shape.move_price, shape.band, _storage(shape)]
    priced += [shape.default_goals] if shape.default_goals else []
    hashed.update(json.dumps([brokers, frozen, priced]).encode())
    return hashed.hexdigest()[:16]


def _case(name: str) -> Snapshot:
    files = ClusterFiles(
        describe=CASES / f"{name}.txt",
        loads=CASES / f"{name}-loads.csv",
        brokers=CASES / f"{name}-brokers.csv",
    )
    return read_cluster(files)


def _storage(shape: Shape) -> StorageKind:
    if shape.rf == 1:
        return StorageKind.SHARED
    return StorageKind.REPLICATED if shape.band is None else StorageKind.TIERED


def _recent_moves(rng: np.random.Generator, topic: Ints, partition: Ints) -> tuple[RecentMove, ...]:
    rows = np.sort(rng.choice(len(topic), round(FROZEN * len(topic)), replace=False))
    pairs = zip(topic[rows].tolist(), partition[rows].tolist(), strict=True)
    return tuple(
        RecentMove(topic=topic_name(t), partition=p, left=(), at_ms=TAKEN_AT_MS - 60_000)
        for t, p in pairs
    )
