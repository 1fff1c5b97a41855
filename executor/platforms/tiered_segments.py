"""Short segments and little local retention, for topics in the tier while a run moves.

Kafka has no call that rolls a segment or takes one off the local disk. Lowered, the
topic's settings do it: `segment.bytes` rolls the active segment on the next append, and
`local.retention.bytes` deletes what is in the tier. What was there before is in the
journal first, so that whoever comes after a crash can restore it. What somebody else
sets meanwhile is theirs, and stays.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from executor.client.cluster_admin import ClusterAdmin
from executor.journal.run_journal import RunJournal
from executor.platforms.tiered_tail import SEGMENTS, Tail, TailReader
from executor.timing import Timing
from model.errors import ClusterUnreachable, ExecutionStopped, PlimsollError
from model.ids import PartitionId, TopicName
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
"""Kafka 4 takes no smaller one."""
_SHARE: Final = 64
"""Segments that the largest log of a topic is to have on its disk: each is an object in
the tier, and about two are copied."""
_WORTH: Final = 32 * 2**20
"""Bytes to copy from which on a topic's settings are changed to save them."""
_LEAST_LOCAL: Final = 1
"""At 0 Kafka rolls and deletes even an active segment to which nothing is appended
(KAFKA-15047), and a log with nothing left on the disk takes no new replica."""

Values = dict[str, str | None]
"""Settings; None where none is set."""


def shorter(tails: Collection[Tail], least_segment: int) -> dict[str, str]:
    """Settings of one topic with which little of these logs has to be copied.

    Empty where that is not worth it. A replica that skips the tier (KIP-1023) does so
    once a segment has left its leader's disk: then all but one may stay there. Else
    everything that is in the tier has to leave.
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
    """What was set for topics, and what was there before; the keys are the same."""

    before: dict[TopicName, Values]
    now: dict[TopicName, dict[str, str]]

    def document(self) -> dict[str, Any]:
        """For the journal."""
        return {"before": dict(self.before), "now": dict(self.now)}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """From the journal."""
        return cls(
            before={TopicName(t): of for t, of in document["before"].items()},
            now={TopicName(t): of for t, of in document["now"].items()},
        )

    def requests(self) -> list[str]:
        """What sets it, as text."""
        return [
            f"IncrementalAlterConfigs topic {topic}: {key} = {value}"
            for topic, values in self.now.items()
            for key, value in values.items()
        ]


class SegmentSettings:
    """Lowers topics' settings, and restores them."""

    def __init__(self, admin: ClusterAdmin, timing: Timing) -> None:
        self._admin = admin
        self._timing = timing

    def settings_for(
        self, tails: Mapping[PartitionId, Tail]
    ) -> dict[TopicName, dict[str, str]]:
        """Settings that make these tails short, of topics where that is worth it."""
        by_topic: dict[TopicName, list[Tail]] = {}
        for pid, tail in sorted(tails.items()):
            by_topic.setdefault(pid.topic, []).append(tail)
        keys = (_LARGEST_BATCH, _POLICY, _COPIES_NO_MORE)
        found = self._admin.topic_configs(list(by_topic), keys) if by_topic else {}
        fetched = self._largest_fetch() if found else 0
        return {
            topic: values
            for topic, configs in found.items()
            if _may_leave_disk(configs)
            and (values := shorter(by_topic[topic], _least_segment(configs, fetched)))
        }

    def plan(
        self, moves: Sequence[Move], held: LoweredSegments | None = None
    ) -> LoweredSegments:
        """What is to be set for these moves, and what is now; nothing changes.

        Topics of what is `held` are taken over as they are.
        """
        found = held or LoweredSegments(before={}, now={})
        new = [
            m
            for m in moves
            if m.added and m.storage is StorageKind.TIERED and m.topic not in found.now
        ]
        now = self.settings_for(TailReader(self._admin, new).read())
        own = self._admin.own_topic_configs(list(now), _KEYS)
        before: dict[TopicName, Values] = {
            t: {key: own.get(t, {}).get(key) for key in values}
            for t, values in now.items()
        }
        return LoweredSegments(before=found.before | before, now=found.now | now)

    def set(self, planned: LoweredSegments) -> None:
        """Set what was planned, and wait until it shows.

        Raises ExecutionStopped where it does not.
        """
        for topic, values in planned.now.items():
            seen, before = self._own(topic, values), planned.before[topic]
            lower = {key: v for key, v in values.items() if seen[key] == before[key]}
            self._admin.alter_topic_configs(topic, lower)
            if not self._shows(topic, lower):
                raise ExecutionStopped(
                    f"topic {topic} does not accept {_text(lower)}; nothing was moved"
                )

    def restore(
        self, held: LoweredSegments, topics: Iterable[TopicName]
    ) -> tuple[dict[TopicName, str], list[str]]:
        """Bring back what topics had before; repeating it does no harm.

        Returns, in words, which could not be restored, and what somebody else has set
        meanwhile, which stays.
        """
        left, theirs = {}, []
        for topic in topics:
            try:
                theirs += self._restore(topic, held.before[topic], held.now[topic])
            except ClusterUnreachable:
                left[topic] = (
                    f"no answer came, so {topic} may keep a lower segment.bytes"
                )
            except ExecutionStopped as exc:
                left[topic] = f"{topic} keeps a lower segment.bytes: {exc}"
        return left, theirs

    def _restore(
        self, topic: TopicName, before: Values, ours: Mapping[str, str]
    ) -> list[str]:
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
        return self._timing.settles(lambda: self._own(topic, values) == values)

    def _own(self, topic: TopicName, keys: Iterable[str]) -> Values:
        found = self._admin.own_topic_configs([topic], list(keys)).get(topic, {})
        return {key: found.get(key) for key in keys}

    def _largest_fetch(self) -> int:
        """Followers append what they fetch at once."""
        return max(
            int(self._admin.broker_configs(b, [_LARGEST_FETCH]).get(_LARGEST_FETCH, 0))
            for b in sorted(self._admin.cluster().alive)
        )


