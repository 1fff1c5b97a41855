"""Emptying log directories: where their replicas go on the same broker, as far as there is room."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Bools, Floats, Resource, Snapshot

_ROUNDING: Final = 1e-9
"""A limit exceeded by this share counts as rounding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Emptying:
    """What becomes of the replicas in the directories that are emptied."""

    inside: dict[int, str]
    """By row, ascending: the directory of the same broker that its replica goes to."""
    homeless: tuple[int, ...]
    """Rows, ascending, whose replica fits in no other directory of the broker."""


def empty_directories(
    snapshot: Snapshot,
    goals: Goals,
    broker: BrokerId,
    paths: Collection[str],
    closed: Collection[str] = (),
) -> Emptying:
    """Choose the new directory of each replica in these directories of one broker.

    The largest replicas come first, each to the directory that is the least utilised with it. If
    some do not fit then, each goes where it leaves the least room, and the way that keeps more
    bytes on the broker is taken. Directories that are cordoned, `closed`, have failed or are
    emptied take none; the others are filled up to the limit for disks, or without one where their
    capacity is unknown. Unknown sizes count as 0.

    Precondition: the snapshot lists the paths, and knows the directory of each replica.
    """
    directories = _Directories.of(snapshot, goals, broker, {*paths, *closed})
    rows = snapshot.replica_row[snapshot.in_dirs({(broker, path) for path in paths})]
    sizes = np.maximum(0.0, snapshot.partitions.local_bytes[rows])
    order = sorted(zip(rows.tolist(), sizes.tolist(), strict=True), key=lambda at: (-at[1], at[0]))
    spread = directories.place(order, tight=False)
    if len(spread) < len(order):
        packed = directories.place(order, tight=True)
        size = dict(order)
        if sum(size[row] for row in packed) > sum(size[row] for row in spread):
            spread = packed
    listed = snapshot.broker[broker].log_dirs
    return Emptying(
        inside={row: listed[at].path for row, at in sorted(spread.items())},
        homeless=tuple(sorted(row for row, _ in order if row not in spread)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Directories:
    """The m directories of a broker."""

    used: Floats
    """(m,) bytes of replicas that stay."""
    held: Floats
    """(m,) number of replicas that stay."""
    capacity: Floats
    """(m,) bytes; 1 each where one is unknown."""
    limit: Floats
    """(m,) most bytes; infinite where the capacity is unknown."""
    open: Bools
    """(m,) may take replicas."""

    @classmethod
    def of(
        cls, snapshot: Snapshot, goals: Goals, broker: BrokerId, paths: Collection[str]
    ) -> "_Directories":
        listed = snapshot.broker[broker].log_dirs
        sizes = np.maximum(0.0, snapshot.partitions.local_bytes)
        here = [snapshot.in_dirs({(broker, entry.path)}) for entry in listed]
        known = [entry.capacity_bytes for entry in listed]
        share = goals.limit_of(Resource.DISK)
        closed = [d.cordoned or d.failed or d.path in paths for d in listed]
        return cls(
            used=np.array([sizes[snapshot.replica_row[mask]].sum() for mask in here], np.float64),
            held=np.array([mask.sum() for mask in here], np.float64),
            capacity=np.array([1.0 if None in known else c for c in known], np.float64),
            limit=np.array([np.inf if c is None else share * c for c in known], np.float64),
            open=~np.array(closed, np.bool_),
        )

    def place(self, order: Collection[tuple[int, float]], *, tight: bool) -> dict[int, int]:
        """Directory by row, of (row, bytes) in order, as far as they fit.

        tight: where the least room is left, instead of where the utilisation is least.
        """
        used, held = self.used.copy(), self.held.copy()
        found: dict[int, int] = {}
        for row, size in order:
            after = used + size
            room = self.open & (after <= self.limit * (1 + _ROUNDING))
            if not room.any():
                continue
            rank = self.limit - after if tight else after / self.capacity
            # Of equals the one with the fewest replicas, then the first.
            at = min(np.flatnonzero(room).tolist(), key=lambda j: (rank[j], held[j], j))
            used[at] += size
            held[at] += 1
            found[row] = at
        return found
