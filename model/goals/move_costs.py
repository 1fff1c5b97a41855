"""Costs of moves, in units of the objective."""

import numpy as np

from model.goals.goals import Goals, ObjectiveKind
from model.plan.plan import ANY_DIR
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import Floats, Snapshot, StorageKind


def move_price(proposal: Proposal, tolerance: float) -> float:
    """lambda, the price of one move equivalent, in units of F.

    As configured; else 1 for `band`, and tolerance x brokers / partitions for
    `variance`, where `tolerance` is the least of the goals that count.
    """
    goals = proposal.goals
    if goals.move_price is not None:
        return goals.move_price
    if goals.objective is ObjectiveKind.BAND:
        return 1.0
    return tolerance * len(proposal.holding) / max(1, len(proposal.snapshot))


def replica_prices(snapshot: Snapshot, goals: Goals) -> Floats:
    """(n,) price of one new replica of each row, in units of lambda.

    The factor of its storage kind (`Goals.storage_price`), times what it copies: shared storage
    copies nothing, which counts as 1. A tiered partition counts 1, or its local bytes over the mean
    log size where that is more; a replicated one its local bytes over the mean log size. Where
    local bytes are unknown, or the mean of the known sizes is 0 or unknown, it is 1.
    """
    columns, topics = snapshot.partitions, snapshot.header.topics
    factors = [goals.storage_price.get(t.storage, 1.0) for t in topics]
    factor: Floats = np.array(factors, np.float64)[columns.topic]
    known = columns.size_bytes[columns.size_bytes >= 0]
    mean = float(known.mean()) if len(known) else 0.0
    if mean <= 0:
        return factor
    share = columns.local_bytes / mean
    kinds = {k: np.array([t.storage is k for t in topics], bool) for k in StorageKind}
    tiered = kinds[StorageKind.TIERED][columns.topic]
    free = kinds[StorageKind.SHARED][columns.topic] | (columns.local_bytes < 0)
    copied = np.where(tiered, np.maximum(1.0, share), share)
    return factor * np.where(free, 1.0, copied)


def change_price(proposal: Proposal, change: Change, of_replica: float) -> float:
    """Price of one changed row, in units of lambda.

    As many new replicas as `Forced.replicas` has for the row are free. A replica that changes its
    log directory inside its broker costs as much as a new one, unless the goals empty that
    directory. Another leader costs `Goals.leader_price_share`, forced or not. Replicas beyond
    their number before are free: they are asked for.

    of_replica: the row's entry of `replica_prices`.
    """
    before = proposal.snapshot.replicas(change.row)
    added = len(set(change.replicas) - set(before))
    asked = max(0, len(change.replicas) - len(before))
    new = max(0, added - asked - int(proposal.forced.replicas[change.row]))
    paid = (new + directory_changes(proposal, change)) * of_replica
    if change.leader != proposal.snapshot.partitions.leader[change.row]:
        paid += proposal.goals.leader_price_share
    return paid


def directory_changes(proposal: Proposal, change: Change) -> int:
    """Count the replicas that change their log directory within their broker by choice.

    0 where the change names no directories; `any` is no change, and a named directory counts as
    another where the present one is unknown. Replicas in directories that the goals empty do not
    count.
    """
    if not change.log_dirs:
        return 0
    emptied = {(entry.broker, entry.path) for entry in proposal.goals.emptied}
    before = proposal.snapshot.log_dirs(change.row)
    return sum(
        broker in before
        and path not in (ANY_DIR, before[broker])
        and (broker, before[broker]) not in emptied
        for broker, path in zip(change.replicas, change.log_dirs, strict=False)
    )