def _may_leave_disk(configs: Mapping[str, str]) -> bool:
    """Compacted logs are not skipped; without copies nothing may leave the disk."""
    compacted = "compact" in configs.get(_POLICY, "")
    return not compacted and configs.get(_COPIES_NO_MORE) != "true"


def _least_segment(configs: Mapping[str, str], fetched: int) -> int:
    """Brokers refuse to append more at once than a segment may hold."""
    return max(_LEAST_SEGMENT, int(configs.get(_LARGEST_BATCH, 0)), fetched)


def _text(values: Mapping[str, str]) -> str:
    return " and ".join(f"{key} = {value}" for key, value in values.items())


class RunSegmentSettings:
    """Short segments for one run, and the journal they stand in."""

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
        self._held = held
        """Settings lowered now, by this run or the one being resumed."""
        self._open: dict[TopicName, set[PartitionId]] = {}
        """Moves that have not ended, by topic."""
        self._theirs: list[str] = []

    @property
    def are_lowered(self) -> bool:
        """Whether the run has lowered settings, and not restored them."""
        return self._held is not None

    def begin(self, moves: Sequence[Move]) -> None:
        """Get the tails of these moves short, if there is consent."""
        for move in moves:
            self._open.setdefault(move.topic, set()).add(move.id)
        planned = self._segments.plan(moves, self._held) if self._consent else None
        if planned is None or not planned.now:
            return
        self._journal.write(JournalEvent.SEGMENTS_LOWERED, **planned.document())
        self._held = planned
        self._segments.set(planned)

    def release(self, move: Move) -> None:
        """One move has ended; with the last of its topic, that is restored."""
        waiting = self._open.get(move.topic, set())
        waiting.discard(move.id)
        if self._held and move.topic in self._held.now and not waiting:
            self._restore(self._held, [move.topic])

    def end(self) -> str:
        """Restore all; what is left or was changed by somebody else, else empty."""
        if self._held is None:
            return ""
        try:
            left = list(self._restore(self._held, list(self._held.now)))
        except PlimsollError as exc:
            left = [f"segment.bytes is still lowered: {exc}"]
        if left:
            remaining = "; ".join([*left, *self._theirs])
            return f"{remaining}; plimsoll cleanup restores the rest"
        self._held = None
        self._journal.write(JournalEvent.SEGMENTS_RESTORED, theirs=self._theirs)
        return "; ".join(self._theirs)

    def _restore(
        self, held: LoweredSegments, topics: Sequence[TopicName]
    ) -> Iterable[str]:
        """The journal keeps them until the end; what is restored shows itself."""
        left, theirs = self._segments.restore(held, topics)
        self._theirs += theirs
        for topic in {*topics} - left.keys():
            del held.before[topic], held.now[topic]
        return left.values()
