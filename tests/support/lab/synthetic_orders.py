"""Small synthetic clusters for tests."""

from typing import Any

from lab.synthetic.load_curves import Rhythm
from lab.synthetic.observe import Order
from lab.synthetic.shape import ClusterShape
from model.snapshot.snapshot import StorageKind

STILL = Rhythm(growth=0.0, bursts=0.0, noise=0.0)
"""Only daily and weekly cycles."""


def order(
    brokers: int = 6,
    partitions: int = 60,
    *,
    storage: StorageKind = StorageKind.REPLICATED,
    rhythm: Rhythm | None = None,
    seed: int = 1,
    days: int = 2,
    **other: Any,
) -> Order:
    shape = {"racks": 3, "rf": 3} | other
    if storage is StorageKind.SHARED:
        shape["rf"] = 1
    return Order(
        shape=ClusterShape(brokers=brokers, partitions=partitions, **shape),
        storage=storage,
        rhythm=rhythm or Rhythm(),
        seed=seed,
        days=days,
    )
