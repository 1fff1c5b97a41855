"""What changes cost, in units of F."""

from dataclasses import dataclass

import numpy as np

from model.goals import Goal, Goals
from model.snapshot import Bools, Floats, Snapshot, StorageKind
from solver.eligible import Eligibility


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Prices of new replicas and new leaders."""

    move: float
    """lambda, the price of one ordinary move."""
    replica: Floats
    """(n,) price of one replica on a broker that had none."""
    leader: float
    """Price of another leader."""
    refund: Floats
    """(n,) what is given back for replicas that had to leave: forced moves are free."""


def find_prices(
    snapshot: Snapshot,
    goals: Goals,
    counted: tuple[Goal, ...],
    home: Bools,
    may: Eligibility,
) -> Prices:
    """Prices from the goals, or tolerance x brokers / partitions."""
    move = goals.move_price
    if move is None:
        tolerance = min((g.tolerance for g in counted), default=0.1)
        move = tolerance * int(may.holding.sum()) / max(1, len(home))
    replica = move * _copy_shares(snapshot)
    return Prices(
        move=move,
        replica=replica,
        leader=move * goals.leader_price_share,
        refund=replica * may.forced,
    )


def _copy_shares(snapshot: Snapshot) -> Floats:
    """(n,) cost of a new replica in units of lambda, by what it has to copy.

    1 on shared storage; local bytes over the mean log where bytes are copied, at
    least 1 where there is a remote tier; 1 where sizes are unknown.
    """
    columns = snapshot.partitions
    kinds = [t.storage for t in snapshot.header.topics]
    storage = [kinds[t] for t in columns.topic.tolist()]
    shared = np.array([s is StorageKind.SHARED for s in storage], np.bool_)
    tiered = np.array([s is StorageKind.TIERED for s in storage], np.bool_)
    known = columns.size_bytes[columns.size_bytes >= 0]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return np.ones(len(storage))
    share = columns.local_bytes / mean
    share = np.where(tiered, np.maximum(1.0, share), share)
    return np.where(shared | (columns.local_bytes < 0), 1.0, share)
