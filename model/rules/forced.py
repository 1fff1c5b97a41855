"""Replicas that have to leave, whatever else holds."""

from model.snapshot import BrokerState, Snapshot


def must_leave(snapshot: Snapshot, row: int) -> bool:
    """Whether a replica of the row lies on a draining or dead broker."""
    return any(
        snapshot.broker[b].state in (BrokerState.DRAINING, BrokerState.DEAD)
        for b in snapshot.replicas(row)
    )
