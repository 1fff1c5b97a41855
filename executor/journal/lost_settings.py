"""Settings that a damaged record may have announced, and where they would be."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from executor.journal.records import JournalContent, JournalDamage
from executor.platforms.automq_balancer import THRESHOLDS
from executor.platforms.tiered_segments import LOCAL, SEGMENT
from executor.throttle.quota import FOLLOWERS, LEADERS, RATES
from model.plan.plan import Plan
from model.run import JournalEvent, JournalRecord, RunState
from model.snapshot.snapshot import StorageKind

_MOST: Final = 20
"""Names listed in one sentence."""
MAY_BE_SET: Final = "may_be_set"
"""Detail of an `ended` record: settings whose records are missing may be in force."""
_TAKES_BACK: Final[Mapping[JournalEvent, JournalEvent]] = {
    JournalEvent.UNTHROTTLED: JournalEvent.THROTTLED,
    JournalEvent.BALANCER_RESTORED: JournalEvent.BALANCER_SUSPENDED,
    JournalEvent.SEGMENTS_RESTORED: JournalEvent.SEGMENTS_LOWERED,
}
_CLEAN: Final = (RunState.DONE, RunState.STOPPED)
"""A run that leaves something set ends as failed."""


def lost_settings(content: JournalContent, plan: Plan) -> tuple[str, ...]:
    """Settings that may be in force because their record is missing, in sentences.

    Losses noted by a repair do not count again. A later record that the setting was
    restored, or that the run ended with nothing left, settles it, unless its process
    was not aware of the missing record. Names come from the plan, or else from the
    intact records, never from a damaged line.
    """
    kinds = _open_kinds(content, [loss for loss in content.damage if loss.loses])
    if not kinds:
        return ()
    lines = listed({loss.line for loss in content.damage if loss.loses})
    return tuple(
        f"A record that is missing (see line {lines}) may have announced {WHAT[kind]}. It "
        f"may still be set: check {where}."
        for kind, where in _places(plan, content.records)
        if kind in kinds
    )


def has_lost_settings(content: JournalContent) -> bool:
    """Whether a missing record, repaired or not, may have announced a setting."""
    return bool(_open_kinds(content, content.losses))


def _open_kinds(content: JournalContent, lost: Iterable[JournalDamage]) -> set[JournalEvent]:
    """Settings that a missing record may have announced and no later record has settled."""
    found: set[JournalEvent] = set()
    set_since: set[JournalEvent] = set()
    losses = sorted(loss.after for loss in lost)
    for intact in content.intact:
        while losses and losses[0] < intact.number:
            losses.pop(0)
            found.update(_TAKES_BACK.values())
            set_since.clear()
        settled = _settled(intact.record)
        # Restoring a later change brings back what it found, which the lost record set.
        found -= settled if is_clean_end(intact.record) else settled - set_since
        set_since = (set_since | {intact.record.event}) - settled
    return found | set(_TAKES_BACK.values() if losses else ())


def is_clean_end(record: JournalRecord) -> bool:
    """Whether the record says that the run has ended with nothing left set."""
    detail = record.detail
    if record.event is not JournalEvent.ENDED or detail.get(MAY_BE_SET):
        return False
    return detail.get("state") in _CLEAN


def _settled(record: JournalRecord) -> set[JournalEvent]:
    if is_clean_end(record):
        return set(_TAKES_BACK.values())
    back = _TAKES_BACK.get(record.event)
    return {back} if back else set()


def _places(plan: Plan, records: Iterable[JournalRecord]) -> Iterator[tuple[JournalEvent, str]]:
    """The kinds of settings that these moves may involve, and where, in words."""
    copying = [move for move in plan.moves if move.added]
    tiered = [move for move in copying if move.storage is StorageKind.TIERED]
    shared = [move for move in plan.moves if move.storage is StorageKind.SHARED]
    if not plan.moves:
        # The plan is unreadable.
        known = [record for record in records if record.topic is not None]
        everywhere = f"the topics {listed({r.topic for r in known})} and every broker"
        for kind in _TAKES_BACK.values():
            yield kind, everywhere
    if copying:
        brokers = listed({b for m in copying for b in (*m.replicas_before, *m.replicas_after)})
        topics = listed({move.topic for move in copying})
        yield JournalEvent.THROTTLED, f"the brokers {brokers} and the topics {topics}"
    if tiered:
        where = f"the topics {listed({move.topic for move in tiered})}"
        yield JournalEvent.SEGMENTS_LOWERED, where
    if shared:
        where = f"the default of all brokers, and brokers {listed(plan.live_brokers)}"
        yield JournalEvent.BALANCER_SUSPENDED, where


WHAT: Final = {
    JournalEvent.THROTTLED: f"a throttle ({', '.join((*RATES, LEADERS, FOLLOWERS))})",
    JournalEvent.SEGMENTS_LOWERED: f"other values of {SEGMENT} and {LOCAL}",
    JournalEvent.BALANCER_SUSPENDED: (f"thresholds of AutoMQ's balancer ({', '.join(THRESHOLDS)})"),
}


def listed(names: Collection[object]) -> str:
    """Names in order, with commas; of many only the first 20."""
    texts = [str(name) for name in sorted(names, key=_by_kind)]
    more = len(texts) - _MOST
    return ", ".join(texts[:_MOST]) + (f" and {more} more" if more > 0 else "")


def _by_kind(name: object) -> tuple[int, str]:
    return (name, "") if isinstance(name, int) else (0, str(name))
