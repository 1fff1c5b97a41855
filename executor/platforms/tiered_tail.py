"""The bytes that a move of a tiered partition copies, and the wait until they are few.

A new replica starts after the last tiered offset (KIP-1023), but only once the leader
has deleted a tiered segment from its own disk; otherwise it copies all local bytes.
"""

import logging
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from executor.client.cluster_admin import ClusterReads, OffsetKind, local_bytes
from executor.client.responses import by_leader
from executor.timing import Timing
from model.ids import BrokerId, PartitionId, TopicName
from model.log_events import LogEvent, named
from model.plan.plan import Move
from model.units import count_text, seconds_text

SEGMENTS: Final = 2
"""Segments in a short tail: the active one, and one being uploaded."""
_IDLE_S: Final = 5.0
"""Seconds without change after which waiting for a log is given up."""
_PAUSE_S: Final = 0.25
_WARN_S: Final = 60.0
"""Seconds of waiting above which a warning is logged."""
_UPLOADS_EVERY: Final = "remote.log.manager.task.interval.ms"
_DELETES_EVERY: Final = "log.retention.check.interval.ms"
_UNLIMITED: Final = -1
_SAME_AS_TOTAL: Final = -2
_SKIPS_TIERED: Final = "follower.fetch.last.tiered.offset.enable"
_TOPIC_KEYS: Final = (
    "segment.bytes",
    "retention.bytes",
    "retention.ms",
    "local.retention.bytes",
    "local.retention.ms",
)

