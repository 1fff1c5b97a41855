"""Cordon brokers and log directories, and undo it: `cordoned.log.dirs` (KIP-1066).

Someone else's value is never changed. What plimsoll has set is read from the journals.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from executor.client.cluster_admin import ClusterAdmin, ClusterReads
from executor.client.responses import LogDirView
from executor.journal.run_history import read_journal
from executor.journal.run_journal import CORDON, RunJournal, journal_paths, kind_of
from executor.timing import Timing
from model.ids import BrokerId, PartitionId
from model.run import JournalEvent

if TYPE_CHECKING:
    from model.plan.plan import Move

CORDONED: Final = "cordoned.log.dirs"
ALL: Final = "*"
"""All log directories of a broker, those included that it gets later."""
ALREADY: Final = "plimsoll has cordoned it already"
NOT_OURS: Final = "plimsoll has not cordoned it"
_BROKER: Final = "broker"
_LISTS: Final = ("log.dirs", "log.dir")
_DEAD: Final = "it is dead or fenced, and its settings are unknown"
_LATE: Final = "its broker does not report the change yet; look again in a moment"
_TOO_OLD: Final = f"it has no {CORDONED}, which came with Kafka 4.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonChange:
    """What became of one broker."""

    broker: BrokerId
    changed: bool
    """Whether its cordon was changed."""
    note: str = ""
    """Why nothing was changed, or a remark; for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCordon:
    """What plimsoll has cordoned of one broker."""

    all: bool = False
    """Whether the whole broker."""
    dirs: frozenset[str] = frozenset()
    """Log directories that are cordoned for themselves, as `log.dirs` names them."""
    values: frozenset[str] = frozenset()
    """Every value that the setting may have because of it: a request may have been lost."""

    @property
    def value(self) -> str:
        """The setting's value; empty where nothing is cordoned."""
        return ALL if self.all else ",".join(sorted(self.dirs))

    def covers(self, path: str) -> bool:
        """Whether it keeps new replicas away from a log directory."""
        return self.all or _trimmed(path) in {_trimmed(own) for own in self.dirs}


NOTHING: Final = OwnCordon()
Change = Callable[[OwnCordon], OwnCordon]
"""From what plimsoll has cordoned of a broker to what it shall have."""


def whole(cordon: OwnCordon) -> OwnCordon:
    """Cordon the whole broker."""
    return replace(cordon, all=True)


def not_whole(cordon: OwnCordon) -> OwnCordon:
    """Leave the cordons of single directories alone."""
    return replace(cordon, all=False)


def with_dirs(paths: Collection[str]) -> Change:
    """Cordon these directories, too."""

    def change(cordon: OwnCordon) -> OwnCordon:
        return replace(cordon, dirs=_without(cordon.dirs, paths) | {*paths})

    return change


def without_dirs(paths: Collection[str]) -> Change:
    """Cordon these directories no longer."""
    return lambda cordon: replace(cordon, dirs=_without(cordon.dirs, paths))


@dataclass(frozen=True, slots=True)
class Cordons:
    """Changes the cordons of brokers; each request is journalled before it is sent."""

    admin: ClusterAdmin
    timing: Timing
    ours: Mapping[BrokerId, OwnCordon] = field(default_factory=dict)
    """As `cordoned_by_us` returns it."""

    def unchanged(
        self, brokers: Collection[BrokerId], change: Change
    ) -> tuple[CordonChange, ...] | None:
        """Why none of these brokers would change; None where one would. Changes nothing."""
        # Asked once, since a broker may die or come back between two answers.
        reasons = {broker: self._reason(broker, change) for broker in self._alive(brokers)}
        if not all(reasons.values()):
            return None
        return tuple(_unchanged(b, reasons.get(b, _DEAD)) for b in sorted(brokers))

    def make(
        self, brokers: Collection[BrokerId], change: Change, journal: RunJournal
    ) -> tuple[CordonChange, ...]:
        """Change the cordons of these brokers. Raises as the calls and the journal do.

        A value that someone else has set stays, and is ours no longer.
        """
        alive = {*self._alive(brokers)}
        return tuple(
            self._make(b, change, journal) if b in alive else _unchanged(b, _DEAD)
            for b in sorted(brokers)
        )

    def _alive(self, brokers: Collection[BrokerId]) -> list[BrokerId]:
        alive = self.admin.cluster().alive
        return [b for b in sorted(brokers) if b in alive]

    def _reason(self, broker: BrokerId, change: Change) -> str:
        """Why this broker stays as it is; empty where it, or what is known of it, changes."""
        before = self.ours.get(broker, NOTHING)
        after = change(before)
        value = self.admin.broker_configs(broker, [CORDONED]).get(CORDONED)
        if value is None:
            return _TOO_OLD
        theirs = f"someone else has set {CORDONED}={value}, which stays"
        if not before.values:
            if not after.value:
                return theirs if value else NOT_OURS
            return theirs if value else ""
        return ALREADY if after == before and value == after.value else ""

    def _make(self, broker: BrokerId, change: Change, journal: RunJournal) -> CordonChange:
        if reason := self._reason(broker, change):
            return _unchanged(broker, reason)
        before = self.ours.get(broker, NOTHING)
        own = self.admin.own_broker_configs(broker, [CORDONED]).get(CORDONED) or ""
        effective = self.admin.broker_configs(broker, [CORDONED]).get(CORDONED) or ""
        if effective and own not in before.values:
            journal.write(JournalEvent.UNCORDONED, broker=broker)
            return _unchanged(broker, f"someone else has set {CORDONED}={effective}, which stays")
        after = change(before)
        if after.value:
            return self._set(broker, after, own, journal)
        if not own:
            journal.write(JournalEvent.UNCORDONED, broker=broker)
            return _unchanged(broker, "its cordon was removed already")
        journal.write(JournalEvent.UNCORDONING, broker=broker)
        self.admin.alter_broker_configs(broker, {CORDONED: None})
        changed = self._changed(broker, "")
        journal.write(JournalEvent.UNCORDONED, broker=broker)
        return changed

    def _set(
        self, broker: BrokerId, wanted: OwnCordon, own: str, journal: RunJournal
    ) -> CordonChange:
        # Kafka refuses directories that the broker no longer has.
        wanted = replace(wanted, dirs=self._as_listed(broker, wanted.dirs) or wanted.dirs)
        journal.write(
            JournalEvent.CORDONING, broker=broker, value=wanted.value, dirs=sorted(wanted.dirs)
        )
        if own == wanted.value:
            return _unchanged(broker, ALREADY)
        self.admin.alter_broker_configs(broker, {CORDONED: wanted.value})
        return self._changed(broker, wanted.value)

    def _as_listed(self, broker: BrokerId, paths: Collection[str]) -> frozenset[str]:
        """Those of these directories that the broker has, as its properties spell them."""
        found = self.admin.broker_configs(broker, _LISTS) if paths else {}
        listed = [entry.strip() for key in _LISTS for entry in found.get(key, "").split(",")]
        if not any(listed):
            return frozenset(paths)
        wanted = {_trimmed(path) for path in paths}
        return frozenset(entry for entry in listed if entry and _trimmed(entry) in wanted)

    def _changed(self, broker: BrokerId, value: str) -> CordonChange:
        def is_seen() -> bool:
            own = self.admin.own_broker_configs(broker, [CORDONED]).get(CORDONED)
            return (own or "") == value

        seen = self.timing.settles(is_seen)
        return CordonChange(broker=broker, changed=True, note="" if seen else _LATE)


