"""Lower segment.bytes and local retention of tiered topics while a run moves them.

Kafka has no call that rolls a segment or deletes one from the local disk, but lower settings do it:
`segment.bytes` rolls the active segment on the next append, and `local.retention.bytes` deletes
segments that are in the tier. Previous values are journalled first, so that a later process can
restore them after a crash. Settings changed by someone else in the meantime are kept and reported.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.journal.run_journal import RunJournal
from executor.platforms.tiered_tail import SEGMENTS, Tail, TailReader
from executor.timing import Timing
from model.errors import ClusterUnreachable, ExecutionStopped, PlimsollError
from model.ids import BrokerId, PartitionId, TopicName
from model.plan.plan import Move
from model.run import JournalEvent
from model.snapshot.snapshot import StorageKind

SEGMENT: Final = "segment.bytes"
LOCAL: Final = "local.retention.bytes"
_KEYS: Final = (SEGMENT, LOCAL)
_LARGEST_BATCH: Final = "max.message.bytes"
_LARGEST_FETCH: Final = "replica.fetch.max.bytes"
_POLICY: Final = "cleanup.policy"
_COPIES_NO_MORE: Final = "remote.log.copy.disable"
_LEAST_SEGMENT: Final = 2**20
"""The minimum in Kafka 4."""
_SHARE: Final = 64
"""Number of local segments for the largest log of a topic: each is an object in the
tier, and about two are copied."""
_WORTH: Final = 32 * 2**20
"""Bytes to copy above which a topic's settings are changed."""
_LEAST_LOCAL: Final = 1
"""With 0, Kafka rolls and deletes even an active segment to which nothing is
appended (KAFKA-15047), and a log with nothing on the disk accepts no new replica."""

Values = dict[str, str | None]
"""Settings by name; None where there is no override."""


