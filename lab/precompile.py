"""Compiles the planner's loops before they are needed: `python -P -m lab.precompile`.

For images: the loops are cached beside their modules, and hold for any processor of this
architecture. Made-up clusters are planned that together call all loops.
"""

from typing import Final

import numpy as np

from lab.synthetic.shape import ClusterShape
from lab.synthetic.synthetic_snapshot import ClusterName, cluster
from model.goals.goals import Goals, ObjectiveKind, SolveLimits
from model.snapshot.snapshot import Snapshot, StorageKind
from solver.solve import solve

_SEED: Final = 1
_WORK: Final = 3.0
"""Work units for each plan."""
_TIGHT: Final = 0.4
"""Limit of a broker's capacity; the clusters use a little less on average."""
_SHAPES: Final = (
    ClusterShape(brokers=3, partitions=60),
    ClusterShape(brokers=10, partitions=500, large_partitions=True),
    ClusterShape(brokers=9, partitions=300, rf=3, racks=3, drain=True),
    ClusterShape(brokers=8, partitions=60, rf=3, racks=3, hot=True, unequal=True),
)


def main() -> None:
    """Plan each cluster with each objective."""
    for shape in _SHAPES:
        storage = StorageKind.SHARED if shape.rf == 1 else StorageKind.REPLICATED
        name = ClusterName(cluster_id="made up", taken_at_ms=0)
        snapshot = cluster(shape, storage, name, np.random.default_rng(_SEED))
        for objective in ObjectiveKind:
            solve(snapshot, Goals(objective=objective), SolveLimits(work=_WORK, seed=_SEED))
    # Brokers over their limits, and replicas that share racks, are repaired first.
    goals = Goals(capacity_limit=_TIGHT)
    solve(_with_racks(snapshot, "aabbc"), goals, SolveLimits(work=_WORK, seed=_SEED))


def _with_racks(snapshot: Snapshot, racks: str) -> Snapshot:
    """The same cluster with its brokers in these racks in turn."""
    brokers = tuple(
        broker.model_copy(update={"rack": racks[number % len(racks)]})
        for number, broker in enumerate(snapshot.header.brokers)
    )
    return Snapshot(snapshot.header.model_copy(update={"brokers": brokers}), snapshot.partitions)


if __name__ == "__main__":
    main()
