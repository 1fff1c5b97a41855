"""Costs of changes, in units of the objective F."""

from dataclasses import dataclass

import numpy as np

from model.goals.goals import Goal, Goals, ObjectiveKind
from model.snapshot.snapshot import Floats, Snapshot, StorageKind
from solver.problem.eligibility import Eligibility


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCosts:
    """Costs of new replicas and leader changes of n rows, in units of F.

    A move equivalent is one new replica that copies a partition of mean size.
    """

    move: float
    """Lambda: the cost of one move equivalent."""
    replica: Floats
    """(n,) cost of one replica of each row on a broker that had none."""
    leader: float
    """Cost of one leader change."""
    refund: Floats
    """(n,) cost of the replicas that every allowed placement adds; these are free."""


def find_change_costs(
    snapshot: Snapshot, goals: Goals, counted: tuple[Goal, ...], may: Eligibility
) -> ChangeCosts:
    """Take the costs from the goals, or the defaults of docs/explanation/planning.md.

    `counted` are the goals in effect. The default cost of a move equivalent is 1 under `band`;
    otherwise the least tolerance of `counted` (0.1 if empty) times the number of holding
    brokers, over the number of partitions.
    """
    move = goals.move_price
    if move is None and goals.objective is ObjectiveKind.BAND:
        move = 1.0
    if move is None:
        tolerance = min((g.tolerance for g in counted), default=0.1)
        partitions = len(snapshot.partitions.topic)
        move = tolerance * int(may.holding.sum()) / max(1, partitions)
    replica = move * _copy_shares(snapshot, goals)
    return ChangeCosts(
        move=move,
        replica=replica,
        leader=move * goals.leader_price_share,
        refund=replica * may.least_new,
    )


def _copy_shares(snapshot: Snapshot, goals: Goals) -> Floats:
    """(n,) cost of a new replica in move equivalents, by the bytes it copies.

    1 on shared storage; local bytes over the mean log size where bytes are copied, at least 1
    with a remote tier; 1 where sizes are unknown. Multiplied by the storage kind's factor.
    """
    columns = snapshot.partitions
    storage = [t.storage for t in snapshot.header.topics]
    price = np.array([goals.storage_price.get(kind, 1.0) for kind in storage], np.float64)
    shared = np.array([kind is StorageKind.SHARED for kind in storage], np.bool_)[columns.topic]
    tiered = np.array([kind is StorageKind.TIERED for kind in storage], np.bool_)[columns.topic]
    factor: Floats = price[columns.topic]
    known = columns.size_bytes[columns.size_bytes >= 0]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return factor
    share = columns.local_bytes / mean
    share = np.where(tiered, np.maximum(1.0, share), share)
    share = np.where(shared | (columns.local_bytes < 0), 1.0, share)
    priced: Floats = share * factor
    return priced
