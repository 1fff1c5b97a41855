"""Apache Kafka: moves by reassignment, with remote storage used where a topic has it."""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.responses import LogDirView, PartitionResponse, PartitionView
from executor.health import competing_rebalancers
from executor.health.health_rules import BrokenStopRule, broken_for_plan
from executor.platforms import move_progress
from executor.platforms import replica_log_dirs as log_dirs
from executor.platforms.move_progress import ReplicaSteps, dead_target, foreign, offline
from executor.platforms.platform import MoveFinding, MoveStage, ObservedMove
from executor.platforms.remote_tier import RemoteTier
from executor.platforms.tiered_segments import SEGMENT, SegmentReads
from executor.platforms.tiered_tail import (
    SEGMENTS,
    AwaitedTail,
    Tail,
    TailReader,
    TailWait,
    nothing_local,
    wait_for_short_tails,
)
from executor.timing import Timing
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId, TopicName
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.stop_rules import StopRule
from model.units import bytes_text, seconds_text

_NOTHING_LOCAL: Final = (
    "all of its log is in the tier and nothing on its leader's disk, so Kafka lets no "
    "new replica join before the next append (KIP-1023); plan again after that"
)
_log = logging.getLogger("plimsoll.executor")


class ReplicatedReads:
    """What may be asked about topics on the brokers' disks, without changing anything."""

    def __init__(self, reads: ClusterReads) -> None:
        self._reads = reads
        self._steps = ReplicaSteps()

    def check(self, moves: Sequence[Move]) -> None:
        """Accept all moves: Kafka forbids nothing that a plan can contain."""

    def requests(self, move: Move) -> tuple[str, ...]:
        """The directory changes, reassignments, and an election if the leader may change."""
        lists = (move.replicas_before, *move_progress.steps(move))
        changes = log_dirs.requests(move) + tuple(
            f"AlterPartitionReassignments {move.id}: "
            f"{move_progress.text(old)} -> {move_progress.text(new)}"
            for old, new in pairwise(lists)
        )
        if len(move.replicas_after) == 1 or move.leader_after == move.leader_before:
            return changes
        return (*changes, f"ElectLeaders preferred {move.id}: {move.leader_after}")

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """Read reassignments, then metadata, then log directories."""
        return self._seen(moves, moves)

    def placed(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """As `progress`, but with log directories only of moves that name them."""
        return self._seen(moves, [m for m in moves if m.log_dirs_after])

    def _seen(
        self, moves: Sequence[Move], with_bytes: Sequence[Move]
    ) -> Mapping[PartitionId, ObservedMove]:
        found = self._look(moves, with_bytes)
        # A broker may be polled just while it switches to a copied directory.
        unbegun = [m for m in moves if found[m.id].stage is MoveStage.NOT_BEGUN]
        ambiguous = [m for m in unbegun if m.log_dirs_after]
        return found | self._look(ambiguous, ambiguous) if ambiguous else found

    def _look(
        self, moves: Sequence[Move], with_bytes: Sequence[Move]
    ) -> dict[PartitionId, ObservedMove]:
        listed = self._reads.reassignments()
        views = self._reads.partitions([m.id for m in moves])
        seen = self._log_dirs(with_bytes, views)
        found = {}
        for move in moves:
            view = views.get(move.id)
            self._steps.see(move, view, listed.get(move.id))
            now = move_progress.progress_of(move, view, listed.get(move.id))
            found[move.id] = replace(
                log_dirs.progress_of(move, now, seen),
                bytes_copied=log_dirs.bytes_copied(move, view, seen),
                bytes_left=log_dirs.bytes_left(move, view, seen),
                bytes_inside_brokers=log_dirs.bytes_inside_brokers(move, seen),
            )
        return found

    def health(self, moves: Sequence[Move], planned: Sequence[Move]) -> BrokenStopRule | None:
        """Check that targets are alive, partitions led, and nobody else moves partitions."""
        views = self._reads.partitions([m.id for m in moves])
        return (
            broken_for_plan(StopRule.BROKER_LOST, dead_target(moves, self._reads.cluster().alive))
            or broken_for_plan(StopRule.OFFLINE, offline(moves, views))
            or broken_for_plan(StopRule.FOREIGN, foreign(planned, self._reads.reassignments()))
        )

    def _log_dirs(
        self, moves: Sequence[Move], views: Mapping[PartitionId, PartitionView]
    ) -> dict[BrokerId, Sequence[LogDirView]]:
        """Log directories of leaders, added replicas and brokers that change directories."""
        offline = {b for view in views.values() for b in view.offline}
        by_broker: dict[BrokerId, list[PartitionId]] = {}
        for move in (m for m in moves if m.id in views):
            view = views[move.id]
            held = {*view.replicas}
            if not move.log_dirs_after:
                held &= {view.leader, *move.added} if move.added else set()
            for broker in held - offline:
                # A dead broker would delay the whole poll by its time-out.
                by_broker.setdefault(broker, []).append(move.id)
        return {broker: self._log_dirs_of(broker, ids) for broker, ids in by_broker.items()}

    def _log_dirs_of(self, broker: BrokerId, ids: Sequence[PartitionId]) -> Sequence[LogDirView]:
        try:
            return self._reads.log_dirs(broker, ids)
        except ClusterUnreachable as exc:
            # Metadata show whether the move continues; the next poll may show the rest.
            _log.debug(
                "log directories of broker %s are unknown: %s",
                broker,
                exc,
                extra=named(LogEvent.RUN_UNANSWERED),
            )
            return ()


class ReplicatedKafka(ReplicatedReads):
    """Topics on the brokers' disks, whose logs are copied completely (KIP-455, KIP-460).

    The replica list changes first; where another replica is to lead, a preferred leader
    election follows, which Kafka's own leader balancing then does not undo.
    """

    def __init__(self, admin: ClusterAdmin) -> None:
        super().__init__(admin)
        self._admin = admin

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, MoveFinding]:
        """Prepare nothing: these moves cannot be made cheaper."""
        del stop
        return {move.id: MoveFinding() for move in moves}

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Assign directories at the brokers, then request the next replica list of each.

        A replica that is created before its broker knows its directory would have to be
        copied again.
        """
        failed = log_dirs.assign_dirs(self._admin, moves)
        several = [m.id for m in moves if len(m.added) > 1 or m.resizes or m.log_dirs_after]
        views = self._admin.partitions(several) if several else {}
        for move in moves:
            self._steps.see(move, views.get(move.id), None)
        steps = {m.id: self._steps.next(m) for m in moves}
        failed |= _refused_removals(steps, views)
        lists = {p: step for p, step in steps.items() if step and p not in failed}
        answers = dict.fromkeys(steps, PartitionResponse.accepted()) | failed
        # One request either allows another replication factor or refuses it (KIP-860).
        for resizes in (False, True):
            mine = {m.id: lists[m.id] for m in moves if m.id in lists and m.resizes is resizes}
            if mine:
                answers |= competing_rebalancers.reassign(self._admin, mine, resizes=resizes)
        return answers

    def cancel(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Cancel the reassignments that are ours, then restore the previous list order."""
        listed = self._admin.reassignments()
        ours = [m for m in moves if m.id in listed]
        ours = [m for m in ours if move_progress.is_step(m, listed[m.id])]
        answers = dict.fromkeys((m.id for m in moves), PartitionResponse.unknown())
        if ours:
            answers |= self._admin.reassign({m.id: None for m in ours})
        lists = {m.id: move_progress.step_before(m, listed[m.id]) for m in ours}
        lists = {p: to for p, to in lists.items() if answers[p] == PartitionResponse.accepted()}
        others = self._admin.partitions([m.id for m in moves if m not in ours])
        for move in (m for m in moves if m.id in others):
            if to := move_progress.in_order(move, others[move.id]):
                lists[move.id] = to
        if lists:
            self._admin.reassign(lists)
        return answers

    def finish(self, moves: Sequence[Move]) -> None:
        """Request preferred leader elections, never unclean ones."""
        self._admin.elect_preferred([m.id for m in moves])

    def after(self, move: Move) -> None:
        """Do nothing: the controller lists what remains to be done."""

    def noted(self) -> Mapping[PartitionId, MoveFinding]:
        """Return nothing."""
        return {}