_log = logging.getLogger("plimsoll.executor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How a tiered topic's segments are rolled and deleted locally."""

    segment_bytes: int
    local_bytes: int
    """-1 keeps everything."""
    local_ms: int
    """-1 keeps everything."""
    skips_tiered: bool
    """Whether new replicas skip tiered data (KIP-1023)."""

    @classmethod
    def of(cls, configs: Mapping[str, str], *, skips_tiered: bool) -> "Retention":
        """Read a topic's effective settings."""

        def local(unit: str) -> int:
            value = int(configs[f"local.retention.{unit}"])
            total = int(configs[f"retention.{unit}"])
            return total if value == _SAME_AS_TOTAL else value

        return cls(
            segment_bytes=int(configs["segment.bytes"]),
            local_bytes=local("bytes"),
            local_ms=local("ms"),
            skips_tiered=skips_tiered,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tail:
    """A tiered partition's log at one moment, as its leader reports it."""

    first: int
    """First offset of the whole log."""
    first_local: int
    """First offset on the leader's disk."""
    last_tiered: int
    """Last offset in the tier, -1 for none."""
    end: int
    """The offset after the last one."""
    local_bytes: int
    """On the leader's disk."""
    retention: Retention

    @property
    def bytes_to_copy(self) -> int:
        """Bytes that a new replica fetches, estimated by record count if only a part."""
        if not self.skips:
            return self.local_bytes
        local = self.end - self.first_local
        rest = self.end - max(self.last_tiered + 1, self.first_local)
        return self.local_bytes * rest // local if local > 0 else 0

    @property
    def is_short(self) -> bool:
        """Whether the move copies at most about two segments."""
        return self.bytes_to_copy <= SEGMENTS * self.retention.segment_bytes

    def may_get_short(self, within_s: float) -> bool:
        """Whether waiting `within_s` seconds helps: the tail is long, and segments will leave."""
        return not self.is_short and (self.skips or not self._stays_local(within_s))

    @property
    def why_long(self) -> str:
        """Why the tail is not short, in words."""
        if not self.skips and self._stays_local(0):
            return "its local retention keeps every segment"
        if self.last_tiered < 0:
            return "no segment is in the remote tier"
        return "its segments do not reach the remote tier fast enough"

    @property
    def skips(self) -> bool:
        """Whether a new replica skips tiered data."""
        return self.retention.skips_tiered and self.first_local > self.first

    def _stays_local(self, within_s: float) -> bool:
        limit = self.retention
        by_bytes = limit.local_bytes == _UNLIMITED
        by_bytes |= self.local_bytes <= limit.local_bytes
        by_age = limit.local_ms == _UNLIMITED or limit.local_ms > 1000 * within_s
        return by_bytes and by_age


@dataclass(frozen=True, slots=True, kw_only=True)
class TailWait:
    """How long to wait for short tails, in seconds."""

    wait_s: float
    """In addition to the brokers' check intervals."""
    upload_s: float = 0.0
    """Interval at which brokers upload segments."""
    delete_s: float = 0.0
    """Interval at which brokers roll and delete segments."""

    @classmethod
    def with_brokers(cls, admin: ClusterReads, moves: Sequence[Move], wait_s: float) -> "TailWait":
        """Wait as long as brokers need to apply a lower segment.bytes."""
        if not moves:
            return cls(wait_s=wait_s)
        keys = (_UPLOADS_EVERY, _DELETES_EVERY)
        found = admin.broker_configs(moves[0].leader_before, keys)
        upload_s, delete_s = (int(found.get(key, 0)) / 1000 for key in keys)
        return cls(wait_s=wait_s, upload_s=upload_s, delete_s=delete_s)

    @property
    def most_s(self) -> float:
        """The longest wait: one interval each to roll, upload and delete a segment."""
        return self.wait_s + self.upload_s + 2 * self.delete_s

    def idle_s(self, tail: Tail) -> float:
        """Seconds without change after which waiting ends."""
        return _IDLE_S + self.upload_s + (0.0 if tail.skips else self.delete_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class AwaitedTail:
    """A tail after the wait."""

    tail: Tail
    seconds: float
    """Seconds waited; 0 if it was short at once."""
    changed_at_s: float
    """When records or segments last changed, by the steady clock."""
    grew: bool = False
    """Whether records arrived during the wait."""

    @property
    def why_long(self) -> str:
        """Why the tail is not short, in words."""
        if self.seconds and not self.grew:
            return "its log gets no records, and only an append rolls a segment"
        return self.tail.why_long

    def next(self, tail: Tail, now_s: float, begun_s: float) -> "AwaitedTail":
        """Return the state after one more poll."""
        old = self.tail
        stands = (old.end, old.last_tiered, old.first_local) == (
            tail.end,
            tail.last_tiered,
            tail.first_local,
        )
        return AwaitedTail(
            tail=tail,
            seconds=round(now_s - begun_s, 3),
            changed_at_s=self.changed_at_s if stands else now_s,
            grew=self.grew or tail.end > old.end,
        )


class TailReader:
    """Reads the tails of partitions from their leaders. Calls raise as the cluster's do."""

    def __init__(self, admin: ClusterReads, moves: Sequence[Move]) -> None:
        self._admin = admin
        self._ids = tuple(move.id for move in moves)
        self._retention = _retentions(admin, moves)

    def read(self, ids: Iterable[PartitionId] | None = None) -> dict[PartitionId, Tail]:
        """Return the current tails; partitions whose leader does not answer are absent."""
        views = self._admin.partitions(self._ids if ids is None else tuple(ids))
        tails: dict[PartitionId, Tail] = {}
        for leader, led in by_leader(views.values()).items():
            tails |= self._read_from(leader, led)
        return tails

    def _read_from(self, leader: BrokerId, ids: Sequence[PartitionId]) -> dict[PartitionId, Tail]:
        offsets = {k: self._admin.offsets(leader, ids, k) for k in OffsetKind}
        sizes = local_bytes(self._admin, leader, ids)
        tiered = offsets.pop(OffsetKind.LATEST_TIERED)
        known = set(sizes).intersection(*offsets.values())
        return {
            pid: Tail(
                first=offsets[OffsetKind.EARLIEST][pid],
                first_local=offsets[OffsetKind.EARLIEST_LOCAL][pid],
                # Before Kafka 3.9, brokers tell only what has left the disk (KIP-1005).
                last_tiered=tiered.get(pid, offsets[OffsetKind.EARLIEST_LOCAL][pid] - 1),
                end=offsets[OffsetKind.LATEST][pid],
                local_bytes=sizes[pid],
                retention=self._retention[pid.topic],
            )
            for pid in ids
            if pid in known
        }


def wait_for_short_tails(
    reader: TailReader, patience: TailWait, timing: Timing, stop: threading.Event
) -> dict[PartitionId, AwaitedTail]:
    """Poll until every tail is short, or further waiting is pointless."""
    begun_s = timing.steady_s()
    found = {
        pid: AwaitedTail(tail=tail, seconds=0.0, changed_at_s=begun_s)
        for pid, tail in reader.read().items()
    }

    def open_ids() -> list[PartitionId]:
        now_s = timing.steady_s()
        left_s = patience.most_s - (now_s - begun_s)
        if stop.is_set() or left_s <= 0:
            return []
        return [
            pid
            for pid, waited in found.items()
            if waited.tail.may_get_short(left_s)
            and now_s - waited.changed_at_s < patience.idle_s(waited.tail)
        ]

    if patience.most_s > _WARN_S and (ids := open_ids()):
        _log.warning(
            "waiting up to %s for short tails of %s; stopping the run ends the wait",
            seconds_text(patience.most_s),
            count_text(len(ids), "partition"),
            extra=named(LogEvent.RUN_SLOW),
        )
    while ids := open_ids():
        timing.pause(_PAUSE_S)
        for pid, tail in reader.read(ids).items():
            found[pid] = found[pid].next(tail, timing.steady_s(), begun_s)
    return found


def nothing_local(admin: ClusterReads, moves: Iterable[Move]) -> set[PartitionId]:
    """Return the partitions with no local data, whose new replica would wait for an append.

    A new replica that skips tiered data asks for the first offset that is not uploaded yet
    (KIP-1023). Without one it gets no answer and never gets in sync (seen with Kafka 4.3.1).
    """
    led: dict[BrokerId, list[PartitionId]] = {}
    for move in moves:
        if move.added and _skips(admin, move.added[0]):
            led.setdefault(move.leader_before, []).append(move.id)
    found: set[PartitionId] = set()
    for leader, ids in led.items():
        first, local, end = (
            admin.offsets(leader, ids, kind)
            for kind in (OffsetKind.EARLIEST, OffsetKind.EARLIEST_LOCAL, OffsetKind.LATEST)
        )
        known = local.keys() & end.keys() & first.keys()
        found |= {pid for pid in known if first[pid] < local[pid] == end[pid]}
    return found


def _skips(admin: ClusterReads, broker: BrokerId) -> bool:
    found = admin.broker_configs(broker, [_SKIPS_TIERED])
    return found.get(_SKIPS_TIERED) == "true"


def _retentions(admin: ClusterReads, moves: Sequence[Move]) -> dict[TopicName, Retention]:
    if not moves:
        return {}
    skips = _skips(admin, next(broker for move in moves for broker in move.added))
    configs = admin.topic_configs(sorted({m.topic for m in moves}), _TOPIC_KEYS)
    return {topic: Retention.of(values, skips_tiered=skips) for topic, values in configs.items()}
