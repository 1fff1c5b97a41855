"""Produce rates, measured by the growth of leaders' logs."""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from executor.client.cluster_admin import ClusterAdmin, OffsetKind, local_bytes
from executor.client.responses import PartitionView
from executor.timing import Timing
from model.errors import ClusterUnreachable
from model.ids import BrokerId, PartitionId

_SPAN_S: Final = 2.0
"""Seconds between two polls where there was none before."""
_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True)
class _Log:
    """A leader's log of one partition at one moment."""

    at_s: float
    size: int
    first: int
    """First offset on the leader's disk."""
    end: int

    def rate_since(self, before: "_Log") -> float:
        """Bytes per second appended since an earlier poll.

        Retention hides growth in bytes, and compaction makes records look small, so the
        larger of the growth in bytes and in records of mean size counts.
        """
        records = self.end - self.first
        each = self.size / records if records > 0 else 0.0
        grown = (self.size - before.size, each * (self.end - before.end), 0.0)
        return max(grown) / max(self.at_s - before.at_s, 1e-3)


class ProduceRates:
    """Polls leaders' logs, and derives the produce rate of each partition. One thread uses it."""

    def __init__(self, admin: ClusterAdmin, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing
        self._seen: dict[tuple[PartitionId, BrokerId], _Log] = {}
        self.written: dict[PartitionId, float] = {}
        """Bytes per second from producers, of partitions seen at least twice."""

    def measure(self, views: Iterable[PartitionView], *, fresh: bool = False) -> None:
        """Poll the leaders; twice, 2 s apart, on the first call or if `fresh`.

        Partitions whose leader does not answer keep their previous rates.
        """
        by_leader: dict[BrokerId, list[PartitionId]] = {}
        for view in views:
            if view.is_led:
                by_leader.setdefault(view.leader, []).append(view.id)
        if fresh or not self._seen:
            self._seen = {}
            self._look(by_leader.items())
            self._timing.pause(_SPAN_S)
        self._look(by_leader.items())

    def _look(self, led: Iterable[tuple[BrokerId, Sequence[PartitionId]]]) -> None:
        seen = {}
        for leader, ids in led:
            for pid, log in self._logs(leader, ids).items():
                seen[pid, leader] = log
                if before := self._seen.get((pid, leader)):
                    self.written[pid] = log.rate_since(before)
        self._seen = seen

    def _logs(self, leader: BrokerId, ids: Sequence[PartitionId]) -> dict[PartitionId, _Log]:
        try:
            at_s = self._timing.steady_s()
            ends = self._admin.offsets(leader, ids, OffsetKind.LATEST)
            sizes = local_bytes(self._admin, leader, ids)
            firsts = self._admin.offsets(leader, ids, OffsetKind.EARLIEST_LOCAL)
        except ClusterUnreachable as exc:
            _log.debug("the produce rate at broker %s is unknown: %s", leader, exc)
            return {}
        known = set(ends).intersection(sizes, firsts)
        return {p: _Log(at_s, sizes[p], firsts[p], ends[p]) for p in known}
