"""Free disk space of target brokers."""

from collections.abc import Iterable, Mapping

from executor.client.cluster_admin import ClusterReads
from executor.schedule.admission import bytes_per_replica
from executor.timing import RunLimits, Timing
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId
from model.plan.plan import Move
from model.snapshot.snapshot import StorageKind


class DiskHeadroom:
    """Free bytes by broker, polled every `disk_look_s` seconds (KIP-827)."""

    def __init__(self, admin: ClusterReads, limits: RunLimits, timing: Timing) -> None:
        self._admin = admin
        self._limits = limits
        self._timing = timing
        self._free: dict[BrokerId, int] = {}
        self._running: dict[PartitionId, Move] = {}
        self._seen_at_s = float("-inf")

    def of(self, moves: Iterable[Move], running: Iterable[Move] = ()) -> Mapping[BrokerId, int]:
        """Return the bytes that each target broker of the moves can still take.

        The reserve is subtracted; brokers that do not report free space are absent.
        Space needed by the `running` moves is not subtracted; space used by moves that
        ran at the last poll and have ended since is.
        """
        now = {move.id: move for move in running}
        ended = [move for pid, move in self._running.items() if pid not in now]
        self._running = now
        for move in ended:
            for broker in set(move.added) & self._free.keys():
                self._free[broker] -= bytes_per_replica(move)
        if ended and not now:
            # A move that does not fit now never will, so poll before saying so.
            self._seen_at_s = float("-inf")
        now_s = self._timing.steady_s()
        if now_s - self._seen_at_s >= self._limits.disk_look_s:
            copying = [m for m in moves if m.storage is not StorageKind.SHARED]
            brokers = {broker for move in copying for broker in move.added}
            self._free = {b: n for b in brokers if (n := self._look(b)) is not None}
            self._seen_at_s = now_s
        return self._free

    def _look(self, broker: BrokerId) -> int | None:
        try:
            dirs = self._admin.log_dirs(broker, ())
        except ClusterUnreachable:
            # Other checks report brokers that do not answer.
            return None
        # Kafka chooses the directory by partition count, not by free space.
        known = [d.usable_bytes for d in dirs if d.usable_bytes is not None]
        return min(known) - self._limits.disk_reserve_bytes if known else None
