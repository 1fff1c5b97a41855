"""As many replicas as before or as asked for, on distinct brokers that may hold them."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from model.ids import NO_BROKER, BrokerId
from model.plan.proposal import Proposal
from model.snapshot.snapshot import LEAVING, TAKING
from model.units import count_text


def replication_factor_kept(proposal: Proposal) -> Iterator[str]:
    """Check that moves keep the number of replicas (KIP-860's guard), unless the plan says so.

    Where it does, every partition of the topic ends with as many as it says.
    """
    asked = {change.topic: change for change in proposal.replication}
    snapshot = proposal.snapshot
    for change in proposal.changes:
        before, after = snapshot.replicas(change.row), change.replicas
        pid = snapshot.id(change.row)
        wanted = asked.get(pid.topic)
        if wanted is not None:
            if fault := wanted.fault(before, after):
                yield f"{pid} {fault}"
        elif len(before) != len(after):
            yield f"{pid} would have {count_text(len(after), 'replica')}, it has {len(before)}"
    names = [t.name for t in snapshot.header.topics]
    for wanted in proposal.replication:
        if wanted.topic not in names:
            yield f"the topic {wanted.topic} does not exist"
            continue
        mine = snapshot.partitions.topic == names.index(wanted.topic)
        other = mine & (snapshot.replica_counts != wanted.after)
        for row in np.flatnonzero(other).tolist():
            if row not in proposal.changed:
                count = len(snapshot.replicas(row))
                yield (
                    f"{snapshot.id(row)} would keep {count_text(count, 'replica')}, "
                    f"the plan asks for {wanted.after}"
                )


def distinct_replicas(proposal: Proposal) -> Iterator[str]:
    """Check that a broker holds a partition at most once, and that a replica leads."""
    for change in proposal.changes:
        pid = proposal.snapshot.id(change.row)
        if len(set(change.replicas)) != len(change.replicas):
            yield f"{pid} would lie twice on a broker: {change.replicas}"
        if change.leader not in change.replicas:
            yield f"{pid} would be led by broker {change.leader}, which holds no replica of it"


def eligible_brokers(proposal: Proposal) -> Iterator[str]:
    """Check that new replicas and leaders go only to brokers that may take new load."""
    snapshot = proposal.snapshot
    for change in proposal.changes:
        taking = set(change.replicas) - set(snapshot.replicas(change.row))
        if change.leader != snapshot.partitions.leader[change.row]:
            taking.add(change.leader)
        for broker in sorted(taking):
            known = snapshot.broker.get(broker)
            if known is None or known.state not in TAKING:
                state = known.state.words if known else "unknown"
                yield f"{snapshot.id(change.row)} would go to broker {broker}, which is {state}"


def drained_brokers_empty(proposal: Proposal) -> Iterator[str]:
    """Check that draining and dead brokers end with nothing that can be moved.

    A partition without a leader has nobody to copy it from: where its only broker
    died it stays, and must not keep all others from being balanced. So do partitions
    that the goals defer to a later plan.
    """
    stranded = _stranded(proposal)
    for broker in proposal.snapshot.header.brokers:
        left = proposal.replicas_after[broker.id] - stranded[broker.id]
        if broker.state in LEAVING and left > 0:
            kept = count_text(left, "replica")
            yield f"broker {broker.id} is {broker.state} and would keep {kept}"


def failed_dirs_emptied(proposal: Proposal) -> Iterator[str]:
    """Check that replicas in failed log directories leave their broker, as far as they can.

    Kafka copies nothing into such a replica (KIP-112). Partitions without a leader stay, as on
    dead brokers, and so do those that the goals defer.
    """
    snapshot = proposal.snapshot
    stays = (snapshot.partitions.leader == NO_BROKER) | proposal.deferred
    lost = np.flatnonzero(snapshot.in_failed_dir & ~stays[snapshot.replica_row])
    rows, positions = snapshot.replica_row[lost].tolist(), snapshot.replica_position[lost].tolist()
    for row, at in zip(rows, positions, strict=True):
        broker = snapshot.header.brokers[at].id
        change = proposal.changed.get(row)
        if change is None or broker in change.replicas:
            path = snapshot.log_dirs(row)[broker]
            yield f"{snapshot.id(row)} would stay in {path} of broker {broker}, which has failed"


def _stranded(proposal: Proposal) -> Counter[BrokerId]:
    """Replicas per broker of partitions that cannot move, or not in this plan."""
    replicas = proposal.before
    stays = (proposal.snapshot.partitions.leader == NO_BROKER) | proposal.deferred
    lost = stays[replicas.row]
    counts = np.bincount(replicas.broker[lost], minlength=len(proposal.brokers))
    return Counter(dict(zip(proposal.brokers, counts.tolist(), strict=True)))