def shorter(tails: Collection[Tail], least_segment: int) -> dict[str, str]:
    """Return settings of one topic that make these tails short; empty if not worthwhile.

    A replica that skips tiered data (KIP-1023) does so once one segment has left its
    leader's disk, so all others may stay there. Otherwise all tiered data has to leave.
    """
    limit = next(iter(tails)).retention
    largest = max(tail.local_bytes for tail in tails)
    segment = min(limit.segment_bytes, max(least_segment, largest // _SHARE))
    long = [t for t in tails if t.bytes_to_copy > max(_WORTH, SEGMENTS * segment)]
    if not long:
        return {}
    values = {SEGMENT: segment} if segment < limit.segment_bytes else {}
    if whole := [tail.local_bytes for tail in long if not tail.skips]:
        keep = min(whole) - limit.segment_bytes if limit.skips_tiered else 0
        keep = max(_LEAST_LOCAL, keep)
        if limit.local_bytes < 0 or keep < limit.local_bytes:
            values[LOCAL] = keep
    return {key: str(value) for key, value in values.items()}


@dataclass(slots=True, kw_only=True)
class LoweredSegments:
    """Topic settings of a run and their previous values, with the same keys."""

    before: dict[TopicName, Values]
    now: dict[TopicName, dict[str, str]]

    def document(self) -> dict[str, Any]:
        """The journal's form."""
        return {"before": dict(self.before), "now": dict(self.now)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """Read the journal's form."""
        return cls(
            before={TopicName(t): of for t, of in document["before"].items()},
            now={TopicName(t): of for t, of in document["now"].items()},
        )

    def requests(self) -> list[str]:
        """The requests that set them, as text."""
        return [
            f"IncrementalAlterConfigs topic {topic}: {key} = {value}"
            for topic, values in self.now.items()
            for key, value in values.items()
        ]


class SegmentReads:
    """Which settings of topics to lower, without changing any. Calls raise as the cluster's do."""

    def __init__(self, reads: ClusterReads) -> None:
        self._reads = reads

    def settings_for(self, tails: Mapping[PartitionId, Tail]) -> dict[TopicName, dict[str, str]]:
        """Settings that make these tails short, by topic where that is worthwhile."""
        by_topic: dict[TopicName, list[Tail]] = {}
        for pid, tail in sorted(tails.items()):
            by_topic.setdefault(pid.topic, []).append(tail)
        keys = (_LARGEST_BATCH, _POLICY, _COPIES_NO_MORE)
        found = self._reads.topic_configs(list(by_topic), keys) if by_topic else {}
        fetched = self._largest_fetch() if found else 0
        return {
            topic: values
            for topic, configs in found.items()
            if _may_leave_disk(configs)
            and (values := shorter(by_topic[topic], _least_segment(configs, fetched)))
        }

    def plan(self, moves: Sequence[Move], held: LoweredSegments | None = None) -> LoweredSegments:
        """Return the settings for these moves, with their previous values.

        Topics in `held` are kept as they are. Changes nothing.
        """
        found = held or LoweredSegments(before={}, now={})
        new = [
            m
            for m in moves
            if m.added and m.storage is StorageKind.TIERED and m.topic not in found.now
        ]
        now = self.settings_for(TailReader(self._reads, new).read())
        own = self._reads.own_topic_configs(list(now), _KEYS)
        before: dict[TopicName, Values] = {
            t: {key: own.get(t, {}).get(key) for key in values} for t, values in now.items()
        }
        return LoweredSegments(before=found.before | before, now=found.now | now)

    def _own(self, topic: TopicName, keys: Iterable[str], broker: BrokerId | None = None) -> Values:
        found = self._reads.own_topic_configs([topic], list(keys), broker).get(topic, {})
        return {key: found.get(key) for key in keys}

    def _largest_fetch(self) -> int:
        """The largest replica fetch, which followers append at once."""
        return max(
            int(self._reads.broker_configs(b, [_LARGEST_FETCH]).get(_LARGEST_FETCH, 0))
            for b in sorted(self._reads.cluster().alive)
        )


class SegmentSettings(SegmentReads):
    """Lowers and restores topics' settings. Calls raise as the cluster's do."""

    def __init__(self, admin: ClusterAdmin, timing: Timing) -> None:
        super().__init__(admin)
        self._admin = admin
        self._timing = timing

    def set(self, planned: LoweredSegments) -> None:
        """Apply the planned settings, and wait until every broker shows them.

        Raises ExecutionStopped where they do not become so.
        """
        for topic, values in planned.now.items():
            seen, before = self._own(topic, values), planned.before[topic]
            lower = {key: v for key, v in values.items() if seen[key] == before[key]}
            self._admin.alter_topic_configs(topic, lower)
            if not self._shows(topic, lower):
                refused = " and ".join(f"{key} = {value}" for key, value in lower.items())
                raise ExecutionStopped(
                    f"topic {topic} does not accept {refused}; nothing was moved"
                )

    def restore(
        self, held: LoweredSegments, topics: Iterable[TopicName]
    ) -> tuple[dict[TopicName, str], list[str]]:
        """Restore the previous settings of topics; this may be repeated.

        Returns what could not be restored, by topic, and what someone else has set in
        the meantime, which stays; both in words.
        """
        left, theirs = {}, []
        for topic in topics:
            try:
                theirs += self._restore(topic, held.before[topic], held.now[topic])
            except ClusterUnreachable:
                left[topic] = f"no answer came, so {topic} may keep a lower segment.bytes"
            except ExecutionStopped as exc:
                left[topic] = f"{topic} keeps a lower segment.bytes: {exc}"
        return left, theirs

    def _restore(self, topic: TopicName, before: Values, ours: Mapping[str, str]) -> list[str]:
        if not self._admin.partitions([PartitionId(topic, 0)]):
            return []
        now = self._own(topic, before)
        changed = {k for k, old in before.items() if now[k] not in (old, ours[k])}
        # Also where the old value shows: a broker may lag behind the controller.
        back = {key: old for key, old in before.items() if key not in changed}
        self._admin.alter_topic_configs(topic, back)
        self._shows(topic, back)
        return [
            f"someone else has set {key} of {topic} to {now[key] or 'its default'} in "
            "the meantime, which stays"
            for key in sorted(changed)
        ]

    def _shows(self, topic: TopicName, values: Mapping[str, str | None]) -> bool:
        """Whether every broker that answers shows these values, after some time.

        A later read may ask any broker, and one that lags would report the previous values.
        """

        def differs(broker: BrokerId) -> bool:
            try:
                return self._own(topic, values, broker) != values
            except ClusterUnreachable:
                return False

        def fits() -> bool:
            return not any(differs(broker) for broker in sorted(self._admin.cluster().alive))

        return self._timing.settles(fits)


def _may_leave_disk(configs: Mapping[str, str]) -> bool:
    """Whether tiered segments may leave the disk: not if compacted, or without uploads."""
    compacted = "compact" in configs.get(_POLICY, "")
    return not compacted and configs.get(_COPIES_NO_MORE) != "true"


def _least_segment(configs: Mapping[str, str], fetched: int) -> int:
    """The minimum segment.bytes: a segment must hold the largest append."""
    return max(_LEAST_SEGMENT, int(configs.get(_LARGEST_BATCH, 0)), fetched)


class RunSegmentSettings:
    """Lower segment settings during one run, journalled before each change.

    `consent`: whether the run may lower them. `held`: what the run being resumed has lowered.
    """

    def __init__(
        self,
        segments: SegmentSettings,
        journal: RunJournal,
        *,
        consent: bool,
        held: LoweredSegments | None = None,
    ) -> None:
        self._segments = segments
        self._journal = journal
        self._consent = consent
        self.held = held
        """Settings lowered now, by this run or the one being resumed."""
        self._open: dict[TopicName, set[PartitionId]] = {}
        """Moves that have not ended, by topic."""
        self._theirs: list[str] = []

    def begin(self, moves: Sequence[Move]) -> None:
        """Lower the settings for these moves, if there is consent."""
        for move in moves:
            self._open.setdefault(move.topic, set()).add(move.id)
        planned = self._segments.plan(moves, self.held) if self._consent else None
        if planned is None or not planned.now:
            return
        self._journal.write(JournalEvent.SEGMENTS_LOWERED, **planned.document())
        self.held = planned
        self._segments.set(planned)

    def release(self, move: Move) -> None:
        """Count a completed move; restore its topic's settings after the topic's last one."""
        waiting = self._open.get(move.topic, set())
        waiting.discard(move.id)
        if self.held and move.topic in self.held.now and not waiting:
            self._restore(self.held, [move.topic])

    def end(self) -> str:
        """Restore all settings; return what is left or not ours, in words, or ""."""
        if self.held is None:
            return ""
        try:
            left = list(self._restore(self.held, list(self.held.now)))
        except PlimsollError as exc:
            left = [f"segment.bytes is still lowered: {exc}"]
        if left:
            remaining = "; ".join([*left, *self._theirs])
            return f"{remaining}; plimsoll cleanup restores the rest"
        self.held = None
        self._journal.write(JournalEvent.SEGMENTS_RESTORED, theirs=self._theirs)
        return "; ".join(self._theirs)

    def _restore(self, held: LoweredSegments, topics: Sequence[TopicName]) -> Iterable[str]:
        """Restore some topics; the journal keeps them until all are restored."""
        left, theirs = self._segments.restore(held, topics)
        self._theirs += theirs
        for topic in {*topics} - left.keys():
            del held.before[topic], held.now[topic]
        return left.values()
