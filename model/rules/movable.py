"""Which partitions may be moved at all, and not back within the return window."""

from collections.abc import Iterator

from model.goals.goals import Cooldown
from model.ids import NO_BROKER
from model.plan.proposal import Change, Proposal
from model.snapshot.snapshot import RecentMove


def movable(proposal: Proposal) -> Iterator[str]:
    """Check that nothing moves that is internal, excluded, or without a leader or a needed load.

    Nor what `Goals.stay` and `Goals.deferred` name. Forced rows, those whose replication factor
    changes, and those in a directory that is emptied may move, unless they have no leader.
    On shared storage internal topics may move; they are moved last. The order of replicas may
    change everywhere: that moves nothing.
    """
    for change in proposal.changes:
        if _orders_only(proposal, change):
            continue
        if reason := proposal.why_fixed(change.row):
            yield f"{proposal.snapshot.id(change.row)} stays: {reason}"


def _orders_only(proposal: Proposal, change: Change) -> bool:
    """Whether replicas, leader and log directories stay, and only another replica is preferred."""
    snapshot = proposal.snapshot
    leads = change.leader == snapshot.partitions.leader[change.row] != NO_BROKER
    same = {*change.replicas} == {*snapshot.replicas(change.row)}
    return bool(leads and same and not change.log_dirs)


def cooled_down(proposal: Proposal) -> Iterator[str]:
    """Check that a partition rests for `rest_s` after a move, unless it is forced out.

    Neither a cooldown nor a return window holds back a change of the replication factor.
    """
    for change in proposal.changes:
        row = change.row
        if proposal.forced.rows[row] or proposal.resized[row] or proposal.leaves_dir[row]:
            continue
        rest = _cooldown(proposal, change.row).rest_s
        for move, age_s in _moves(proposal, change.row):
            if age_s < rest:
                moved = f"{move.topic}-{move.partition} moved {age_s:.0f} s ago"
                yield f"{moved} and rests for {rest:.0f} s"


def no_return(proposal: Proposal) -> Iterator[str]:
    """Check that nothing returns to a broker within `return_window_s` of leaving it.

    Neither a replica, nor, unless the row is forced, the leadership alone. Ages are counted up to
    the time of the snapshot.
    """
    for change in proposal.changes:
        if proposal.resized[change.row]:
            continue
        window = _cooldown(proposal, change.row).return_window_s
        new = set(change.replicas) - set(proposal.snapshot.replicas(change.row))
        for move, age_s in _moves(proposal, change.row):
            if age_s >= window:
                continue
            name = f"{move.topic}-{move.partition}"
            for broker in sorted(new & set(move.left)):
                left = f"{name} left broker {broker} {age_s:.0f} s ago"
                yield f"{left} and may not return for {window:.0f} s"
            if move.leader_left == change.leader and _may_not_pass(proposal, change):
                led = f"{name} was led by broker {change.leader} until {age_s:.0f} s ago"
                yield f"{led} and may not be again for {window:.0f} s"


def _may_not_pass(proposal: Proposal, change: Change) -> bool:
    """Whether a change passes on leadership that it need not pass on."""
    led = int(proposal.snapshot.partitions.leader[change.row])
    return change.leader != led and not proposal.forced.rows[change.row]


def _cooldown(proposal: Proposal, row: int) -> Cooldown:
    topic = proposal.snapshot.partitions.topic[row]
    storage = proposal.snapshot.header.topics[int(topic)].storage
    return proposal.goals.rest_of(storage)


def _moves(proposal: Proposal, row: int) -> list[tuple[RecentMove, float]]:
    return proposal.recent.get(proposal.snapshot.id(row), [])
