"""Log directories that a plan names (JBOD) exist, are open, and have room."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

from model.ids import NO_BROKER, BrokerId
from model.plan.plan import ANY_DIR
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Resource, Snapshot
from model.units import bytes_text

Place = tuple[BrokerId, str]


def log_directories(proposal: Proposal) -> Iterator[str]:
    """Check that named log directories are their brokers', not cordoned and not overfilled.

    Each replica has one, or none. A directory's limit is its capacity times the limit for disks;
    one over it may not get worse. Source: KIP-113 for the assignment, KIP-1066 for cordoned
    directories.
    """
    sized: list[Change] = []
    for change in proposal.changes:
        dirs, replicas = len(change.log_dirs), len(change.replicas)
        if dirs not in (0, replicas):
            pid = proposal.snapshot.id(change.row)
            yield f"{pid} would have {dirs} log directories for {replicas} replicas"
            continue
        sized.append(change)
        yield from _closed(proposal.snapshot, change)
    if any(change.log_dirs for change in sized):
        yield from _overfilled(proposal, sized)


def directories_emptied(proposal: Proposal) -> Iterator[str]:
    """Check that replicas leave the directories that the goals empty, and that none gets there.

    Partitions without a leader stay, and so do those that the goals defer.
    """
    snapshot = proposal.snapshot
    stays = (snapshot.partitions.leader == NO_BROKER) | proposal.deferred
    left = np.flatnonzero(proposal.emptied & ~stays[snapshot.replica_row])
    rows, positions = snapshot.replica_row[left].tolist(), snapshot.replica_position[left].tolist()
    for row, at in zip(rows, positions, strict=True):
        broker = snapshot.header.brokers[at].id
        path, change = snapshot.log_dirs(row)[broker], proposal.changed.get(row)
        named = dict(zip(change.replicas, change.log_dirs, strict=False)) if change else {}
        stays_there = change is None or broker in change.replicas
        if stays_there and named.get(broker, ANY_DIR) in (ANY_DIR, path):
            yield f"{snapshot.id(row)} would stay in {path} of broker {broker}, which is emptied"
    emptied = {(entry.broker, entry.path) for entry in proposal.goals.emptied}
    for change in proposal.changes if emptied else ():
        home = snapshot.log_dirs(change.row)
        for broker, path in zip(change.replicas, change.log_dirs, strict=False):
            if (broker, path) in emptied and home.get(broker) != path:
                yield (
                    f"{snapshot.id(change.row)} would go to {path} of broker {broker}, which is "
                    "emptied"
                )


def _closed(snapshot: Snapshot, change: Change) -> Iterator[str]:
    """Named directories that the broker lacks, or that take no new replica."""
    home = snapshot.log_dirs(change.row)
    for broker, path in zip(change.replicas, change.log_dirs, strict=False):
        if path == ANY_DIR or home.get(broker) == path:
            continue
        known = snapshot.broker.get(broker)
        found = [d for d in known.log_dirs if d.path == path] if known else []
        words = f"{snapshot.id(change.row)} would lie in {path} of broker {broker}, "
        if not found:
            yield words + "which has no such log directory"
        elif found[0].cordoned:
            yield words + "which is cordoned"


def _overfilled(proposal: Proposal, changes: list[Change]) -> Iterator[str]:
    snapshot = proposal.snapshot
    limit = proposal.goals.limit_of(Resource.DISK)
    before = bytes_before(snapshot)
    grown = growth(snapshot, changes)
    for broker in snapshot.header.brokers:
        for entry in broker.log_dirs:
            place = broker.id, entry.path
            if entry.capacity_bytes is None or grown[place] <= 0:
                continue
            most = limit * entry.capacity_bytes
            after = before[place] + grown[place]
            if after > max(most, before[place]) * (1 + 1e-9):
                yield (
                    f"{entry.path} of broker {broker.id} would hold "
                    f"{bytes_text(after)}; its limit is {bytes_text(most)}"
                )


def growth(snapshot: Snapshot, changes: Iterable[Change]) -> dict[Place, int]:
    """Bytes that each named directory gains, less than 0 where it loses, by broker and path.

    A new replica without a directory counts nowhere, since its broker chooses, and unknown sizes
    count as 0. The result is a defaultdict: a directory that does not change may be absent.
    """
    grown: dict[Place, int] = defaultdict(int)
    for change in changes:
        home = snapshot.log_dirs(change.row)
        size = max(0, int(snapshot.partitions.local_bytes[change.row]))
        named = dict(zip(change.replicas, change.log_dirs, strict=False))
        for broker in set(home) | set(change.replicas):
            stays = broker in change.replicas
            old = home.get(broker)
            new = named.get(broker, ANY_DIR) if stays else None
            if stays and new == ANY_DIR:
                # Unnamed, a replica keeps its directory; a new one may go anywhere.
                continue
            if old is not None:
                grown[broker, old] -= size
            if new is not None:
                grown[broker, new] += size
    return grown


def bytes_before(snapshot: Snapshot) -> dict[Place, float]:
    """Bytes in each log directory, by broker and path, as the snapshot has them.

    Replicas of unknown directory or size are not counted; empty where no directories are known.
    """
    columns = snapshot.partitions
    found: dict[Place, float] = defaultdict(float)
    if columns.replica_dir is None:
        return found
    of_replica = np.maximum(0.0, columns.local_bytes)[snapshot.replica_row]
    for broker in snapshot.header.brokers:
        known = (columns.replica_broker == broker.id) & (columns.replica_dir >= 0)
        totals = np.bincount(
            columns.replica_dir[known], of_replica[known], minlength=len(broker.log_dirs)
        )
        for entry, total in zip(broker.log_dirs, totals.tolist(), strict=False):
            found[broker.id, entry.path] = total
    return found
