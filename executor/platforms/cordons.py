"""Cordon brokers, and undo it: `cordoned.log.dirs` (KIP-1066), never over someone else's value."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from executor.client.cluster_admin import ClusterAdmin
from executor.journal.run_history import read_journal
from executor.journal.run_journal import CORDON, RunJournal, journal_paths, kind_of
from executor.timing import Timing
from model.ids import BrokerId
from model.run import JournalEvent

CORDONED: Final = "cordoned.log.dirs"
ALL: Final = "*"
"""All log directories of a broker, those included that it gets later."""
_BROKER: Final = "broker"
_DEAD: Final = "it is dead or fenced, and its settings are unknown"
_LATE: Final = "its broker does not report the change yet; look again in a moment"


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonChange:
    """What became of one broker."""

    broker: BrokerId
    changed: bool
    """Whether the broker was cordoned, or is no longer."""
    note: str = ""
    """Why nothing was changed, or a remark; for people."""


@dataclass(frozen=True, slots=True)
class Cordons:
    """Sets and clears cordons of whole brokers; what it has set is read from the journals."""

    admin: ClusterAdmin
    timing: Timing

    def set(
        self, brokers: Collection[BrokerId], journal: RunJournal, ours: Collection[BrokerId]
    ) -> tuple[CordonChange, ...]:
        """Cordon all log directories of these brokers; each request is journalled before.

        ours: the brokers that `cordoned_by_us` returns. A value that someone else has set
        stays. Raises as the calls and the journal do.
        """
        alive = self.admin.cluster().alive
        return tuple(
            self._set(b, journal, b in ours) if b in alive else _unchanged(b, _DEAD)
            for b in sorted(brokers)
        )

    def clear(
        self, brokers: Collection[BrokerId], journal: RunJournal, ours: Collection[BrokerId]
    ) -> tuple[CordonChange, ...]:
        """Remove the cordons that plimsoll has set on these brokers; others stay."""
        alive = self.admin.cluster().alive
        return tuple(
            self._clear(b, journal, b in ours) if b in alive else _unchanged(b, _DEAD)
            for b in sorted(brokers)
        )

    def _set(self, broker: BrokerId, journal: RunJournal, ours: bool) -> CordonChange:
        value = self.admin.broker_configs(broker, [CORDONED]).get(CORDONED)
        if value is None:
            return _unchanged(broker, f"it has no {CORDONED}, which came with Kafka 4.3")
        if value == ALL and ours:
            return _unchanged(broker, "plimsoll has cordoned it already")
        if value:
            return _unchanged(broker, f"someone else has set {CORDONED}={value}, which stays")
        journal.write(JournalEvent.CORDONING, broker=broker, value=ALL)
        self.admin.alter_broker_configs(broker, {CORDONED: ALL})
        return self._changed(broker, ALL)

    def _clear(self, broker: BrokerId, journal: RunJournal, ours: bool) -> CordonChange:
        own = self.admin.own_broker_configs(broker, [CORDONED]).get(CORDONED) or None
        others = f"someone else has set {CORDONED}={own}, which stays"
        if not ours:
            return _unchanged(broker, others if own else "plimsoll has not cordoned it")
        if own != ALL:
            journal.write(JournalEvent.UNCORDONED, broker=broker)
            return _unchanged(broker, others if own else "its cordon was removed already")
        journal.write(JournalEvent.UNCORDONING, broker=broker)
        self.admin.alter_broker_configs(broker, {CORDONED: None})
        changed = self._changed(broker, None)
        journal.write(JournalEvent.UNCORDONED, broker=broker)
        return changed

    def _changed(self, broker: BrokerId, value: str | None) -> CordonChange:
        def is_seen() -> bool:
            own = self.admin.own_broker_configs(broker, [CORDONED]).get(CORDONED)
            return (own or None) == value

        seen = self.timing.settles(is_seen)
        return CordonChange(broker=broker, changed=True, note="" if seen else _LATE)


def _unchanged(broker: BrokerId, note: str) -> CordonChange:
    return CordonChange(broker=broker, changed=False, note=note)


def cordoned_by_us(journal_dir: Path, cluster_id: str) -> frozenset[BrokerId]:
    """Brokers of a cluster on which plimsoll has set a cordon, or was about to, and no end seen.

    Raises ConfigError for an unreadable journal.
    """
    found: set[BrokerId] = set()
    for event, broker in _events(journal_dir, cluster_id):
        if event is JournalEvent.CORDONING:
            found.add(broker)
        else:
            found.discard(broker)
    return frozenset(found)


def _events(journal_dir: Path, cluster_id: str) -> Iterator[tuple[JournalEvent, BrokerId]]:
    for path in journal_paths(journal_dir):
        if kind_of(path.stem) != CORDON:
            continue
        for record in read_journal(path):
            known = record.event in (JournalEvent.CORDONING, JournalEvent.UNCORDONED)
            if known and record.cluster_id == cluster_id:
                yield record.event, BrokerId(record.detail[_BROKER])
