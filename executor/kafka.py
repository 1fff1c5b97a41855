"""Stock Kafka: reassignments, with the remote tier used where a topic has one."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from executor import authorities, placement
from executor.admin import Admin, local_bytes
from executor.answers import Answer, PartitionView
from executor.dialect import Noted, Prepared, Progress
from executor.tail import TailReader, Waited, wait_for_short_tails
from executor.tier import Tier
from executor.timing import Timing
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId
from model.plan import Move
from model.units import bytes_text, seconds_text

_log = logging.getLogger("plimsoll.executor")


class ReplicatedKafka:
    """Topics on the brokers' disks: a move copies whole logs.

    The list is changed first; where another replica is to lead, a preferred election
    follows, which Kafka's own leader balancing then does not undo.
    """

    def __init__(self, admin: Admin) -> None:
        self._admin = admin

    def check(self, moves: Sequence[Move]) -> None:
        """Kafka forbids nothing that a plan can hold."""

    def requests(self, move: Move) -> tuple[str, ...]:
        """The reassignments, and an election where the leader may have to change."""
        lists = (move.replicas_before, *placement.steps(move))
        changes = tuple(
            f"AlterPartitionReassignments {move.id}: "
            f"{placement.text(old)} -> {placement.text(new)}"
            for old, new in pairwise(lists)
        )
        if not self._needs_election(move):
            return changes
        return (*changes, f"ElectLeaders preferred {move.id}: {move.leader_after}")

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, Prepared]:
        """Nothing makes these moves cheaper."""
        del stop
        return {move.id: Prepared() for move in moves}

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, Answer]:
        """Ask the controller for the next list of each, all at once."""
        several = [m.id for m in moves if len(m.added) > 1]
        views = self._admin.partitions(several) if several else {}
        at = {pid: view.replicas for pid, view in views.items()}
        lists = {m.id: placement.next_step(m, at.get(m.id, ())) for m in moves}
        return authorities.reassign(self._admin, lists)

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, Progress]:
        """What the controller lists, then the metadata, then bytes on the targets."""
        listed = self._admin.reassignments()
        views = self._admin.partitions([m.id for m in moves])
        sizes = self._sizes(moves, views)
        found = {}
        for move in moves:
            now = placement.progress_of(move, views.get(move.id), listed.get(move.id))
            copied, left = _copied(move, views.get(move.id), sizes)
            found[move.id] = replace(now, bytes_copied=copied, bytes_left=left)
        return found

    def finish(self, moves: Sequence[Move]) -> None:
        """Elect the preferred leaders; never uncleanly."""
        self._admin.elect_preferred([m.id for m in moves])

    def health(self, moves: Sequence[Move]) -> str | None:
        """Targets serve, partitions are led, and nobody else moves anything."""
        views = self._admin.partitions([m.id for m in moves])
        return (
            placement.dead_target(moves, self._admin.cluster().alive)
            or placement.offline(moves, views)
            or placement.foreign(moves, self._admin.reassignments())
        )

    def after(self, move: Move) -> None:
        """Nothing: the controller lists what is left to do."""

    def noted(self) -> Mapping[PartitionId, Noted]:
        """Nothing."""
        return {}

    @staticmethod
    def _needs_election(move: Move) -> bool:
        return len(move.replicas_after) > 1 and move.leader_after != move.leader_before

    def _sizes(
        self, moves: Sequence[Move], views: Mapping[PartitionId, PartitionView]
    ) -> "_Sizes":
        """Bytes on leaders and on the replicas added so far, where they can be seen."""
        offline = {b for view in views.values() for b in view.offline}
        by_broker: dict[BrokerId, list[PartitionId]] = {}
        for move in moves:
            if move.added and move.id in views:
                view = views[move.id]
                for broker in {view.leader, *move.added} & {*view.replicas} - offline:
                    # A dead broker would keep the whole look waiting.
                    by_broker.setdefault(broker, []).append(move.id)
        return {
            (pid, broker): size
            for broker, ids in by_broker.items()
            for pid, size in self._sizes_on(broker, ids).items()
        }

    def _sizes_on(
        self, broker: BrokerId, ids: Sequence[PartitionId]
    ) -> dict[PartitionId, int]:
        try:
            return local_bytes(self._admin, broker, ids)
        except ClusterUnreachable as exc:
            # Sizes are for show; whether the move goes on shows in the metadata.
            _log.debug("sizes on broker %s are not known: %s", broker, exc)
            return {}


_Sizes = dict[tuple[PartitionId, BrokerId], int]


def _copied(
    move: Move, view: PartitionView | None, sizes: "_Sizes"
) -> tuple[int | None, int | None]:
    """Bytes on the replicas added so far, and what the last of them lacks."""
    held = () if view is None else [b for b in move.added if b in view.replicas]
    known = [sizes.get((move.id, broker)) for broker in held]
    copied = sum(n for n in known if n is not None) if None not in known else None
    if view is None or None in known:
        return copied, None
    whole = sizes.get((move.id, view.leader))
    behind = [b for b in held if b not in view.in_sync]
    if whole is None or not behind:
        return copied, None
    return copied, max(0, whole - min(sizes[move.id, b] for b in behind))


class TieredKafka(ReplicatedKafka):
    """Topics whose older segments are in the remote tier: only the tail is copied.

    `prepare` waits until what lies after the last tiered offset is short (KIP-405,
    KIP-1023), and looks the segments up through S3 where it can.
    """

    def __init__(
        self, admin: Admin, *, timing: Timing, wait_s: float, tier: Tier | None
    ) -> None:
        super().__init__(admin)
        self._timing = timing
        self._wait_s = wait_s
        self._tier = tier

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, Prepared]:
        """Wait for short tails; what cannot get short goes on with a note."""
        reader = TailReader(self._admin, [move for move in moves if move.added])
        waited = wait_for_short_tails(reader, self._wait_s, self._timing, stop)
        return {
            move.id: self._prepared(move, waited[move.id])
            if move.id in waited
            else Prepared()
            for move in moves
        }

    def _prepared(self, move: Move, waited: Waited) -> Prepared:
        tail = waited.tail
        size = bytes_text(tail.bytes_to_copy)
        if tail.is_short:
            words = [f"about {size} to copy"]
        else:
            words = [f"all {size} on the local disk are copied: {tail.why_long}"]
        detail = {"bytes_to_copy": tail.bytes_to_copy, "waited_s": waited.seconds}
        if waited.seconds:
            words.append(f"ready after {seconds_text(waited.seconds)}")
        if self._tier is not None:
            seen = self._tier.listing(move.id, move.topic_id)
            words.append(seen.words)
            detail |= seen.detail
        return Prepared(note="; ".join(words), detail=detail)
