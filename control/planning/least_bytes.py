"""Proven lower bounds on the bytes that requests copy, and how far plans are from them."""

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from model.goals.goals import Goals
from model.ids import BrokerId
from model.snapshot.snapshot import Ints, Resource, Snapshot, StorageKind
from model.units import bytes_text, share_text

_ROUNDING: Final = 1e-9
"""As `solver.log_dirs.emptying` rounds limits."""


def least_bytes(snapshot: Snapshot, new: Ints) -> int | None:
    """Bytes that (n,) new replicas copy at least; None if a size is unknown.

    Each new replica of a partition copies at least what is on its leader's disk, whichever
    broker it goes to, so that `new[row]` of them copy `new[row]` times as much.
    """
    rows = np.flatnonzero(new > 0).tolist()
    sizes = [snapshot.row(row).bytes_to_copy(int(new[row])) for row in rows]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def least_added(snapshot: Snapshot, wanted: Mapping[int, int]) -> int | None:
    """Bytes that any plan copies after which rows have so many replicas.

    wanted: replicas by row. A row with c replicas that ends with k on distinct brokers has at
    least k - c new ones, and none has to be new if k <= c; hence the sum over the rows.
    """
    new = np.zeros(len(snapshot), np.int64)
    for row, replicas in wanted.items():
        new[row] = max(0, replicas - int(snapshot.replica_counts[row]))
    return least_bytes(snapshot, new)


def least_repair(snapshot: Snapshot, forced: Ints, repaired: Collection[int]) -> int | None:
    """Bytes that any plan copies that makes all forced moves and repairs the racks of rows.

    forced: (n,) new replicas that every allowed placement has at least. Racks depend on the
    brokers of the replicas alone, so that a row that breaks the rack rule, and no longer does, has
    at least one new replica; it may be one of the forced ones, hence the larger of both.
    """
    new = forced.copy()
    rows = list(repaired)
    new[rows] = np.maximum(new[rows], 1)
    return least_bytes(snapshot, new)


def least_moved(snapshot: Snapshot, broker: BrokerId, paths: Collection[str]) -> int | None:
    """Bytes that any plan copies, inside the broker or to others, that empties directories of it.

    Each replica there is copied at least once, to another directory of the broker or, since the
    partition keeps its number of replicas, to a broker that holds none; both copy all of it. None
    where a size is unknown.
    """
    rows = snapshot.replica_row[snapshot.in_dirs({(broker, path) for path in paths})]
    sizes = _sizes(snapshot)[rows]
    return None if (sizes < 0).any() else int(sizes.sum())


def least_outside(
    snapshot: Snapshot,
    goals: Goals,
    broker: BrokerId,
    paths: Collection[str],
    closed: Collection[str] = (),
) -> int | None:
    """Bytes that any plan copies to other brokers that empties directories of this one.

    Let E be the bytes in the emptied directories, and u and l those in use and the limit of a
    directory that takes replicas. Afterwards such a directory holds at most max(u, l): one over
    its limit may not get worse. All of them together gain at most the sum of max(0, l - u), so
    that the bytes on the broker fall by at least E less that sum, whatever is exchanged among
    them; directories that take none can only lose replicas. A replica that leaves the broker is
    created on another one, since its partition keeps its number of replicas: as many bytes are
    copied there. 0 where a capacity is unknown, which sets no limit; None where a size is.
    """
    sizes = _sizes(snapshot)
    here = snapshot.partitions.replica_broker == broker
    if (sizes[snapshot.replica_row[here]] < 0).any():
        return None
    moved = least_moved(snapshot, broker, paths)
    room = 0.0
    for entry in snapshot.broker[broker].log_dirs:
        if entry.cordoned or entry.failed or entry.path in {*paths, *closed}:
            continue
        if entry.capacity_bytes is None:
            return 0
        held = snapshot.replica_row[snapshot.in_dirs({(broker, entry.path)})]
        used = float(sizes[held].sum())
        # Rounding must not make the bound larger than a plan that fills a directory to its limit.
        limit = goals.limit_of(Resource.DISK) * entry.capacity_bytes * (1 + _ROUNDING)
        room += max(0.0, limit - used)
    return None if moved is None else max(0, int(np.ceil(moved - room)))


def _sizes(snapshot: Snapshot) -> Ints:
    """(n,) bytes of each replica on disk; negative where unknown."""
    kinds = np.array([t.storage is StorageKind.SHARED for t in snapshot.header.topics], np.bool_)
    columns = snapshot.partitions
    return np.where(kinds[columns.topic], 0, columns.local_bytes)


def bound_sentence(does: str, plan_bytes: int | None, least: int | None) -> str:
    """How far a plan's bytes are from the fewest possible; empty where sizes are unknown.

    does: what no plan does with fewer bytes, such as `empties broker 4`.
    """
    if plan_bytes is None or least is None:
        return ""
    if plan_bytes <= least:
        return f"no plan {does} with fewer bytes"
    return (
        f"no plan {does} with fewer than {bytes_text(least)}; this one copies "
        f"{share_text(plan_bytes / least - 1 if least else 1.0)} more, since rules "
        "or limits need further moves"
    )