def _unchanged(broker: BrokerId, note: str) -> CordonChange:
    return CordonChange(broker=broker, changed=False, note=note)


def _trimmed(path: str) -> str:
    return path.rstrip("/") or "/"


def _without(paths: Collection[str], gone: Collection[str]) -> frozenset[str]:
    trimmed = {_trimmed(path) for path in gone}
    return frozenset(path for path in paths if _trimmed(path) not in trimmed)


# ---- what plimsoll has set


def cordoned_by_us(journal_dir: Path, cluster_id: str) -> dict[BrokerId, OwnCordon]:
    """What plimsoll has cordoned, or was about to, by broker, where no end was seen.

    Raises ConfigError for an unreadable journal.
    """
    found: dict[BrokerId, OwnCordon] = {}
    for event, detail in _events(journal_dir, cluster_id):
        broker = BrokerId(detail[_BROKER])
        if event is JournalEvent.CORDONING:
            value = str(detail["value"])
            found[broker] = OwnCordon(
                all=value == ALL,
                dirs=frozenset(map(str, detail.get("dirs", ()))),
                values=found.get(broker, NOTHING).values | {value},
            )
        else:
            found.pop(broker, None)
    return found


def _events(journal_dir: Path, cluster_id: str) -> Iterator[tuple[JournalEvent, Mapping[str, Any]]]:
    for path in journal_paths(journal_dir):
        if kind_of(path.stem) != CORDON:
            continue
        for record in read_journal(path):
            known = record.event in (JournalEvent.CORDONING, JournalEvent.UNCORDONED)
            if known and record.cluster_id == cluster_id:
                yield record.event, record.detail


# ---- moves onto what plimsoll has cordoned itself


def opened_for(
    ours: Mapping[BrokerId, OwnCordon], moves: "Iterable[Move]"
) -> dict[BrokerId, OwnCordon]:
    """What remains of own cordons that moves would meet, by broker; others are left out."""
    found: dict[BrokerId, OwnCordon] = {}
    for move in moves:
        after = move.log_dirs_after or ("",) * len(move.replicas_after)
        before = dict(zip(move.replicas_before, move.log_dirs_before, strict=False))
        for broker, path in zip(move.replicas_after, after, strict=True):
            own = found.get(broker, ours.get(broker, NOTHING))
            is_new = broker not in move.replicas_before or before.get(broker, path) != path
            if is_new and (own.all or own.covers(path)):
                found[broker] = without_dirs([path])(not_whole(own))
    return found


class OpenedAdmin:
    """A cluster's calls, as if own cordons were what `opened` says; for checks alone."""

    def __init__(self, admin: ClusterReads, opened: Mapping[BrokerId, OwnCordon]) -> None:
        self._admin = admin
        self._opened = opened

    def __getattr__(self, name: str) -> Any:
        return getattr(self._admin, name)

    def log_dirs(self, broker: BrokerId, ids: Collection[PartitionId]) -> tuple[LogDirView, ...]:
        """Log directories, of which only those count as cordoned that remain so."""
        found = self._admin.log_dirs(broker, ids)
        remaining = self._opened.get(broker)
        if remaining is None:
            return found
        return tuple(replace(d, cordoned=remaining.covers(d.path)) for d in found)


def as_if_opened(admin: ClusterReads, opened: Mapping[BrokerId, OwnCordon]) -> ClusterReads:
    """The cluster's calls, as `OpenedAdmin` answers them."""
    return cast("ClusterReads", OpenedAdmin(admin, opened)) if opened else admin
