"""What changes cost, in units of F."""

from dataclasses import dataclass

import numpy as np

from model.goals.goals import Goal, Goals, ObjectiveKind
from model.snapshot.snapshot import Floats, Snapshot, StorageKind
from solver.problem.eligibility import Eligibility


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCosts:
    """Prices of new replicas and new leaders."""

    move: float
    """lambda, the price of one ordinary move."""
    replica: Floats
    """(n,) price of one replica on a broker that had none."""
    leader: float
    """Price of another leader."""
    refund: Floats
    """(n,) what is given back for replicas that are new in any case: these are free."""


def find_change_costs(
    snapshot: Snapshot, goals: Goals, counted: tuple[Goal, ...], may: Eligibility
) -> ChangeCosts:
    """Prices from the goals, or the defaults of docs/explanation/planning.md."""
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
    """(n,) cost of a new replica in units of lambda, by what it has to copy.

    1 on shared storage; local bytes over the mean log where bytes are copied, at
    least 1 where there is a remote tier; 1 where sizes are unknown. Times the price
    of the storage kind.
    """
    columns, topics = snapshot.partitions, snapshot.header.topics

    def by_topic(kind: StorageKind) -> Floats:
        is_kind = np.array([t.storage is kind for t in topics], np.float64)
        found: Floats = is_kind[columns.topic] if len(topics) else np.zeros(0)
        return found

    factor = sum(
        (goals.storage_price.get(kind, 1.0) * by_topic(kind) for kind in StorageKind),
        np.zeros(len(columns.topic)),
    )
    shared = by_topic(StorageKind.SHARED) > 0
    tiered = by_topic(StorageKind.TIERED) > 0
    known = columns.size_bytes[columns.size_bytes >= 0]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return factor
    share = columns.local_bytes / mean
    share = np.where(tiered, np.maximum(1.0, share), share)
    share = np.where(shared | (columns.local_bytes < 0), 1.0, share)
    priced: Floats = share * factor
    return priced