def _refused_removals(
    steps: Mapping[PartitionId, tuple[BrokerId, ...] | None],
    views: Mapping[PartitionId, PartitionView],
) -> dict[PartitionId, PartitionResponse]:
    """Refusals of steps that would leave a replica that is not in sync in place of another."""
    refused = {}
    for pid, view in views.items():
        target = steps.get(pid)
        if target and (behind := move_progress.out_of_sync(view, target)):
            reason = (
                f"broker {behind[0]}, whose replica of {pid} is to stay, is not in sync; "
                "plan again once it is"
            )
            refused[pid] = PartitionResponse.refused(reason)
    return refused


class TieredKafka(ReplicatedKafka):
    """Topics with remote storage: only the tail of the log is copied.

    `prepare` waits until the log after the last tiered offset is short (KIP-405, KIP-1023), and
    verifies the segments through S3 where it can. `lowers_segments`: whether the run has lowered
    segment.bytes, which takes brokers a while to apply.
    """

    def __init__(
        self,
        admin: ClusterAdmin,
        *,
        timing: Timing,
        wait_s: float,
        tier: RemoteTier | None,
        lowers_segments: bool = False,
    ) -> None:
        super().__init__(admin)
        self._timing = timing
        self._wait_s = wait_s
        self._tier = tier
        self._lowers_segments = lowers_segments

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, MoveFinding]:
        """Wait for short tails; a move whose tail stays long gets a note."""
        copying = [move for move in moves if move.added]
        reader = TailReader(self._admin, copying)
        patience = (
            TailWait.with_brokers(self._admin, copying, self._wait_s)
            if self._lowers_segments
            else TailWait(wait_s=self._wait_s)
        )
        waited = wait_for_short_tails(reader, patience, self._timing, stop)
        offers = self._offers({pid: found.tail for pid, found in waited.items()})
        return {
            move.id: self._prepared(move, waited[move.id], offers.get(move.topic))
            if move.id in waited
            else MoveFinding()
            for move in moves
        }

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """As for other topics, but refuse moves whose new replica would not join."""
        # Right after a segment is rolled, nothing may be local for a moment.
        if self._timing.settles(lambda: not nothing_local(self._admin, moves)):
            return super().start(moves)
        refused = nothing_local(self._admin, moves)
        answers = dict.fromkeys(refused, PartitionResponse.refused(_NOTHING_LOCAL))
        return {**answers, **super().start([m for m in moves if m.id not in refused])}

    def _offers(self, tails: Mapping[PartitionId, Tail]) -> dict[TopicName, int]:
        """Bytes that moves of each topic would copy with a lower segment.bytes."""
        if self._lowers_segments:
            return {}
        settings = SegmentReads(self._admin).settings_for(tails)
        segments = {p.topic: t.retention.segment_bytes for p, t in tails.items()}
        return {
            topic: SEGMENTS * int(values.get(SEGMENT, segments[topic]))
            for topic, values in settings.items()
        }

    def _prepared(self, move: Move, waited: AwaitedTail, offer: int | None) -> MoveFinding:
        tail = waited.tail
        notes = [_what_is_copied(waited)]
        if offer is not None and offer < tail.bytes_to_copy:
            notes.append(
                f"with --lower-segment-bytes about {bytes_text(offer)}, while records come"
            )
        detail = {"bytes_to_copy": tail.bytes_to_copy, "waited_s": waited.seconds}
        if waited.seconds:
            what = "ready after" if tail.is_short else "waited for"
            notes.append(f"{what} {seconds_text(waited.seconds)}")
        seen = self._tier.listing(move.id, move.topic_id) if self._tier else None
        if seen is not None:
            notes.append(seen.note)
            detail |= seen.detail
        if tail.last_tiered >= 0 and not (seen and seen.detail["tier_segments"]):
            notes.append(
                "only the leader reports that the tier has it up to offset "
                f"{tail.last_tiered} (ListOffsets -5)"
            )
        return MoveFinding(note="; ".join(notes), detail=detail)


def _what_is_copied(waited: AwaitedTail) -> str:
    tail = waited.tail
    size = bytes_text(tail.bytes_to_copy)
    if tail.is_short:
        return f"about {size} to copy"
    what = f"about {size}" if tail.skips else f"all {size} on the local disk"
    return f"{what} are copied: {waited.why_long}"
