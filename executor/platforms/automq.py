"""AutoMQ: one replica per partition, in object storage, so a move copies nothing.

Verified with AutoMQ 1.7.3. A move hands the partition over: metadata show the target as
the only replica at once, and as the leader once it has opened the partition.
ListPartitionReassignments is always empty, so metadata alone show the progress.
"""

import dataclasses
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from executor.client.cluster_admin import ClusterAdmin, ClusterReads, reassign_in_batches
from executor.client.responses import PartitionResponse
from executor.health.health_rules import BrokenStopRule, broken_for_plan
from executor.platforms import move_progress
from executor.platforms.automq_balancer import NEVER, THRESHOLDS, BalancerReads
from executor.platforms.automq_wal import AutoMQWal, WalUploads
from executor.platforms.move_progress import dead_target, offline
from executor.platforms.platform import MoveFinding, MoveStage, ObservedMove
from executor.timing import Timing
from model.errors import GuardrailRefused
from model.ids import PartitionId
from model.plan.plan import Move
from model.stop_rules import StopRule

_BALANCER_POLL_S: Final = 10.0


class AutoMQReads:
    """What may be asked about partitions in object storage, without changing anything."""

    def __init__(self, reads: ClusterReads, timing: Timing, *, suspend: bool) -> None:
        self._reads = reads
        self._timing = timing
        self._balancer = BalancerReads(reads)
        self._suspend = suspend
        """Whether the run suspends the balancer if it is on."""
        self._balancer_seen_at_s = float("inf")
        """Before the moves are prepared it may still act."""

    def check(self, moves: Sequence[Move]) -> None:
        """Raise GuardrailRefused unless moves have one replica and no other balancer acts."""
        for move in moves:
            if len(move.replicas_after) != 1:
                raise GuardrailRefused(
                    f"The plan puts {move.id} on {move_progress.text(move.replicas_after)}, and "
                    "AutoMQ keeps one replica of a partition. Plan again from this cluster."
                )
        if not self._suspend and (reason := self._balancer.acts()):
            raise GuardrailRefused(
                f"{reason} and would work against the plan. Say --suspend-balancer to have "
                f"{' and '.join(THRESHOLDS)} set to {NEVER} for the run and restored after it; or "
                "set them yourself for the whole cluster (dynamic, in force at once), and on each "
                "broker that has a value of its own."
            )

    def requests(self, move: Move) -> tuple[str, ...]:
        """One reassignment request."""
        return (
            f"AlterPartitionReassignments {move.id}: {move_progress.text(move.replicas_before)} -> "
            f"{move_progress.text(move.replicas_after)}",
        )

    def progress(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """Read metadata: no leader while moving, then the target as leader."""
        views = self._reads.partitions([m.id for m in moves])
        return {m.id: _opening(move_progress.progress_of(m, views.get(m.id), None)) for m in moves}

    def placed(self, moves: Sequence[Move]) -> Mapping[PartitionId, ObservedMove]:
        """As `progress`: metadata show everything."""
        return self.progress(moves)

    def health(self, moves: Sequence[Move], planned: Sequence[Move]) -> BrokenStopRule | None:
        """Check that targets are alive, other partitions led, and the balancer suspended."""
        del planned
        views = self._reads.partitions([m.id for m in moves])
        resting = [m for m in moves if m.id in views and views[m.id].replicas == m.replicas_before]
        return (
            broken_for_plan(StopRule.BROKER_LOST, dead_target(moves, self._reads.cluster().alive))
            or broken_for_plan(StopRule.OFFLINE, offline(resting, views))
            or broken_for_plan(StopRule.FOREIGN, self._balancer_acts())
        )

    def _balancer_acts(self) -> str | None:
        now_s = self._timing.steady_s()
        if now_s - self._balancer_seen_at_s < _BALANCER_POLL_S:
            return None
        self._balancer_seen_at_s = now_s
        return self._balancer.acts()


class AutoMQ(AutoMQReads):
    """Moves single replicas while AutoMQ's own balancer is suspended."""

    def __init__(
        self, admin: ClusterAdmin, timing: Timing, *, suspend: bool, wal: AutoMQWal | None
    ) -> None:
        super().__init__(admin, timing, suspend=suspend)
        self._admin = admin
        self._uploads = WalUploads(wal, timing) if wal else None

    def prepare(
        self, moves: Sequence[Move], stop: threading.Event
    ) -> Mapping[PartitionId, MoveFinding]:
        """Get ready to watch uploads; the move itself uploads what the source still holds."""
        del stop
        self._balancer_seen_at_s = float("-inf")
        if self._uploads is not None:
            self._uploads.prepare()
        return {move.id: MoveFinding() for move in moves}

    def start(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Reassign; the answer comes with the commit, before the target opens the partition."""
        if self._uploads is not None:
            sources = {m.id: m.replicas_before[0] for m in moves}
            self._uploads.begin(self._cluster_id, sources)
        return reassign_in_batches(self._admin, {m.id: m.replicas_after for m in moves})

    def cancel(self, moves: Sequence[Move]) -> Mapping[PartitionId, PartitionResponse]:
        """Refuse: the controller forgets the source at once, so nothing can be cancelled."""
        reason = "AutoMQ cannot cancel moves, so this one was allowed to finish"
        return {move.id: PartitionResponse.refused(reason) for move in moves}

    def finish(self, moves: Sequence[Move]) -> None:
        """Do nothing: AutoMQ elects the leader itself."""

    def after(self, move: Move) -> None:
        """Watch the source upload its log, if the bucket is known."""
        if self._uploads is not None:
            source = move.replicas_before[0]
            self._uploads.look(move.id, self._cluster_id, source)

    def noted(self) -> Mapping[PartitionId, MoveFinding]:
        """Return whether sources have uploaded their logs."""
        return self._uploads.seen() if self._uploads else {}

    @cached_property
    def _cluster_id(self) -> str:
        return self._admin.cluster().cluster_id


def _opening(found: ObservedMove) -> ObservedMove:
    """Ignore the replicas in sync, which AutoMQ shows at once; only the leader counts."""
    match found.stage:
        case MoveStage.ARRIVED:
            return dataclasses.replace(found, stage=MoveStage.MOVING)
        case MoveStage.DONE:
            return dataclasses.replace(found, bytes_copied=0)
    return found
