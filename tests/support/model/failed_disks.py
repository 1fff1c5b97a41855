"""Clusters in which log directories of live brokers have failed."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np

from model.ids import NO_BROKER
from model.snapshot.snapshot import LogDir, Snapshot, StorageKind
from tests.support.model import clusters

DIRS = ("/a", "/b")


def with_failed_disks(
    count: int,
    places: Sequence[tuple[int, ...]],
    lost: Collection[tuple[int, int]],
    *,
    racks: str | None = None,
) -> Snapshot:
    """Brokers 1 to `count` with directories /a and /b.

    lost: pairs of row and broker whose replica is in /b, which has failed there; all others are
    in /a. A row is led by its first replica that is not lost.
    """
    failed = {broker for _, broker in lost}
    leaders = [
        next((b for b in place if (row, b) not in lost), NO_BROKER)
        for row, place in enumerate(places)
    ]
    members = [
        broker.model_copy(
            update={
                "log_dirs": tuple(
                    LogDir(path=path, cordoned=bad, failed=bad)
                    for path, bad in zip(DIRS, (False, broker.id in failed), strict=True)
                )
            }
        )
        for broker in clusters.brokers(count, racks)
    ]
    seen = clusters.snapshot(members, places, leaders=leaders, storage=StorageKind.REPLICATED)
    dirs = [int((row, b) in lost) for row, place in enumerate(places) for b in place]
    columns = dataclasses.replace(seen.partitions, replica_dir=np.array(dirs, np.int64))
    return Snapshot(seen.header, columns)
